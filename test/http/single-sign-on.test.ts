// The recipes of the guide to single sign-on, run as they are shown: behind a proxy, and with an OpenID provider, which is
// a stand-in on this machine.

import { createSign, generateKeyPairSync } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import * as oidc from "openid-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { signInWith } from "./fixtures/single-sign-on/oidc.js";
import { behindProxy } from "./fixtures/single-sign-on/proxy.js";
import { type House, newHouse } from "./house.js";

const HOME = "https://jobs.example.com";

describe("behind a proxy that signs people in", () => {
  const SECRET = "what-only-the-proxy-knows";
  let house: House;
  beforeEach(async () => {
    house = await newHouse("sqlite", { handler: { authorize: behindProxy(SECRET) } });
  });
  afterEach(() => house.end());

  const ask = (method: string, where: string, headers: Record<string, string>) =>
    house.ask(method, where, { secret: null, headers });
  const of = (groups: string, secret = SECRET) => ({
    "x-proxy-secret": secret,
    "x-forwarded-email": "ada@example.com",
    "x-forwarded-groups": groups,
  });

  test("the proxy's headers decide the scopes and the name in the audit trail", async () => {
    expect((await ask("GET", "/api/runs", of("staff"))).status).toBe(200);
    expect((await ask("POST", "/api/pause", of("staff"))).status).toBe(403);
    expect((await ask("POST", "/api/pause", of("staff,operators"))).status).toBe(200);
    const { entries } = await house.holdfast.audit.list();
    expect(entries[0]).toMatchObject({ verb: "pause", who: "ada@example.com" });
  });

  test("the same headers from anybody but the proxy open nothing", async () => {
    for (const headers of [
      of("operators", "guessed"),
      of("operators", ""),
      of("nobody"),
      { ...of("operators"), "x-forwarded-email": "" },
    ])
      expect((await ask("GET", "/api/runs", headers)).status).toBe(401);
  });
});

describe("with an OpenID provider", () => {
  let provider: Provider;
  let house: House;
  let sso: ReturnType<typeof signInWith>;

  beforeEach(async () => {
    provider = await startProvider();
    const options = { execute: [oidc.allowInsecureRequests] };
    const found = await oidc.discovery(new URL(provider.url), "holdfast", "s", undefined, options);
    sso = signInWith(found, HOME);
    house = await newHouse("sqlite", { handler: { authorize: sso.authorize } });
  });
  afterEach(async () => {
    await house.end();
    await provider.stop();
  });

  const cookieIn = (response: Response) =>
    String(response.headers.get("set-cookie")).split(";")[0] as string;
  const looks = (cookie: string) =>
    house.ask("GET", "/api/runs", { secret: null, headers: { cookie } });

  /** Does what a browser does: goes to the provider, and comes back with its response. */
  async function signedIn(change: (back: URL) => void = () => undefined) {
    const begun = await sso.login();
    const at = await fetch(String(begun.headers.get("location")), { redirect: "manual" });
    const back = new URL(String(at.headers.get("location")));
    change(back);
    const headers = { cookie: cookieIn(begun) };
    return sso.callback(new Request(back, { headers }));
  }

  test("a person who signs in has the scopes of the group, under the own name", async () => {
    provider.person = { email: "ada@example.com", groups: ["operators"] };
    const operator = cookieIn(await signedIn());
    const pause = await house.ask("POST", "/api/pause", {
      secret: null,
      headers: { cookie: operator },
    });
    expect(pause.status).toBe(200);
    const { entries } = await house.holdfast.audit.list();
    expect(entries[0]).toMatchObject({ verb: "pause", who: "ada@example.com" });
    provider.person = { email: "bob@example.com", groups: [] };
    const reader = cookieIn(await signedIn());
    expect((await looks(reader)).status).toBe(200);
    const refused = await house.ask("POST", "/api/resume", {
      secret: null,
      headers: { cookie: reader },
    });
    expect(refused.status).toBe(403);
  });

  test("a made-up cookie, another browser's code or a changed state signs nobody in", async () => {
    expect((await looks("__Host-sso=made-up")).status).toBe(401);
    const begun = await sso.login();
    const at = await fetch(String(begun.headers.get("location")), { redirect: "manual" });
    const stolen = new Request(String(at.headers.get("location")));
    expect((await sso.callback(stolen)).status).toBe(400);
    const changed = signedIn((back) => back.searchParams.set("state", "another"));
    await expect(changed).rejects.toThrow("invalid response");
  });
});

type Provider = {
  readonly url: string;
  person: { readonly email: string; readonly groups: readonly string[] };
  stop(): Promise<void>;
};

/** As much of an OpenID provider as a sign-in needs: everybody who comes is the one person that the test names. */
async function startProvider(): Promise<Provider> {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "RS256", use: "sig" };
  const nonces = new Map<string, string>();
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const idToken = (nonce: string) => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: provider.url, aud: "holdfast", sub: provider.person.email, nonce };
    const body = { ...claims, ...provider.person, iat: now, exp: now + 60 };
    const text = `${encoded({ alg: "RS256", kid: "k1" })}.${encoded(body)}`;
    return `${text}.${createSign("RSA-SHA256").update(text).sign(privateKey, "base64url")}`;
  };
  const server = http.createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(String(request.url), provider.url);
    const answer = (body: object) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (pathname === "/.well-known/openid-configuration")
      return answer({
        issuer: provider.url,
        authorization_endpoint: `${provider.url}/authorize`,
        token_endpoint: `${provider.url}/token`,
        jwks_uri: `${provider.url}/keys`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
      });
    if (pathname === "/keys") return answer({ keys: [jwk] });
    if (pathname === "/authorize") {
      const back = new URL(String(searchParams.get("redirect_uri")));
      const code = crypto.randomUUID();
      nonces.set(code, String(searchParams.get("nonce")));
      back.searchParams.set("code", code);
      back.searchParams.set("state", String(searchParams.get("state")));
      return response.writeHead(302, { location: back.href }).end();
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const code = new URLSearchParams(String(Buffer.concat(chunks))).get("code") ?? "";
    answer({
      access_token: "unused",
      token_type: "bearer",
      id_token: idToken(nonces.get(code) ?? ""),
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const provider: Provider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    person: { email: "nobody@example.com", groups: [] },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return provider;
}
