// Tests what both databases keep about access: sessions of the dashboard until they expire, are ended or are displaced
// by newer ones of the same secret; and named keys until they are revoked or expire.

import { expect } from "vitest";
import { auditEntry } from "../../src/operations/rules/audit.js";
import type { SceneTest } from "./scene.js";

const HOUR_MS = 3_600_000;
const SESSION = { digest: "d1", secret: "s1", lengthMs: HOUR_MS, keep: 3 };
const ACTOR = {
  via: "http",
  who: "page",
  scope: null,
  address: "10.0.0.7",
  requestId: "r-1",
} as const;

const DIGEST = "0a".repeat(32);
const KEY = {
  name: "deploy",
  digest: DIGEST,
  scopes: ["read", "trigger"],
  jobs: null,
  queues: ["eu"],
  by: "ada@laptop",
  lifeMs: HOUR_MS,
};

export function accessSuite(test: SceneTest): void {
  test("a session belongs to its secret until its time is over by the database's clock", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.sessions.begin(SESSION);
    expect(await store.sessions.secret("d1")).toBe("s1");
    expect(await store.sessions.secret("d2")).toBeNull();
    scene.advance(HOUR_MS - 1);
    expect(await store.sessions.secret("d1")).toBe("s1");
    scene.advance(1);
    expect(await store.sessions.secret("d1")).toBeNull();
  });

  test("a session that was ended is gone, and an end without a session changes nothing", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.sessions.begin(SESSION);
    expect(await store.sessions.end({ digest: "d2" })).toBe(false);
    expect(await store.sessions.end({ digest: "d1" })).toBe(true);
    expect(await store.sessions.end({ digest: "d1" })).toBe(false);
    expect(await store.sessions.secret("d1")).toBeNull();
  });

  test("the newest sessions of one secret are kept, and those of other secrets stay", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.sessions.begin({ ...SESSION, digest: "other", secret: "s2" });
    for (const digest of ["d1", "d2", "d3", "d4", "d5"]) {
      scene.advance(1);
      await store.sessions.begin({ ...SESSION, digest });
    }
    const known = async (digest: string) => (await store.sessions.secret(digest)) !== null;
    const all = ["d1", "d2", "d3", "d4", "d5", "other"];
    expect(await Promise.all(all.map(known))).toEqual([false, false, true, true, true, true]);
  });

  test("a session that is begun again after a lost answer crowds out no other", async ({
    scene,
  }) => {
    const { store } = scene;
    for (const digest of ["d1", "d2", "d3"]) {
      await store.sessions.begin({ ...SESSION, digest });
      scene.advance(1);
    }
    await store.sessions.begin({ ...SESSION, digest: "d3" });
    for (const digest of ["d1", "d2", "d3"]) expect(await store.sessions.secret(digest)).toBe("s1");
  });

  test("expired sessions are pruned, the others are not", async ({ scene }) => {
    const { store } = scene;
    await store.sessions.begin(SESSION);
    await store.sessions.begin({ ...SESSION, digest: "d2", lengthMs: 2 * HOUR_MS });
    scene.advance(HOUR_MS);
    const params = { keepMs: 24 * HOUR_MS, keepTicksMs: 24 * HOUR_MS, limit: 100 };
    expect(await store.retention.prune(params)).toBe(1);
    expect(await store.retention.prune(params)).toBe(0);
    expect(await store.sessions.secret("d2")).toBe("s1");
  });

  test("begin and end of a session keep their entries, once each", async ({ scene }) => {
    const { store } = scene;
    const entry = (verb: string) => auditEntry(ACTOR, { verb, noun: "session", name: null });
    await store.sessions.begin({ ...SESSION, audit: entry("begin") });
    await store.sessions.begin({ ...SESSION, audit: entry("begin") });
    await store.sessions.end({ digest: "d1", audit: entry("end") });
    await store.sessions.end({ digest: "d1", audit: entry("end") });
    const records = await store.audit.list({ limit: 10 });
    expect(records.map(({ verb, noun }) => `${verb} ${noun}`)).toEqual([
      "end session",
      "begin session",
    ]);
  });

  test("a key is found by its name and its digest, and has expired when its time is over by the database's clock", async ({
    scene,
  }) => {
    const { store } = scene;
    const created = await store.keys.create(KEY);
    const { by, lifeMs, ...told } = KEY;
    expect(created).toMatchObject({ ...told, createdBy: by, usedAt: null, isExpired: false });
    expect((created?.expiresAt ?? 0) - (created?.createdAt ?? 0)).toBe(lifeMs);
    expect(await store.keys.get({ digest: DIGEST })).toEqual(created);
    expect(await store.keys.get({ name: "deploy" })).toEqual(created);
    expect(await store.keys.get({ name: "deplo" })).toBeNull();
    scene.advance(HOUR_MS - 1);
    expect(await store.keys.get({ digest: DIGEST })).toMatchObject({ isExpired: false });
    scene.advance(1);
    expect(await store.keys.get({ digest: DIGEST })).toMatchObject({ isExpired: true });
  });

  test("a name has one key: a second one changes nothing, and the same one again is the same", async ({
    scene,
  }) => {
    const { store } = scene;
    const created = await store.keys.create({ ...KEY, lifeMs: null });
    expect(created?.expiresAt).toBeNull();
    expect(await store.keys.create({ ...KEY, digest: "0b".repeat(32) })).toBeNull();
    expect(await store.keys.list()).toEqual([created]);
  });

  test("a key that is revoked takes its sessions along, and leaves those of others", async ({
    scene,
  }) => {
    const { store } = scene;
    const { session = "" } = (await store.keys.create(KEY)) ?? {};
    await store.sessions.begin({ ...SESSION, secret: session });
    await store.sessions.begin({ ...SESSION, digest: "d2" });
    expect(await store.keys.revoke({ name: "other" })).toBe(false);
    expect(await store.keys.revoke({ name: "deploy" })).toBe(true);
    expect(await store.keys.revoke({ name: "deploy" })).toBe(false);
    expect(await store.keys.get({ digest: DIGEST })).toBeNull();
    expect(await store.sessions.secret("d1")).toBeNull();
    expect(await store.sessions.secret("d2")).toBe("s1");
    const next = await store.keys.create({ ...KEY, digest: "0b".repeat(32) });
    expect(next?.session).not.toBe(session);
  });

  test("the last use of a key is written once an hour at most", async ({ scene }) => {
    const { store } = scene;
    await store.keys.create({ ...KEY, lifeMs: null });
    expect(await store.keys.get({ name: "deploy" })).toMatchObject({ isUseDue: true });
    await store.keys.touch("deploy");
    const used = await store.keys.get({ name: "deploy" });
    expect(used).toMatchObject({ usedAt: used?.createdAt, isUseDue: false });
    scene.advance(HOUR_MS - 1);
    await store.keys.touch("deploy");
    expect(await store.keys.get({ name: "deploy" })).toEqual(used);
    scene.advance(1);
    expect(await store.keys.get({ name: "deploy" })).toMatchObject({ isUseDue: true });
    await store.keys.touch("deploy");
    expect(await store.keys.get({ name: "deploy" })).toMatchObject({
      usedAt: (used?.usedAt ?? 0) + HOUR_MS,
    });
  });

  test("a key is pruned thirty days after it has expired, and never if it does not expire", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.keys.create(KEY);
    await store.keys.create({ ...KEY, name: "lasting", digest: "0b".repeat(32), lifeMs: null });
    const params = { keepMs: 24 * HOUR_MS, keepTicksMs: 24 * HOUR_MS, limit: 100 };
    scene.advance(HOUR_MS + 30 * 24 * HOUR_MS - 1);
    const kept = async () => {
      await store.retention.prune(params);
      return (await store.keys.list()).map(({ name }) => name);
    };
    expect(await kept()).toEqual(["deploy", "lasting"]);
    scene.advance(1);
    expect(await kept()).toEqual(["lasting"]);
  });
}
