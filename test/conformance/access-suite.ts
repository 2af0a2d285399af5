// Tests what both databases keep about access: sessions of the page until they run out, are ended or are crowded out by newer ones
// of the same secret; and named keys until they are revoked or have expired.

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
    await store.beginSession(SESSION);
    expect(await store.sessionSecret("d1")).toBe("s1");
    expect(await store.sessionSecret("d2")).toBeNull();
    scene.advance(HOUR_MS - 1);
    expect(await store.sessionSecret("d1")).toBe("s1");
    scene.advance(1);
    expect(await store.sessionSecret("d1")).toBeNull();
  });

  test("a session that was ended is gone, and an end without a session changes nothing", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.beginSession(SESSION);
    expect(await store.endSession({ digest: "d2" })).toBe(false);
    expect(await store.endSession({ digest: "d1" })).toBe(true);
    expect(await store.endSession({ digest: "d1" })).toBe(false);
    expect(await store.sessionSecret("d1")).toBeNull();
  });

  test("of one secret the newest sessions are kept, and those of other secrets stay", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.beginSession({ ...SESSION, digest: "other", secret: "s2" });
    for (const digest of ["d1", "d2", "d3", "d4", "d5"]) {
      scene.advance(1);
      await store.beginSession({ ...SESSION, digest });
    }
    const known = async (digest: string) => (await store.sessionSecret(digest)) !== null;
    const all = ["d1", "d2", "d3", "d4", "d5", "other"];
    expect(await Promise.all(all.map(known))).toEqual([false, false, true, true, true, true]);
  });

  test("sessions whose time is over are pruned, the others are not", async ({ scene }) => {
    const { store } = scene;
    await store.beginSession(SESSION);
    await store.beginSession({ ...SESSION, digest: "d2", lengthMs: 2 * HOUR_MS });
    scene.advance(HOUR_MS);
    const params = { keepMs: 24 * HOUR_MS, keepTicksMs: 24 * HOUR_MS, limit: 100 };
    expect(await store.prune(params)).toBe(1);
    expect(await store.prune(params)).toBe(0);
    expect(await store.sessionSecret("d2")).toBe("s1");
  });

  test("begin and end of a session keep their entries, once each", async ({ scene }) => {
    const { store } = scene;
    const entry = (verb: string) => auditEntry(ACTOR, { verb, noun: "session", name: null });
    await store.beginSession({ ...SESSION, audit: entry("begin") });
    await store.beginSession({ ...SESSION, audit: entry("begin") });
    await store.endSession({ digest: "d1", audit: entry("end") });
    await store.endSession({ digest: "d1", audit: entry("end") });
    const records = await store.audit({ limit: 10 });
    expect(records.map(({ verb, noun }) => `${verb} ${noun}`)).toEqual([
      "end session",
      "begin session",
    ]);
  });

  test("a key is found by its name and its digest, and has expired when its time is over by the database's clock", async ({
    scene,
  }) => {
    const { store } = scene;
    const created = await store.createKey(KEY);
    const { by, lifeMs, ...told } = KEY;
    expect(created).toMatchObject({ ...told, createdBy: by, usedAt: null, isExpired: false });
    expect((created?.expiresAt ?? 0) - (created?.createdAt ?? 0)).toBe(lifeMs);
    expect(await store.accessKey({ digest: DIGEST })).toEqual(created);
    expect(await store.accessKey({ name: "deploy" })).toEqual(created);
    expect(await store.accessKey({ name: "deplo" })).toBeNull();
    scene.advance(HOUR_MS - 1);
    expect(await store.accessKey({ digest: DIGEST })).toMatchObject({ isExpired: false });
    scene.advance(1);
    expect(await store.accessKey({ digest: DIGEST })).toMatchObject({ isExpired: true });
  });

  test("a name has one key: a second one changes nothing, and the same one again is the same", async ({
    scene,
  }) => {
    const { store } = scene;
    const created = await store.createKey({ ...KEY, lifeMs: null });
    expect(created?.expiresAt).toBeNull();
    expect(await store.createKey({ ...KEY, digest: "0b".repeat(32) })).toBeNull();
    expect(await store.accessKeys()).toEqual([created]);
  });

  test("a key that is revoked takes its sessions along, and leaves those of others", async ({
    scene,
  }) => {
    const { store } = scene;
    const { session = "" } = (await store.createKey(KEY)) ?? {};
    await store.beginSession({ ...SESSION, secret: session });
    await store.beginSession({ ...SESSION, digest: "d2" });
    expect(await store.revokeKey({ name: "other" })).toBe(false);
    expect(await store.revokeKey({ name: "deploy" })).toBe(true);
    expect(await store.revokeKey({ name: "deploy" })).toBe(false);
    expect(await store.accessKey({ digest: DIGEST })).toBeNull();
    expect(await store.sessionSecret("d1")).toBeNull();
    expect(await store.sessionSecret("d2")).toBe("s1");
    const next = await store.createKey({ ...KEY, digest: "0b".repeat(32) });
    expect(next?.session).not.toBe(session);
  });

  test("the last use of a key is written once an hour at most", async ({ scene }) => {
    const { store } = scene;
    await store.createKey({ ...KEY, lifeMs: null });
    expect(await store.accessKey({ name: "deploy" })).toMatchObject({ isUseDue: true });
    await store.touchKey("deploy");
    const used = await store.accessKey({ name: "deploy" });
    expect(used).toMatchObject({ usedAt: used?.createdAt, isUseDue: false });
    scene.advance(HOUR_MS - 1);
    await store.touchKey("deploy");
    expect(await store.accessKey({ name: "deploy" })).toEqual(used);
    scene.advance(1);
    expect(await store.accessKey({ name: "deploy" })).toMatchObject({ isUseDue: true });
    await store.touchKey("deploy");
    expect(await store.accessKey({ name: "deploy" })).toMatchObject({
      usedAt: (used?.usedAt ?? 0) + HOUR_MS,
    });
  });

  test("a key is pruned thirty days after it has expired, and never if it does not expire", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.createKey(KEY);
    await store.createKey({ ...KEY, name: "lasting", digest: "0b".repeat(32), lifeMs: null });
    const params = { keepMs: 24 * HOUR_MS, keepTicksMs: 24 * HOUR_MS, limit: 100 };
    scene.advance(HOUR_MS + 30 * 24 * HOUR_MS - 1);
    const kept = async () => {
      await store.prune(params);
      return (await store.accessKeys()).map(({ name }) => name);
    };
    expect(await kept()).toEqual(["deploy", "lasting"]);
    scene.advance(1);
    expect(await kept()).toEqual(["lasting"]);
  });
}
