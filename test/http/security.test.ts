// Tries the calls of an attacker: none has an effect.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler } from "../../src/http/handler.js";
import { refuseOpenHost } from "../../src/http/server.js";
import { ConfigurationError, Holdfast } from "../../src/index.js";
import { type AskOptions, type House, newHouse, SECRETS } from "./house.js";

const numbers = (count: number) => Array.from({ length: count }, (_, at) => [`k${at}`, at]);

let house: House;
beforeAll(async () => {
  house = await newHouse("sqlite");
  house.holdfast.job("study", { run: () => undefined });
  await house.holdfast.schedules.upsert("s", { job: "study", cron: "0 0 1 1 *" });
});
afterAll(() => house.end());

describe("a wrong secret", () => {
  const right = SECRETS.trigger;
  const WRONG: readonly (readonly [string, Record<string, string>])[] = [
    ["none", {}],
    ["an empty header", { authorization: "" }],
    ["a scheme alone", { authorization: "Bearer" }],
    ["spaces", { authorization: "Bearer    " }],
    ["a scheme in another case", { authorization: `bearer ${right}` }],
    ["another scheme", { authorization: `Basic ${right}` }],
    ["one character less", { authorization: `Bearer ${right.slice(0, -1)}` }],
    ["one character more", { authorization: `Bearer ${right}x` }],
    ["not ASCII", { authorization: "Bearer gehe\u00efm" }],
    ["two at once", { authorization: `Bearer ${right}, Bearer ${right}` }],
  ];

  test.for(WRONG)("%s: 401, with one and the same body", async ([, headers]) => {
    const fresh = createHandler(house.holdfast, { secrets: SECRETS });
    const request = new Request("http://127.0.0.1/api/tick", { method: "POST", headers });
    const response = await fresh(request);
    const { requestId: _, ...body } = (await response.json()) as Record<string, unknown>;
    expect(response.status).toBe(401);
    expect(body).toEqual({
      type: "about:blank",
      title: "Not authorized",
      status: 401,
      error: "unauthorized",
      detail: "A valid secret is needed, in the header Authorization: Bearer <secret>.",
    });
  });

  test("a secret in the query is none", async () => {
    const answer = await house.ask("POST", `/api/tick?secret=${right}`, { secret: null });
    expect(answer.status).toBe(401);
  });
});

describe("scopes", () => {
  const CALLS: readonly (readonly [string, string, object | undefined, keyof typeof SECRETS])[] = [
    ["POST", "/api/tick", {}, "trigger"],
    ["POST", "/api/schedules/s/trigger", { mode: "test" }, "trigger"],
    ["POST", "/api/jobs/study/runs", { input: {} }, "enqueue"],
    ["GET", "/api/runs", undefined, "read"],
    ["GET", "/api/schedules", undefined, "read"],
    ["POST", "/api/schedules/s/pause", {}, "admin"],
    ["POST", "/api/schedules/s/resume", {}, "admin"],
  ];

  test.for(CALLS)(
    "%s %s opens to its own scope and to admin, to no other",
    async ([method, path, body, scope]) => {
      for (const [each, secret] of Object.entries(SECRETS)) {
        const isOpen = each === scope || each === "admin";
        const options: AskOptions = body === undefined ? { secret } : { secret, body };
        const { status, body: answer } = await house.ask(method, path, options);
        if (isOpen) expect(status).toBeLessThan(300);
        else expect([status, answer.error]).toEqual([403, "scope_missing"]);
      }
    },
  );

  test("two secrets of a scope are both good while one is replaced", async () => {
    const handler = createHandler(house.holdfast, {
      secrets: { read: "the-older-reading-one, the-newer-reading-one" },
    });
    for (const secret of ["the-older-reading-one", "the-newer-reading-one"]) {
      const headers = { authorization: `Bearer ${secret}` };
      expect((await handler(new Request("http://h/api/runs", { headers }))).status).toBe(200);
    }
  });

  test("a scope without a secret is closed, and says which variable opens it", async () => {
    const handler = createHandler(house.holdfast, { secrets: { trigger: SECRETS.trigger } });
    const response = await handler(new Request("http://h/api/runs"));
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      error: "scope_closed",
      detail: expect.stringContaining("HOLDFAST_READ_SECRET"),
    });
  });

  test.for(["", " ", "a,", ",", "a,,b", "undefined", "null"])(
    "a secret that is set but empty (%j) refuses to start",
    (secret) => {
      expect(() => createHandler(house.holdfast, { secrets: { admin: secret } })).toThrow(
        ConfigurationError,
      );
    },
  );

  test("an address beyond this machine without a secret refuses to start", () => {
    for (const host of ["0.0.0.0", "::", "192.168.1.4", "example.com"])
      expect(() => refuseOpenHost(host, false)).toThrow(/HOLDFAST_HOST/);
    for (const host of ["127.0.0.1", "::1", "localhost"]) refuseOpenHost(host, false);
    refuseOpenHost("0.0.0.0", true);
  });

  test("single sign-on decides alone: its scopes are granted, and secrets no longer count", async () => {
    const handler = createHandler(house.holdfast, {
      secrets: SECRETS,
      authorize: async (request) => {
        // As one does that checks a signature of its own.
        await request.clone().text();
        return request.headers.get("x-user") === "ada" ? { scopes: ["read"], by: "ada" } : null;
      },
    });
    const ask = (path: string, headers: Record<string, string>, method = "GET") =>
      handler(new Request(`http://h${path}`, { headers, method }));
    expect((await ask("/api/runs", { "x-user": "ada" })).status).toBe(200);
    expect((await ask("/api/tick", { "x-user": "ada" }, "POST")).status).toBe(403);
    expect((await ask("/api/runs", { authorization: `Bearer ${SECRETS.admin}` })).status).toBe(401);
  });
});

