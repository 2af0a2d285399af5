// Attacks through a visitor's browser: a page of another origin must change nothing, whichever user is signed in.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler, type HandlerOptions } from "../../src/http/handler.js";
import { ConfigurationError, Holdfast } from "../../src/index.js";
import { type House, newHouse, SECRETS } from "./house.js";

let house: House;
beforeAll(async () => {
  house = await newHouse("sqlite");
  house.holdfast.job("study", { run: () => undefined });
});
afterAll(() => house.end());

const HOST = "jobs.app.test";
const FORM = { "content-type": "application/x-www-form-urlencoded" };
/** As a single sign-on with a cookie does it: the browser sends that by itself. */
const authorize: HandlerOptions["authorize"] = (request) =>
  request.headers.get("cookie")?.includes("sso=alice") ? { scopes: ["admin"], by: "alice" } : null;

/** The headers that a browser adds, besides the cookie. */
const FOREIGN: readonly (readonly [string, Record<string, string>])[] = [
  ["another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
  ["another site, by an older browser", { origin: "https://evil.example" }],
  [
    "a neighbour of the same site",
    { origin: "https://evil.app.test", "sec-fetch-site": "same-site" },
  ],
  ["a page without an origin", { origin: "null" }],
  ["another site that hides its origin", { "sec-fetch-site": "cross-site" }],
  ["another port of this host", { origin: `https://${HOST}:8443` }],
];
const OWN: readonly (readonly [string, Record<string, string>])[] = [
  ["the own page", { origin: `https://${HOST}`, "sec-fetch-site": "same-origin" }],
  ["the own page, by an older browser", { origin: `https://${HOST}` }],
  ["a program that is no browser", {}],
];

type Sent = { readonly headers?: Record<string, string>; readonly body?: string };

function at(options: HandlerOptions, holdfast = house.holdfast) {
  const handler = createHandler(holdfast, options);
  return async (method: string, path: string, { headers = {}, body }: Sent = {}) => {
    const init = { method, headers: { host: HOST, ...headers }, ...(body ? { body } : {}) };
    const response = await handler(new Request(`http://${HOST}${path}`, init));
    const answer = (await response.json()) as { readonly error?: string; readonly ok?: boolean };
    return { status: response.status, error: answer.error };
  };
}

describe("under a single sign-on with a cookie", () => {
  const cookie = "sso=alice";
  const call = (...args: Parameters<ReturnType<typeof at>>) => at({ authorize })(...args);

  test.for(FOREIGN)(
    "a change that %s causes is refused, with a body and without",
    async ([, sent]) => {
      const headers = { cookie, ...sent };
      for (const [method, path] of [
        ["POST", "/api/pause"],
        ["POST", "/api/resume"],
        ["POST", "/api/tick"],
        ["POST", "/api/cleanup"],
        ["POST", "/api/jobs/study/runs"],
        ["DELETE", "/api/schedules/none"],
        ["DELETE", "/api/session"],
      ] as const) {
        const refused = { status: 403, error: "origin_refused" };
        expect(await call(method, path, { headers })).toEqual(refused);
        expect(await call(method, path, { headers: { ...headers, ...FORM }, body: "a=1" })).toEqual(
          refused,
        );
      }
      expect(await house.holdfast.paused()).toBe(null);
    },
  );

  test.for(OWN)("a change by %s is made", async ([, sent]) => {
    expect((await call("POST", "/api/resume", { headers: { cookie, ...sent } })).status).toBe(200);
  });

  test("a look is served from everywhere: no other page can read the answer", async () => {
    for (const [, sent] of [...FOREIGN, ...OWN])
      expect((await call("GET", "/api/runs", { headers: { cookie, ...sent } })).status).toBe(200);
  });

  test("credentials that a browser sends by itself, or that a proxy adds, do not stand in for the origin", async () => {
    const byHeader: HandlerOptions["authorize"] = (request) =>
      request.headers.has("authorization") ? ["admin"] : null;
    const pause = (authorization: string) =>
      at({ authorize: byHeader })("POST", "/api/resume", {
        headers: { authorization, origin: "https://evil.example" },
      });
    for (const credentials of [
      "Bearer an-identity-token-that-a-proxy-adds",
      "",
      "Basic YTpi",
      "basic YTpi",
      "Negotiate YTpi",
      "NTLM x",
      'Digest username="a"',
    ])
      expect((await pause(credentials)).error).toBe("origin_refused");
    const program = { headers: { authorization: "Bearer a-token-of-a-program" } };
    const call = at({ authorize: byHeader });
    expect((await call("POST", "/api/resume", program)).status).toBe(200);
  });
});

test("a secret in the header opens a change from any origin", async () => {
  const headers = { authorization: `Bearer ${SECRETS.admin}`, origin: "https://other.example" };
  expect((await at({ secrets: SECRETS })("POST", "/api/resume", { headers })).status).toBe(200);
});

test("a page of another origin can sign nobody in or out", async () => {
  const call = at({ secrets: SECRETS });
  for (const [, sent] of FOREIGN) {
    const headers = { ...sent, "content-type": "application/json" };
    const body = JSON.stringify({ secret: SECRETS.read });
    expect((await call("POST", "/api/session", { headers, body })).error).toBe("origin_refused");
    expect((await call("DELETE", "/api/session", { headers })).error).toBe("origin_refused");
  }
});

describe("behind a proxy that calls by another name", () => {
  const headers = { cookie: "sso=alice", origin: "https://public.example", host: "10.0.0.7:4780" };

  test("the origin of publicUrl is the own one", async () => {
    const holdfast = new Holdfast({
      database: "sqlite::memory:",
      publicUrl: "https://public.example/ops",
    });
    expect((await at({ authorize }, holdfast)("POST", "/api/resume", { headers })).status).toBe(
      200,
    );
    expect((await at({ authorize })("POST", "/api/resume", { headers })).error).toBe(
      "origin_refused",
    );
    await holdfast.stop();
  });

  test("trustedOrigins names further ones", async () => {
    const trustedOrigins = ["https://console.example", "https://public.example"];
    const call = at({ authorize, trustedOrigins });
    const cross = { ...headers, "sec-fetch-site": "cross-site" };
    expect((await call("POST", "/api/resume", { headers: cross })).status).toBe(200);
    const other = { ...cross, origin: "https://public.example.evil.example" };
    expect((await call("POST", "/api/resume", { headers: other })).error).toBe("origin_refused");
  });

  test.for([["*"], ["https://a.example/path"], ["a.example"], ["null"], [7], "https://a.example"])(
    "trustedOrigins of %j are refused at the start",
    (trustedOrigins) => {
      const options = { trustedOrigins } as never;
      expect(() => createHandler(house.holdfast, options)).toThrow(ConfigurationError);
    },
  );
});
