// Attacks the page's session: forged, altered and stale cookies must open nothing.

import { createHash, createHmac } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ConnectionInfo, createHandler, type HandlerOptions } from "../../src/http/handler.js";
import { SCOPES, type Scope } from "../../src/http/wire/schemas.js";
import { Holdfast } from "../../src/index.js";
import { createTestHoldfast } from "../../src/testing/index.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

const HERE: ConnectionInfo = { remoteAddress: "127.0.0.1" };
const HOUR_MS = 3_600_000;

let house: House;
beforeAll(async () => {
  house = await newHouse("sqlite");
});
afterAll(() => house.end());

type Sent = {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly info?: ConnectionInfo;
  readonly body?: object;
};

/** A handler with options of its own, and a short way to call it. */
function at(options: HandlerOptions, holdfast = house.holdfast) {
  const handler = createHandler(holdfast, options);
  return async (path: string, { method = "GET", headers = {}, info, body }: Sent = {}) => {
    const request = new Request(`http://127.0.0.1:4780${path}`, {
      method,
      headers: { ...(body ? { "content-type": "application/json" } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const response = await handler(request, info);
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
    const answer = (await response.json()) as any;
    return { status: response.status, headers: response.headers, body: answer };
  };
}

const sha256 = (...parts: (string | Buffer)[]) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** Cookies in the forms that a forger may try, signed with this key. */
function forgeries(key: Buffer): readonly string[] {
  const until = Date.now() + HOUR_MS;
  return [`forged.${until}.admin`, `forged.${until}`, `${crypto.randomUUID()}.${until}`].map(
    (claims) =>
      `holdfast_session=${claims}.${createHmac("sha256", key).update(claims).digest("base64url")}`,
  );
}

const CONSTANT_KEY = sha256("holdfast session");
const keyOfAll = (secrets: Partial<Record<Scope, string>>) =>
  sha256(
    "holdfast session",
    ...SCOPES.flatMap((scope) => (secrets[scope] ? [scope, sha256(secrets[scope])] : [])),
  );
const own = { origin: "http://127.0.0.1:4780", host: "127.0.0.1:4780" };

async function signIn(call: ReturnType<typeof at>, secret: string): Promise<string> {
  const { headers } = await call("/api/session", { method: "POST", body: { secret } });
  return headers.get("set-cookie")?.split(";")[0] ?? "";
}

describe("a forged cookie", () => {
  test("opens nothing where no secret is set: the handler stays closed", async () => {
    const call = at({ secrets: {} });
    for (const cookie of forgeries(CONSTANT_KEY)) {
      expect((await call("/api/runs", { headers: { cookie } })).body.error).toBe("scope_closed");
      const pause = { method: "POST", headers: { cookie, ...own }, info: HERE };
      expect((await call("/api/pause", pause)).body.error).toBe("scope_closed");
      expect((await call("/api/me", { headers: { cookie } })).body.scopes).toEqual([]);
    }
    expect(await house.holdfast.paused()).toBe(null);
  });

  test("does not make a caller who knows every lower secret an admin", async () => {
    const { admin: _, ...lower } = SECRETS;
    for (const secrets of [{ trigger: SECRETS.trigger }, lower]) {
      const call = at({ secrets });
      const keys = [keyOfAll(secrets), ...Object.values(secrets).map((each) => sha256(each))];
      for (const cookie of keys.flatMap(forgeries)) {
        const pause = { method: "POST", headers: { cookie, ...own } };
        expect((await call("/api/pause", pause)).status).toBe(403);
        expect((await call("/api/me", { headers: { cookie } })).body.scopes).toEqual([]);
      }
    }
  });

  test("does not open a development server to a page that rebinds its name to this machine", async () => {
    const call = at({ secrets: {}, openOnLoopback: true });
    for (const cookie of forgeries(CONSTANT_KEY)) {
      const headers = { cookie, host: "evil.example:4780", origin: "http://evil.example:4780" };
      for (const method of ["GET", "POST"]) {
        const path = method === "GET" ? "/api/runs" : "/api/pause";
        const answer = await call(path, { method, headers, info: HERE });
        expect(answer.body.error).toBe("host_refused");
      }
    }
  });
});

describe("a session", () => {
  test("grants the scopes that its secret has now, whatever the cookie says", async () => {
    const shared = "the-secret-of-several-scopes";
    const cookie = await signIn(at({ secrets: { read: shared, trigger: shared } }), shared);
    const scopesAt = async (secrets: HandlerOptions["secrets"] & {}) =>
      (await at({ secrets })("/api/me", { headers: { cookie } })).body.scopes;
    expect(await scopesAt({ read: shared, trigger: shared })).toEqual(["trigger", "read"]);
    expect(await scopesAt({ read: shared, trigger: SECRETS.trigger })).toEqual(["read"]);
    expect(await scopesAt({ admin: shared })).toEqual([...SCOPES]);
    expect(await scopesAt(SECRETS)).toEqual([]);
  });

  test("outlives the rotation of another secret, and ends with its own", async () => {
    const cookie = await signIn(at({ secrets: SECRETS }), SECRETS.read);
    const read = async (secrets: HandlerOptions["secrets"] & {}) =>
      (await at({ secrets })("/api/runs", { headers: { cookie } })).status;
    expect(await read({ ...SECRETS, admin: "another-admin-secret" })).toBe(200);
    expect(await read({ ...SECRETS, read: `another-read-secret, ${SECRETS.read}` })).toBe(200);
    expect(await read({ ...SECRETS, read: "another-read-secret" })).toBe(401);
  });

  test("ends after twelve hours by the database's clock", async () => {
    const kit = await createTestHoldfast({});
    const call = at({ secrets: SECRETS }, kit.holdfast);
    const cookie = await signIn(call, SECRETS.read);
    const read = async () => (await call("/api/runs", { headers: { cookie } })).status;
    await kit.advance(12 * HOUR_MS - 1_000);
    expect(await read()).toBe(200);
    await kit.advance(1_000);
    expect(await read()).toBe(401);
    await kit.close();
  });

  test("on a development server adds its scopes to those that are open there", async () => {
    const call = at({ secrets: { read: SECRETS.read }, openOnLoopback: true });
    const cookie = await signIn(call, SECRETS.read);
    const signedIn = { headers: { cookie, ...own }, info: HERE };
    expect((await call("/api/runs", signedIn)).status).toBe(200);
    expect((await call("/api/resume", { method: "POST", ...signedIn })).status).toBe(200);
    expect((await call("/api/me", signedIn)).body.scopes).toEqual([...SCOPES]);
    const remote = { ...signedIn, info: { remoteAddress: "192.168.1.4" } };
    expect((await call("/api/runs", remote)).status).toBe(200);
    expect((await call("/api/resume", { method: "POST", ...remote })).body.error).toBe(
      "scope_missing",
    );
  });
});

describe.each(DATABASES)("a logout on %s", (database) => {
  let place: House;
  beforeEach(async () => {
    place = await newHouse(database);
  });
  afterEach(() => place.end());

  const statusOf = async (call: ReturnType<typeof at>, cookie: string) =>
    (await call("/api/runs", { headers: { cookie } })).status;
  const logout = (call: ReturnType<typeof at>, cookie: string) =>
    call("/api/session", { method: "DELETE", headers: { cookie, ...own } });

  test("is known to other instances and after a restart", async () => {
    const secrets = SECRETS;
    const call = at({ secrets }, place.holdfast);
    const [ended, kept] = [await signIn(call, SECRETS.read), await signIn(call, SECRETS.read)];
    const other = place.another();
    const replica = at({ secrets }, other);
    expect(await statusOf(replica, ended)).toBe(200);
    expect((await logout(call, ended)).status).toBe(200);
    for (const each of [call, replica, at({ secrets }, place.holdfast)]) {
      expect(await statusOf(each, ended)).toBe(401);
      expect(await statusOf(each, kept)).toBe(200);
    }
    await other.stop();
  });

  test("of an unknown session stores nothing and ends nothing", async () => {
    const call = at({ secrets: SECRETS }, place.holdfast);
    const cookie = await signIn(call, SECRETS.read);
    await logout(call, cookie);
    const huge = "x".repeat(15_000);
    for (const value of [huge, `${huge}.1.x`, "", ".", "0".repeat(64), cookie.split("=")[1]])
      expect((await logout(call, `holdfast_session=${value}`)).status).toBe(200);
    expect((await call("/api/session", { method: "DELETE" })).status).toBe(200);
    expect(await statusOf(call, cookie)).toBe(401);
    const { entries } = await place.holdfast.audit.list({ noun: "session" });
    expect(entries.map(({ verb, who, address, change }) => [verb, who, address, change])).toEqual([
      ["end", "page", "unknown", null],
      ["begin", "page", "unknown", "scopes read"],
    ]);
  });

  test("is undone by no restored backup: a recovery ends every session", async () => {
    const call = at({ secrets: SECRETS }, place.holdfast);
    const cookie = await signIn(call, SECRETS.read);
    await place.holdfast.recover({ apply: true });
    expect(await statusOf(call, cookie)).toBe(401);
  });
});

describe("the cookie", () => {
  const secrets = { read: SECRETS.read };
  const setCookie = async (publicUrl: string | undefined, basePath = "") => {
    const holdfast = new Holdfast({
      database: "sqlite::memory:",
      ...(publicUrl === undefined ? {} : { publicUrl }),
    });
    const call = at({ secrets, basePath }, holdfast);
    const body = { secret: SECRETS.read };
    const { headers } = await call(`${basePath}/api/session`, { method: "POST", body });
    const cookie = headers.get("set-cookie") ?? "";
    const [pair = ""] = cookie.split(";");
    const served = await call(`${basePath}/api/runs`, { headers: { cookie: pair } });
    const renamed = { cookie: pair.replace("__Host-", "") };
    const plain = await call(`${basePath}/api/runs`, { headers: renamed });
    const ended = await call(`${basePath}/api/session`, {
      method: "DELETE",
      headers: { cookie: pair },
    });
    await holdfast.stop();
    return {
      cookie,
      statuses: [served.status, plain.status],
      removal: ended.headers.get("set-cookie"),
    };
  };

  test("is Secure and kept to this very host where publicUrl is https, also behind a proxy that ends TLS", async () => {
    const { cookie, statuses, removal } = await setCookie("https://jobs.example.com");
    expect(cookie).toMatch(
      /^__Host-holdfast_session=[^;]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(removal).toMatch(/^__Host-holdfast_session=; Path=\/; Max-Age=0; .*Secure$/);
    // A neighbour can set a cookie without the prefix for the whole domain.
    expect(statuses).toEqual([200, 401]);
  });

  test("has a name for each place on a host where several handlers are mounted", async () => {
    const { cookie, statuses } = await setCookie("https://jobs.example.com/ops/a", "/ops/a");
    expect(cookie).toMatch(/^__Host-holdfast_session\.ops\.a=[^;]+; Path=\/;/);
    expect(statuses).toEqual([200, 401]);
  });

  test("is a plain one where there is no TLS", async () => {
    for (const publicUrl of [undefined, "http://jobs.example.com"]) {
      const { cookie, statuses } = await setCookie(publicUrl, "/ops");
      expect(cookie).toMatch(
        /^holdfast_session=[^;]+; Path=\/ops; Max-Age=43200; HttpOnly; SameSite=Strict$/,
      );
      expect(statuses).toEqual([200, 200]);
    }
  });
});

describe("scopes that are open on this machine", () => {
  const call = at.bind(null, { secrets: {}, openOnLoopback: true });
  const host = "localhost:4780";

  test.for(["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])(
    "are open to the peer %s",
    async (remoteAddress) => {
      expect(
        (await call()("/api/runs", { headers: { host }, info: { remoteAddress } })).status,
      ).toBe(200);
    },
  );

  test.for([
    "192.168.1.4",
    "::ffff:10.0.0.1",
    "fe80::1",
    "2001:db8::1",
    "127.0.0.1.evil.example",
    undefined,
  ])(
    "are closed to the peer %s, though it says that it asked for localhost",
    async (remoteAddress) => {
      const answer = await call()("/api/runs", { headers: { host }, info: { remoteAddress } });
      expect(answer.body.error).toBe("host_refused");
      const me = await call()("/api/me", { headers: { host }, info: { remoteAddress } });
      expect(me.body.scopes).toEqual([]);
    },
  );

  test.for(["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via", "X-Client-IP", "CF-Connecting-IP"])(
    "are closed to requests that a proxy on this machine forwards with the header %s",
    async (name) => {
      const headers = { host, [name]: "198.51.100.7" };
      expect((await call()("/api/runs", { headers, info: HERE })).body.error).toBe("host_refused");
    },
  );

  test("are closed to a request that a page of another site caused", async () => {
    for (const site of ["cross-site", "same-site"]) {
      const headers = { host, "sec-fetch-site": site };
      expect((await call()("/api/runs", { headers, info: HERE })).body.error).toBe("host_refused");
    }
  });
});