describe("in development, on this machine", () => {
  const open = () => createHandler(house.holdfast, { openOnLoopback: true, secrets: {} });
  const ask = async (headers: Record<string, string>, url = "http://127.0.0.1:4780/api/runs") =>
    (await open()(new Request(url, { headers }), { remoteAddress: "127.0.0.1" })).status;

  test("scopes without a secret are open", async () => {
    expect(await ask({ host: "127.0.0.1:4780" })).toBe(200);
    expect(await ask({ host: "localhost:4780", origin: "http://localhost:4780" })).toBe(200);
  });

  test.for([
    ["a name that leads here", { host: "evil.example:4780" }],
    ["a page of another origin", { host: "localhost:4780", origin: "https://evil.example" }],
    ["an origin that is none", { host: "localhost:4780", origin: "null" }],
    ["a proxy between", { host: "localhost:4780", "x-forwarded-for": "127.0.0.1" }],
    ["another proxy between", { host: "localhost:4780", forwarded: "for=127.0.0.1" }],
  ] as const)("%s is refused", async ([, headers]) => {
    expect(await ask(headers)).toBe(403);
  });
});

describe("a hostile body", () => {
  const enqueue = (options: AskOptions) => house.ask("POST", "/api/jobs/study/runs", options);
  const json = { "content-type": "application/json" };

  test("a form is refused by its content type", async () => {
    const answer = await enqueue({ raw: "a=1", headers: { "content-type": "text/plain" } });
    expect(answer).toMatchObject({ status: 415, body: { error: "media_type_unsupported" } });
  });

  test("a compressed one is refused before it is opened", async () => {
    const headers = { ...json, "content-encoding": "gzip" };
    expect((await enqueue({ raw: "x", headers })).status).toBe(415);
  });

  test("a caller without a secret may send 16 KiB and no more", async () => {
    const signIn = (raw: string) =>
      house.ask("POST", "/api/session", { secret: null, raw, headers: json });
    const members = Array.from({ length: 100_000 }, (_, n) => `"k${n}":1`).join(",");
    const refused = await signIn(`{${members}}`);
    expect([refused.status, refused.body.error]).toEqual([413, "body_too_large"]);
    expect((await signIn(JSON.stringify({ secret: "é".repeat(1_000) }))).status).toBe(401);
  });

  test("ten megabytes are refused by their length, and by counting where the length lies", async () => {
    const raw = JSON.stringify({ input: "x".repeat(10_000_000) });
    expect((await enqueue({ raw, headers: json })).status).toBe(413);
    let sent = 0;
    const endless = new ReadableStream({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(0x20));
      },
    });
    expect((await enqueue({ raw: endless, headers: json })).status).toBe(413);
    expect(sent).toBeLessThan(4_000_000);
  });

  test("an input of 256 KiB is taken, one byte more is refused and nothing is stored", async () => {
    const input = "x".repeat(256 * 1024 - 2);
    expect((await enqueue({ body: { input } })).status).toBe(201);
    const refused = await enqueue({ body: { input: `${input}x` } });
    expect(refused).toMatchObject({ status: 413, body: { error: "input_too_large" } });
  });

  test.for([
    ["10,000 levels", `{"input":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, "body_too_deep"],
    ["a number beyond all numbers", '{"input":{"a":1e400}}', "input_not_json"],
    ["no JSON", "{input:1}", "body_not_json"],
    ["a text where an object should be", '"hello"', "body_invalid"],
    ["null", "null", "body_invalid"],
    ["a list", "[]", "body_invalid"],
    ["bytes that are no text", new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]), "body_not_utf8"],
  ] as const)("%s: 400 with a name for it", async ([, raw, error]) => {
    expect(await enqueue({ raw, headers: json })).toMatchObject({ status: 400, body: { error } });
  });

  test.for([
    [
      "members that nobody knows",
      { body: Object.fromEntries(numbers(101)) },
      /more than 100 members/,
    ],
    ["tags", { body: { tags: numbers(1_001) } }, /^tags: must have at most 1000 entries$/],
    [
      "members of a tag",
      { body: { tags: [Object.fromEntries(numbers(1_001))] } },
      /^tags: must have/,
    ],
  ] as const)("too many %s are refused before they are looked at", async ([, sent, detail]) => {
    const { status, body } = await enqueue(sent);
    expect([status, body.error]).toEqual([400, "body_invalid"]);
    expect(body.detail).toMatch(detail);
  });

  test("members that would change every object are plain data, or unknown", async () => {
    const inner = '{"input":{"__proto__":{"admin":1},"constructor":{"prototype":{"x":1}}}}';
    const stored = await enqueue({ raw: inner, headers: json });
    expect(stored.status).toBe(201);
    const { text } = await house.ask("GET", `/api/runs/${stored.body.id}`);
    expect(text).toContain('"__proto__":{"admin":1}');
    const outer = await enqueue({ raw: '{"__proto__":{"admin":1},"input":1}', headers: json });
    expect(outer.status).toBeLessThan(500);
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  test("names with a meaning in JavaScript are ordinary names here", async () => {
    for (const name of [
      "__proto__",
      "constructor",
      "..%2f..%2fetc%2fpasswd",
      "%00",
      "x'; drop table run; --",
      "a%2fb",
      "%",
    ]) {
      const { status } = await house.ask("POST", `/api/jobs/${name}/runs`, { body: { input: 1 } });
      expect([400, 404]).toContain(status);
      expect([400, 404]).toContain((await house.ask("GET", `/api/schedules/${name}`)).status);
    }
    for (const text of ["%", "_", "\\", "' or 1=1 --", "$$"]) {
      const { status } = await house.ask("GET", `/api/runs?text=${encodeURIComponent(text)}`);
      expect(status).toBe(200);
    }
  });
});

describe("every answer", () => {
  test("carries its request id, the caller's own if it is a plain one, and the headers that keep it safe", async () => {
    const own = await house.ask("GET", "/api/runs", { headers: { "x-request-id": "trace-1.a:b" } });
    expect(own.headers.get("x-request-id")).toBe("trace-1.a:b");
    const bad = await house.ask("GET", "/api/nowhere", { headers: { "x-request-id": "<script>" } });
    expect(bad.body.requestId).toMatch(/^[0-9a-f-]{36}$/);
    for (const { headers } of [own, bad]) {
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("cache-control")).toBe("no-store");
    }
    // There is no data in the page: it may be kept, but is asked for again each time.
    const { headers } = await house.ask("GET", "/", { secret: null });
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cache-control")).toBe("no-cache");
  });

  test("the page is open, holds no data, and may load only its own files", async () => {
    const page = await house.ask("GET", "/", { secret: null });
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.text).not.toContain("<script");
  });

  test("nothing is changed by GET", async () => {
    for (const path of [
      "/api/tick",
      "/api/schedules/s/trigger",
      "/api/schedules/s/pause",
      "/api/runs/cancel",
    ]) {
      const { status, headers } = await house.ask("GET", path);
      expect([status, status === 405 ? headers.get("allow") : "POST"]).toEqual([
        path === "/api/runs/cancel" ? 404 : 405,
        "POST",
      ]);
    }
  });

  test("the log line of a failed request shows no secret of the server and no password", async () => {
    const lines: object[] = [];
    const keep = (fields: object) => void lines.push(fields);
    const logger = { debug: keep, info: keep, warn: keep, error: keep };
    const broken = new Holdfast({ database: "sqlite::memory:", logger });
    const message = `lost postgres://app:s3cret@db/main, sent ${SECRETS.admin}`;
    broken.runs.list = () => Promise.reject(new Error(message));
    const handler = createHandler(broken, { secrets: SECRETS });
    const headers = { authorization: `Bearer ${SECRETS.read}` };
    const response = await handler(new Request("http://h/api/runs", { headers }));
    expect(response.status).toBe(500);
    expect(lines).toMatchObject([
      { error: { message: "lost postgres://app:***@db/main, sent ***" } },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/s3cret|the-admin/);
    await broken.stop();
  });

  test("an internal error is only in the log", async () => {
    const broken = new Holdfast({ database: "sqlite::memory:", logger: quiet });
    broken.runs.list = () => Promise.reject(new Error("secret of the house"));
    const handler = createHandler(broken, { secrets: SECRETS });
    const headers = { authorization: `Bearer ${SECRETS.read}`, "x-request-id": "r-1" };
    const response = await handler(new Request("http://h/api/runs", { headers }));
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).not.toContain("secret of the house");
    expect(JSON.stringify(told)).toContain("secret of the house");
    expect(JSON.stringify(told)).toContain("r-1");
    await broken.stop();
  });
});

