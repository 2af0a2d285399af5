// Schedules that come from code: which program declared which, and which time zone rules they used.

import { expect } from "vitest";
import type { SceneTest } from "./scene.js";

const ALIVE_MS = 60_000;

export function scheduleCodeSuite(test: SceneTest): void {
  test("declared names are those of live instances of the same app", async ({ scene }) => {
    const declare = (instanceId: string, app: string | null, schedules: string[]) =>
      scene.announce(instanceId, scene.store, { app, schedules, isScheduler: true });
    await declare("one", "shop", ["a", "b"]);
    await declare("two", "shop", ["b", "c"]);
    await declare("three", "mail", ["d"]);
    await declare("four", null, ["e"]);
    const gone = await declare("gone", "shop", ["f"]);
    await scene.store.instances.retire({ holder: gone });
    const announced = async (app: string | null) =>
      [...new Set((await scene.store.schedules.declaredNames({ app })).announced)].sort();
    expect(await announced("shop")).toEqual(["a", "b", "c"]);
    expect(await announced("mail")).toEqual(["d"]);
    expect(await announced(null)).toEqual(["e"]);
    expect(await announced("nobody")).toEqual([]);
  });

  test("an instance counts as live for a minute, or for three polls if that is longer", async ({
    scene,
  }) => {
    const declare = (instanceId: string, name: string, pollMs: number) =>
      scene.announce(instanceId, scene.store, { app: "shop", schedules: [name], pollMs });
    const quick = await declare("quick", "a", 1_000);
    await declare("slow", "b", 40_000);
    const announced = async () =>
      [...(await scene.store.schedules.declaredNames({ app: "shop" })).announced].sort();
    scene.advance(ALIVE_MS - 1);
    expect(await announced()).toEqual(["a", "b"]);
    scene.advance(2);
    expect(await announced()).toEqual(["b"]);
    await scene.poll({ holder: quick });
    expect(await announced()).toEqual(["a", "b"]);
    scene.advance(120_000 - ALIVE_MS - 2);
    expect(await announced()).toEqual(["a", "b"]);
    scene.advance(4);
    expect(await announced()).toEqual([]);
  });

  test("an instance that is announced again declares its current schedules", async ({ scene }) => {
    const declare = (schedules: string[]) =>
      scene.announce("one", scene.store, { app: "shop", schedules });
    await declare(["a", "b"]);
    await declare(["c"]);
    expect((await scene.store.schedules.declaredNames({ app: "shop" })).announced).toEqual(["c"]);
  });

  test("a name was declared last by the program whose instance was seen last, also after it has ended", async ({
    scene,
  }) => {
    const declare = (instanceId: string, program: string | null, schedules: string[]) =>
      scene.announce(instanceId, scene.store, { app: "shop", program, schedules });
    const web = await declare("web", "dist/web.js", ["a", "b"]);
    scene.advance(1);
    await declare("worker", "dist/worker.js", ["b", "c"]);
    await declare("tool", null, ["d"]);
    const last = async (app: string) =>
      Object.fromEntries(
        await scene.store.schedules.lastDeclaredBy({ app, names: ["a", "b", "c", "d", "e"] }),
      );
    const others = { a: "dist/web.js", c: "dist/worker.js", d: null };
    expect(await last("shop")).toEqual({ ...others, b: "dist/worker.js" });
    scene.advance(1);
    await scene.store.instances.retire({ holder: web });
    expect(await last("shop")).toEqual({ ...others, b: "dist/web.js" });
    expect(await last("mail")).toEqual({});
  });

  test("stored names are those that came from the code of the same app", async ({ scene }) => {
    const code = { source: "code" as const, codeHash: "h" };
    await scene.schedules.make("a", { ...code, app: "shop" });
    await scene.schedules.make("b", { ...code, app: "shop" });
    await scene.schedules.make("c", { ...code, app: "mail" });
    await scene.schedules.make("d", { app: "shop" });
    await scene.schedules.make("e", { ...code });
    await scene.schedules.pause("b", { pausedBy: "ann" });
    const stored = async (app: string | null) =>
      (await scene.store.schedules.declaredNames({ app })).stored.toSorted((one, two) =>
        one.name < two.name ? -1 : 1,
      );
    expect(await stored("shop")).toEqual([
      { name: "a", pausedBy: null, isPaused: false },
      { name: "b", pausedBy: "ann", isPaused: true },
    ]);
    expect(await stored("mail")).toEqual([{ name: "c", pausedBy: null, isPaused: false }]);
    expect(await stored(null)).toEqual([{ name: "e", pausedBy: null, isPaused: false }]);
  });

  test("schedules are found by the rules of time zones that they were not computed with", async ({
    scene,
  }) => {
    await scene.schedules.make("a", { tzdata: "2025a" });
    await scene.schedules.make("b", { tzdata: "2025b" });
    await scene.schedules.make("c", { tzdata: "2024b" });
    await scene.schedules.make("interval", { tzdata: null });
    const found = async (not: string, limit = 10) =>
      [...(await scene.store.schedules.byTzdata({ not, limit }))].sort();
    expect(await found("2025b")).toEqual(["a", "c"]);
    expect(await found("2026a")).toEqual(["a", "b", "c"]);
    expect(await found("2026a", 2)).toHaveLength(2);
    await scene.schedules.change("a", { progress: { tzdata: "2025b" } });
    expect(await found("2025b")).toEqual(["c"]);
  });
}
