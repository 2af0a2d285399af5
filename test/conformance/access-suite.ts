// Sessions of the page: one is there until it runs out, is ended or is crowded out by newer ones of the same secret.

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
}
