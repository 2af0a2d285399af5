// Calls every route of the contract with every kind of credential, good, missing, forged and stale. The routes, their scopes and so
// the expected answers come from the contract: a new route is in the matrix at once.

import { createHash, createHmac } from "node:crypto";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ConnectionInfo,
  createHandler,
  type Handler,
  type HandlerOptions,
} from "../../src/http/handler.js";
import { ROUTES } from "../../src/http/wire/contract.js";
import { type Route, SCOPES, type Scope } from "../../src/http/wire/schemas.js";
import { LIMITABLE_SCOPES } from "../../src/operations/rules/scopes.js";
import { type House, newHouse, SECRETS } from "./house.js";

const HOST = "jobs.app.test";
/** Stands for every parameter of a path. */
const NOBODY = "00000000-0000-7000-8000-000000000000";
const HOUR_MS = 3_600_000;
const OWN = { host: HOST, origin: `https://${HOST}` };
const FOREIGN = { host: HOST, origin: "https://evil.example", "sec-fetch-site": "cross-site" };
const NAMES = Object.keys(ROUTES) as (keyof typeof ROUTES)[];
/** "served": access let it through, whatever the route makes of a call without a body. */
type Verdict =
  | "served"
  | "unauthorized"
  | "scope_missing"
  | "scope_closed"
  | "secret_limited"
  | "token_refused"
  | "origin_refused"
  | "host_refused";
type Headers = Record<string, string>;

let house: House;
const handlers: Record<string, Handler> = {};
const cookies = {} as Record<Scope, string>;
let endedCookie = "";

beforeAll(async () => {
  house = await newHouse("sqlite");
  const make = (options: HandlerOptions) => createHandler(house.holdfast, { ...options });
  const { admin: _, ...lower } = SECRETS;
  handlers.secrets = make({ secrets: SECRETS });
  handlers.lower = make({ secrets: lower });
  handlers.none = make({ secrets: {} });
  handlers.here = make({ secrets: {}, openOnLoopback: true });
  handlers.sso = make({
    secrets: SECRETS,
    authorize: ({ headers }) => {
      const [, scope] = /sso=(\w+)/.exec(headers.get("cookie") ?? "") ?? [];
      return scope === undefined ? null : { scope: scope as Scope, actor: "ada" };
    },
  });
  for (const scope of SCOPES) cookies[scope] = await signIn(SECRETS[scope]);
  endedCookie = await signIn(SECRETS.admin);
  await send("secrets", ROUTES.deleteSession, { ...OWN, cookie: endedCookie });
});
afterAll(() => house.end());

async function signIn(secret: string): Promise<string> {
  const response = await (handlers.secrets as Handler)(
    new Request(`http://${HOST}/api/session`, {
      method: "POST",
      headers: { host: HOST, "content-type": "application/json" },
      body: JSON.stringify({ secret }),
    }),
  );
  return String(response.headers.get("set-cookie")).split(";")[0] ?? "";
}

let peers = 0;
/** Each call comes from a peer of its own, or the wrong ones would be held up. */
function nextPeer(): ConnectionInfo {
  peers += 1;
  return { remoteAddress: `198.18.${peers >> 8}.${peers & 255}` };
}

/** Without a body, and with a name in the path that nothing has: what a route does is not the question here. */
async function send(
  handler: keyof typeof handlers,
  { method, path }: Route,
  headers: Headers,
  info = nextPeer(),
): Promise<Verdict> {
  const gone = new AbortController();
  const url = `http://${HOST}${path.replace(/\{\w+\}/g, NOBODY)}`;
  const request = new Request(url, { method, headers, signal: gone.signal });
  const response = await (handlers[handler] as Handler)(request, info);
  gone.abort();
  if (![401, 403, 429].includes(response.status)) return "served";
  return ((await response.json()) as { readonly error: Verdict }).error;
}

const isChange = ({ method }: Route) => method !== "GET";
const may = (route: Route, scope: Scope) =>
  route.scope === "open" || scope === "admin" || route.scope === scope;
const open = (route: Route, otherwise: Verdict): Verdict =>
  route.scope === "open" ? "served" : otherwise;

async function matrix(
  handler: keyof typeof handlers,
  headersOf: (route: Route) => Headers,
  expected: (route: Route) => Verdict,
  info?: ConnectionInfo,
): Promise<void> {
  const [got, wanted]: Record<string, Verdict>[] = [{}, {}];
  for (const name of NAMES) {
    const route: Route = ROUTES[name];
    (got as Record<string, Verdict>)[name] = await send(handler, route, headersOf(route), info);
    (wanted as Record<string, Verdict>)[name] = expected(route);
  }
  expect(got).toEqual(wanted);
}