const told: object[] = [];
const hear = (fields: object) => void told.push(fields);
const quiet = { debug: hear, info: hear, warn: hear, error: hear };

describe("the page's session", () => {
  const begin = (secret: string) =>
    house.ask("POST", "/api/session", { secret: null, body: { secret } });
  const cookieOf = (header: string | null) => header?.split(";")[0] ?? "";

  test("a secret gives a cookie that scripts cannot read and other sites cannot send", async () => {
    const { headers, body } = await begin(SECRETS.read);
    const cookie = headers.get("set-cookie") ?? "";
    expect(body.scopes).toEqual(["read"]);
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
    const asked = await house.ask("GET", "/api/runs", {
      secret: null,
      headers: { cookie: cookieOf(cookie) },
    });
    expect(asked.status).toBe(200);
  });

  test("a change needs our own page beside the cookie", async () => {
    const cookie = cookieOf((await begin(SECRETS.admin)).headers.get("set-cookie"));
    const pause = (headers: Record<string, string>) =>
      house.ask("POST", "/api/schedules/s/pause", {
        secret: null,
        body: {},
        headers: { cookie, host: "127.0.0.1:4780", ...headers },
      });
    expect((await pause({})).body.error).toBe("origin_refused");
    expect((await pause({ origin: "https://evil.example" })).body.error).toBe("origin_refused");
    expect(
      (await pause({ "sec-fetch-site": "cross-site", origin: "http://127.0.0.1:4780" })).status,
    ).toBe(403);
    expect((await pause({ origin: "http://127.0.0.1:4780" })).status).toBe(200);
  });

  test("one that was ended, forged or made with another secret opens nothing", async () => {
    const cookie = cookieOf((await begin(SECRETS.read)).headers.get("set-cookie"));
    const read = async (value: string, handler = house.handler) =>
      (await handler(new Request("http://h/api/runs", { headers: { cookie: value } }))).status;
    expect(await read(cookie.replace(/=./, (first) => (first === "=0" ? "=1" : "=0")))).toBe(401);
    expect(await read(`${cookie}x`)).toBe(401);
    expect(
      await read(
        cookie,
        createHandler(house.holdfast, { secrets: { read: "another-reading-secret" } }),
      ),
    ).toBe(401);
    expect(await read(cookie)).toBe(200);
    await house.ask("DELETE", "/api/session", { secret: null, headers: { cookie } });
    expect(await read(cookie)).toBe(401);
  });
});
