// Uses named keys over HTTP on both databases: what they open, how they end, and what is stored of them.

import { createHash } from "node:crypto";
import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createHandler, type HandlerOptions } from "../../src/http/handler.js";
import type { Holdfast, KeyOptions } from "../../src/index.js";
import { serverInternals } from "../../src/instance/server-internals.js";
import { createTestHoldfast } from "../../src/testing/index.js";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, POSTGRES_URL, SECRETS } from "./house.js";

const OWN = { origin: "http://127.0.0.1:4780", host: "127.0.0.1:4780" };
const SECRET = /^hfk1_[0-9a-f]{64}$/;
const HOUR_MS = 3_600_000;

type Sent = { readonly headers?: Record<string, string>; readonly body?: object };

/** One more handler, as another instance would have it. */
function at(holdfast: Holdfast, options: HandlerOptions = { secrets: SECRETS }) {
  const handler = createHandler(holdfast, options);
  return async (method: string, path: string, { headers = {}, body }: Sent = {}) => {
    const request = new Request(`http://127.0.0.1:4780${path}`, {
      method,
      headers: { ...(body ? { "content-type": "application/json" } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const response = await handler(request);
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
    const answer = (await response.json()) as any;
    return { status: response.status, headers: response.headers, body: answer };
  };
}

const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });

async function signIn(call: ReturnType<typeof at>, secret: string): Promise<string> {
  const { headers } = await call("POST", "/api/session", { body: { secret } });
  return headers.get("set-cookie")?.split(";")[0] ?? "";
}

describe.each(DATABASES)("a named key on %s", (database) => {
  let house: House;
  beforeEach(async () => {
    house = await newHouse(database);
    house.holdfast.job("study", { lease: "60s" });
    house.holdfast.job("other", { lease: "60s" });
  });
  afterEach(() => house.end());

  async function made(name: string, options: KeyOptions): Promise<string> {
    const { status, body } = await house.ask("POST", "/api/keys", { body: { name, ...options } });
    expect([status, body.name]).toEqual([201, name]);
    expect(body.secret).toMatch(SECRET);
    return body.secret;
  }

  test("opens its scopes and nothing else, and configured secrets go on working", async () => {
    const secret = await made("reader", { scopes: ["read"] });
    expect((await house.ask("GET", "/api/runs", { secret })).status).toBe(200);
    for (const [method, path, body] of [
      ["POST", "/api/tick", {}],
      ["POST", "/api/jobs/study/runs", { input: 1 }],
      ["POST", "/api/pause", {}],
      ["GET", "/api/keys", undefined],
    ] as const) {
      const options = { secret, ...(body ? { body } : {}) };
      expect((await house.ask(method, path, options)).body.error).toBe("scope_missing");
    }
    expect((await house.ask("GET", "/api/me", { secret })).body).toMatchObject({
      scopes: ["read"],
      by: "reader",
    });
    expect((await house.ask("GET", "/api/runs", { secret: SECRETS.read })).status).toBe(200);
  });

  test("with limits reaches its jobs and queues alone, and begins no session", async () => {
    const secret = await made("eu", {
      scopes: ["enqueue", "worker"],
      jobs: ["study"],
      queues: ["eu"],
    });
    const enqueue = (job: string, queue: string) =>
      house.ask("POST", `/api/jobs/${job}/runs`, { secret, body: { input: 1, queue } });
    expect((await enqueue("study", "eu")).status).toBe(201);
    expect((await enqueue("other", "eu")).body.error).toBe("job_refused");
    expect((await enqueue("study", "us")).body.error).toBe("queue_refused");
    const claim = (jobs: string[]) =>
      house.ask("POST", "/api/worker/claim", { secret, body: { instance: "w", jobs, limit: 5 } });
    expect((await claim(["other"])).body.error).toBe("job_refused");
    await house.holdfast.enqueue("study", 2, { queue: "us" });
    expect((await claim(["study"])).body.runs).toMatchObject([{ job: "study", input: 1 }]);
    const session = { secret: null, body: { secret } };
    expect((await house.ask("POST", "/api/session", session)).status).toBe(401);
  });

  test("that was revoked is refused on every instance at once, and so are its sessions", async () => {
    const other = house.another();
    const calls = [at(house.holdfast), at(other)];
    const secret = await made("deploy", { scopes: ["read"] });
    const cookie = await signIn(calls[0] as ReturnType<typeof at>, secret);
    const statuses = () =>
      Promise.all(
        calls.flatMap((call) => [
          call("GET", "/api/runs", bearer(secret)).then(({ status }) => status),
          call("GET", "/api/runs", { headers: { cookie } }).then(({ status }) => status),
        ]),
      );
    expect(await statuses()).toEqual([200, 200, 200, 200]);
    expect((await house.ask("DELETE", "/api/keys/deploy")).status).toBe(200);
    expect(await statuses()).toEqual([401, 401, 401, 401]);
    expect((await house.ask("DELETE", "/api/keys/deploy")).body.error).toBe("key_not_found");
    const again = await made("deploy", { scopes: ["admin"] });
    expect(await statuses()).toEqual([401, 401, 401, 401]);
    expect((await calls[1]?.("GET", "/api/keys", bearer(again)))?.status).toBe(200);
    await other.stop({ grace: 0 });
  });

  test("that was revoked is refused also in a claim that was waiting by then", async () => {
    const secret = await made("eu-worker", { scopes: ["worker"] });
    const body = { instance: "w", jobs: ["study"], limit: 1, waitMs: 20_000 };
    const waiting = house.ask("POST", "/api/worker/claim", { secret, body });
    await until("the claim is authorized", async () =>
      (await house.holdfast.instances.list()).instances.some(({ id }) => id === "w"),
    );
    await house.holdfast.keys.revoke("eu-worker");
    const { status, body: answer } = await waiting;
    expect([status, answer.error]).toEqual([401, "unauthorized"]);
  });

  test("that was revoked ends its open event streams, and a logout those of its session", async () => {
    const secret = await made("reader", { scopes: ["read"] });
    const call = at(house.holdfast);
    const cookie = await signIn(call, SECRETS.admin);
    const open = async (headers: Record<string, string>) => {
      const request = new Request("http://127.0.0.1:4780/api/events", { headers });
      const { status, body } = await house.handler(request);
      expect(status).toBe(200);
      return body as ReadableStream<Uint8Array>;
    };
    const ended = async (stream: ReadableStream<Uint8Array>) => {
      for await (const _ of stream);
      return "ended";
    };
    const ofKey = await open({ authorization: `Bearer ${secret}` });
    const ofSession = await open({ cookie });
    const kept = ended(await open({ authorization: `Bearer ${SECRETS.read}` }));
    await house.holdfast.keys.revoke("reader");
    await call("DELETE", "/api/session", { headers: { cookie, ...OWN } });
    expect(await Promise.all([ended(ofKey), ended(ofSession)])).toEqual(["ended", "ended"]);
    expect(await Promise.race([kept, Promise.resolve("open")])).toBe("open");
  });

  test("has a name of its own: a second one is refused, and the first goes on", async () => {
    const secret = await made("deploy", { scopes: ["read"] });
    const body = { name: "deploy", scopes: ["admin"] };
    const second = await house.ask("POST", "/api/keys", { body });
    expect([second.status, second.body.error]).toEqual([409, "key_taken"]);
    expect((await house.ask("GET", "/api/me", { secret })).body.scopes).toEqual(["read"]);
    for (const wrong of [
      { name: "page", scopes: ["read"] },
      { name: "..", scopes: ["read"] },
      { name: "x", scopes: ["read"], jobs: ["study"] },
      { name: "x", scopes: ["enqueue"], jobs: [] },
      { name: "x", scopes: ["read"], expires: "1s" },
    ])
      expect((await house.ask("POST", "/api/keys", { body: wrong })).status).toBe(400);
  });

  test("is stored so that nothing in the database can be used in its place", async () => {
    const call = at(house.holdfast);
    const secret = await made("deploy", { scopes: ["admin"] });
    const cookie = await signIn(call, secret);
    await house.ask("POST", "/api/queues/mail/pause", { secret, body: {} });
    const stored = await tablesAsText(house.place);
    const digest = createHash("sha256").update(secret).digest("hex");
    expect(stored).toContain(digest);
    expect(stored).not.toContain(secret);
    expect(stored).not.toContain(secret.slice("hfk1_".length));
    expect(stored).not.toContain(cookie.split("=")[1]);
    const usable = [digest, `hfk1_${digest}`, `key:deploy:${digest.slice(0, 16)}`, "deploy"];
    for (const [at, text] of usable.entries()) {
      const address = `198.18.0.${at}`;
      expect((await house.ask("GET", "/api/runs", { secret: text, address })).status).toBe(401);
      const forged = { headers: { cookie: `holdfast_session=${text}` } };
      expect((await call("GET", "/api/runs", forged)).status).toBe(401);
    }
  });

  test("is in the audit trail by its name: made, used, signed in and revoked", async () => {
    const call = at(house.holdfast);
    const secret = await made("deploy", { scopes: ["admin"], expires: "90d" });
    await house.ask("POST", "/api/queues/mail/pause", { secret, body: {} });
    const cookie = await signIn(call, secret);
    await call("POST", "/api/queues/mail/resume", { headers: { cookie, ...OWN }, body: {} });
    await call("DELETE", "/api/session", { headers: { cookie, ...OWN } });
    await house.holdfast.keys.revoke("deploy");
    const { entries } = await house.holdfast.audit.list();
    expect(entries.map(({ who, verb, noun, name }) => [who, verb, noun, name]).reverse()).toEqual([
      ["http", "create", "key", "deploy"],
      ["deploy", "pause", "queue", "mail"],
      ["deploy", "begin", "session", null],
      ["deploy", "resume", "queue", "mail"],
      ["deploy", "end", "session", null],
      [house.holdfast.instanceId, "revoke", "key", "deploy"],
    ]);
    const [created] = (await house.holdfast.audit.list({ noun: "key", who: "http" })).entries;
    expect(created?.change).toBe("scopes admin; expires after 90 d");
  });

  test("is listed with scopes, limits, maker, last use and expiry, and without its secret", async () => {
    const secret = await made("eu", { scopes: ["worker"], queues: ["eu"], expires: "90d" });
    const listed = async () => (await house.ask("GET", "/api/keys")).body.keys;
    const [fresh] = await listed();
    expect(fresh).toEqual({
      name: "eu",
      scopes: ["worker"],
      jobs: null,
      queues: ["eu"],
      createdAt: expect.any(String),
      createdBy: "http",
      expiresAt: expect.any(String),
      isExpired: false,
      lastUsedAt: null,
    });
    expect(Date.parse(fresh.expiresAt) - Date.parse(fresh.createdAt)).toBe(90 * 24 * HOUR_MS);
    await house.ask("GET", "/api/me", { secret });
    const [used] = await listed();
    expect(used.lastUsedAt).toEqual(expect.any(String));
    await house.ask("GET", "/api/me", { secret });
    expect(await listed()).toEqual([used]);
  });

  test("is looked up only where something that looks like its secret was sent", async () => {
    const asked = vi.spyOn(house.holdfast[serverInternals], "store");
    const call = at(house.holdfast);
    await call("GET", "/api/runs");
    await call("GET", "/api/runs", bearer(SECRETS.read));
    await call("GET", "/api/runs", bearer("a-wrong-secret-of-nobody"));
    expect(asked.mock.calls.filter(([verb]) => verb === "keys")).toEqual([]);
    await call("GET", "/api/runs", bearer(`hfk1_${"0".repeat(64)}`));
    expect(asked.mock.calls.filter(([verb]) => verb === "keys")).toHaveLength(1);
  });

  test("counts for nothing where the host's own check decides", async () => {
    const secret = await made("deploy", { scopes: ["admin"] });
    const call = at(house.holdfast, { authorize: () => null });
    expect((await call("GET", "/api/runs", bearer(secret))).status).toBe(401);
  });

  test("opens a handler without configured secrets, and its page offers to sign in", async () => {
    const call = at(house.holdfast, { secrets: {} });
    expect((await call("GET", "/api/me")).body.login).toBe("none");
    await made("limited", { scopes: ["enqueue"], jobs: ["mail"] });
    await made("over", { scopes: ["read"], expires: "1h" });
    await expireIn(house.place, "over");
    expect((await call("GET", "/api/me")).body.login).toBe("none");
    const secret = await made("deploy", { scopes: ["read"] });
    expect((await call("GET", "/api/me")).body.login).toBe("secret");
    const cookie = await signIn(call, secret);
    expect((await call("GET", "/api/runs", { headers: { cookie } })).status).toBe(200);
  });

  test("is counted by a recovery, which cannot know later revocations", async () => {
    await made("deploy", { scopes: ["read"] });
    expect(await house.holdfast.recover()).toMatchObject({ keys: 1 });
  });
});

test("a key that has expired is refused by the database's clock, and so are its sessions", async () => {
  const kit = await createTestHoldfast({});
  const call = at(kit.holdfast);
  const { secret } = await kit.holdfast.keys.create("short", { scopes: ["read"], expires: "1h" });
  const cookie = await signIn(call, secret);
  const statuses = async () => [
    (await call("GET", "/api/runs", bearer(secret))).status,
    (await call("GET", "/api/runs", { headers: { cookie } })).status,
  ];
  await kit.advance(HOUR_MS - 1_000);
  expect(await statuses()).toEqual([200, 200]);
  await kit.advance(1_000);
  expect(await statuses()).toEqual([401, 401]);
  expect(await kit.holdfast.keys.list()).toMatchObject([{ name: "short", isExpired: true }]);
  await kit.close();
});

/** Lets the time of a key be over. */
async function expireIn({ database, schema }: House["place"], name: string): Promise<void> {
  if (database.startsWith("postgres")) {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    await client.query(`update "${schema}".access_key set expires_at = 1 where name = $1`, [name]);
    await client.end();
    return;
  }
  const file = new DatabaseSync(database.replace("sqlite:", ""));
  file.prepare("update holdfast_access_key set expires_at = 1 where name = ?").run(name);
  file.close();
}

/** Every row of every table, as whoever reads the database sees it. */
async function tablesAsText({ database, schema }: House["place"]): Promise<string> {
  if (database.startsWith("postgres")) {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    const { rows } = await client.query(
      "select tablename as name from pg_tables where schemaname = $1",
      [schema],
    );
    const texts: string[] = [];
    for (const { name } of rows)
      texts.push(JSON.stringify((await client.query(`select * from "${schema}"."${name}"`)).rows));
    await client.end();
    return texts.join("\n");
  }
  const file = new DatabaseSync(database.replace("sqlite:", ""));
  const tables = file.prepare("select name from sqlite_master where type = 'table'").all();
  const texts = tables.map(({ name }) =>
    JSON.stringify(file.prepare(`select * from "${String(name)}"`).all()),
  );
  file.close();
  return texts.join("\n");
}