describe("every route", () => {
  test("is closed to a caller without a credential, unless it is open", () =>
    matrix(
      "secrets",
      () => ({ host: HOST }),
      (route) => open(route, "unauthorized"),
    ));

  test.for(SCOPES)("with the secret of %s opens if it is of that scope", (scope) =>
    matrix(
      "secrets",
      () => ({ host: HOST, authorization: `Bearer ${SECRETS[scope]}` }),
      (route) => (may(route, scope) ? "served" : "scope_missing"),
    ),
  );

  test.for(SCOPES)("with a named key of %s opens if it is of that scope", async (scope) => {
    const { secret } = await house.holdfast.keys.create(`of ${scope}`, { scopes: [scope] });
    const authorization = `Bearer ${secret}`;
    const expected = (route: Route) => (may(route, scope) ? "served" : "scope_missing");
    await matrix("secrets", () => ({ host: HOST, authorization }), expected);
    await matrix("none", () => ({ host: HOST, authorization }), expected);
  });

  test.for(LIMITABLE_SCOPES)(
    "with a key of %s that is limited opens if it checks limits, and no session begins",
    async (scope) => {
      const limits = { scopes: [scope], jobs: [NOBODY] };
      const { secret } = await house.holdfast.keys.create(`some of ${scope}`, limits);
      await matrix(
        "secrets",
        () => ({ host: HOST, authorization: `Bearer ${secret}` }),
        (route) => {
          if (!may(route, scope)) return "scope_missing";
          return route.scope === "open" || route.isLimitable ? "served" : "secret_limited";
        },
      );
      expect(await signIn(secret)).toBe("null");
    },
  );

  test("with a key that was revoked or has expired is closed, and so is its session", async () => {
    const { keys } = house.holdfast;
    const [revoked, expired] = [
      await keys.create("revoked", { scopes: ["admin"] }),
      await keys.create("expired", { scopes: ["admin"], expires: "1h" }),
    ];
    const sessions = [await signIn(revoked.secret), await signIn(expired.secret)];
    for (const cookie of sessions)
      await matrix(
        "secrets",
        (route) => (route === ROUTES.deleteSession ? { ...OWN } : { ...OWN, cookie }),
        () => "served",
      );
    await keys.revoke("revoked");
    const file = new DatabaseSync(house.place.database.replace("sqlite:", ""));
    file.exec("update holdfast_access_key set expires_at = 1 where name = 'expired'");
    file.close();
    const credentials = [
      ...[revoked, expired].map(({ secret }) => ({ authorization: `Bearer ${secret}` })),
      ...sessions.map((cookie) => ({ cookie })),
    ];
    for (const credential of credentials)
      await matrix(
        "secrets",
        () => ({ ...OWN, ...credential }),
        (route) => open(route, "unauthorized"),
      );
  });

  test.for([`hfcb1_${"1".padStart(16, "0")}${"ab".repeat(24)}`, "hfcb1_made-up"])(
    "with the made-up callback token %j is closed",
    (token) => {
      const headers = () => ({ host: HOST, authorization: `Bearer ${token}` });
      const expected = (route: Route) =>
        open(route, route.isCallback ? "token_refused" : "unauthorized");
      return matrix("secrets", headers, expected);
    },
  );

  test("with a secret opens from any origin", () =>
    matrix(
      "secrets",
      () => ({ ...FOREIGN, authorization: `Bearer ${SECRETS.admin}` }),
      () => "served",
    ));

  test.for([
    "Bearer wrong-secret-of-nobody",
    "Bearer",
    `Basic ${SECRETS.admin}`,
    `bearer ${SECRETS.admin}`,
  ])("with the header %j is closed", (authorization) =>
    matrix(
      "secrets",
      () => ({ host: HOST, authorization }),
      (route) => open(route, "unauthorized"),
    ),
  );

  test.for(SCOPES)(
    "with a session of %s opens if it is of that scope, from the own page",
    (scope) =>
      matrix(
        "secrets",
        (route) =>
          route === ROUTES.deleteSession ? { ...OWN } : { ...OWN, cookie: cookies[scope] },
        (route) => (may(route, scope) ? "served" : "scope_missing"),
      ),
  );

  test("with a session is closed to changes from another page, and to those that do not say where they come from", async () => {
    const cookie = cookies.admin;
    const changes = (route: Route): Verdict => (isChange(route) ? "origin_refused" : "served");
    await matrix("secrets", () => ({ ...FOREIGN, cookie }), changes);
    await matrix(
      "secrets",
      (route) => ({ host: HOST, ...(route.scope === "open" ? {} : { cookie }) }),
      (route) => (isChange(route) && route.scope !== "open" ? "origin_refused" : "served"),
    );
  });

  const sha256 = (...parts: (string | Buffer)[]) => {
    const hash = createHash("sha256");
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  const signed = (key: Buffer, claims: string) =>
    `holdfast_session=${claims}.${createHmac("sha256", key).update(claims).digest("base64url")}`;
  const until = Date.now() + HOUR_MS;
  const keyOfDigests = sha256(
    "holdfast session",
    ...SCOPES.filter((scope) => scope !== "admin").flatMap((scope) => [
      scope,
      sha256(SECRETS[scope]),
    ]),
  );
  const STALE: readonly (readonly [string, () => string])[] = [
    [
      "signed with the constant key",
      () => signed(sha256("holdfast session"), `forged.${until}.admin`),
    ],
    ["signed with all lower secrets", () => signed(keyOfDigests, `forged.${until}.admin`)],
    ["signed with another secret", () => signed(sha256(SECRETS.read), `forged.${until}.admin`)],
    ["with scopes of its own choice", () => `${cookies.read}.admin`],
    [
      "with another digit",
      () => cookies.admin.replace(/=./, (first) => (first === "=0" ? "=1" : "=0")),
    ],
    ["that was logged out", () => endedCookie],
    ["that is empty", () => "holdfast_session="],
    ["of the name that TLS demands", () => cookies.admin.replace("holdfast", "__Host-holdfast")],
    [
      "that is the digest in the database",
      () => `holdfast_session=${sha256(cookies.admin.split("=")[1] ?? "").toString("hex")}`,
    ],
  ];
  test.for(STALE)(
    "with a cookie %s is closed, whatever the server is set to",
    async ([, cookieOf]) => {
      const headers = () => ({ ...OWN, cookie: cookieOf() });
      await matrix("secrets", headers, (route) => open(route, "unauthorized"));
      await matrix("lower", headers, (route) =>
        open(route, route.scope === "admin" ? "scope_closed" : "unauthorized"),
      );
      await matrix("none", headers, (route) => open(route, "scope_closed"));
      await matrix("here", headers, (route) => open(route, "host_refused"), {
        remoteAddress: "127.0.0.1",
      });
    },
  );

  test("with a session of a secret that is no longer set is closed", () =>
    matrix(
      "lower",
      () => ({ ...OWN, cookie: cookies.admin }),
      (route) => open(route, route.scope === "admin" ? "scope_closed" : "unauthorized"),
    ));

  test("without secrets is closed, and open on this machine alone where that is wanted", async () => {
    await matrix(
      "none",
      () => ({ host: HOST }),
      (route) => open(route, "scope_closed"),
    );
    const local = { host: "localhost:4780" };
    await matrix(
      "here",
      () => local,
      () => "served",
      { remoteAddress: "127.0.0.1" },
    );
    for (const remoteAddress of ["192.168.1.4", "unknown"])
      await matrix(
        "here",
        () => local,
        (route) => open(route, "host_refused"),
        { remoteAddress },
      );
    await matrix(
      "here",
      () => OWN,
      (route) => open(route, "host_refused"),
      { remoteAddress: "127.0.0.1" },
    );
  });

  test.for(SCOPES)(
    "under a single sign-on opens for callers with %s, and changes only from its own page",
    async (scope) => {
      const cookie = `sso=${scope}`;
      await matrix(
        "sso",
        () => ({ ...OWN, cookie }),
        (route) => (may(route, scope) ? "served" : "scope_missing"),
      );
      await matrix(
        "sso",
        () => ({ ...FOREIGN, cookie }),
        (route) =>
          isChange(route) ? "origin_refused" : may(route, scope) ? "served" : "scope_missing",
      );
    },
  );

  test("under a single sign-on is closed to everybody else, a right secret and a session included", async () => {
    for (const headers of [
      { host: HOST },
      { host: HOST, authorization: `Bearer ${SECRETS.admin}` },
      { ...OWN, cookie: cookies.admin },
    ])
      await matrix(
        "sso",
        (route) => (route === ROUTES.deleteSession ? { host: HOST } : headers),
        (route) => open(route, "unauthorized"),
      );
  });
});
