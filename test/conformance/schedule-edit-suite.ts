// Schedules are made, edited, paused and deleted; every definition that was current is kept.

import { expect } from "vitest";
import { oneTick } from "../../src/schedules/rules/tick.js";
import type { SceneTest } from "./scene.js";
import {
  changeOf,
  DEFINITION,
  firedProgress,
  MINUTE_MS,
  progressOf,
  UPRIGHT,
} from "./schedule-fixtures.js";

const OTHER = '{"when":{"kind":"every","everyMs":60000},"overlap":"allow"}';

export function scheduleEditSuite(test: SceneTest): void {
  test("a new schedule is stored as given, at revision 1 and version 1", async ({ scene }) => {
    const given = {
      job: "study",
      definition: DEFINITION,
      input: '{ "b": 1,  "a": [] }',
      anchorAt: scene.now - 5,
      app: "shop",
      source: "code" as const,
      release: "1.2.3",
      codeHash: "h1",
      cursorAt: scene.now - 1,
      nextAt: scene.now + 7,
      tzdata: "2025b",
    };
    await scene.schedules.knowJob();
    const id = await scene.schedules.create("nightly", given);
    expect(await scene.schedules.state("nightly")).toEqual({
      ...UPRIGHT,
      ...given,
      isMonitor: false,
      beganAt: null,
      id,
      name: "nightly",
      revision: 1,
      version: 1,
      isJobKnown: true,
      isEnded: false,
      holdUntil: null,
      holdRun: null,
      lastRun: null,
      lastTickAt: null,
      isGated: false,
      isReplacing: false,
      deletedAt: null,
      createdAt: scene.now,
      updatedAt: scene.now,
      live: [],
      backfill: null,
      pauses: [],
    });
  });

  test("all of a new schedule's progress is stored", async ({ scene }) => {
    const progress = scene.schedules.progress({
      isEnded: true,
      nextAt: null,
      holdUntil: scene.now + 2,
      holdRun: scene.id(),
      lastRun: scene.id(),
      lastTickAt: scene.now - 3,
      isGated: true,
      isReplacing: true,
    });
    await scene.schedules.make("nightly", progress);
    expect(progressOf(await scene.schedules.state("nightly"))).toEqual(progress);
  });

  test("a taken name returns null and changes nothing", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const before = await scene.schedules.portrait("nightly");
    scene.advance(1_000);
    expect(await scene.schedules.create("nightly", { definition: OTHER })).toBeNull();
    expect(await scene.schedules.portrait("nightly")).toEqual(before);
  });

  test("the name of a deleted schedule is taken", async ({ scene }) => {
    await scene.schedules.make("nightly");
    await scene.schedules.remove("nightly");
    const before = await scene.schedules.portrait("nightly");
    expect(await scene.schedules.create("nightly", { codeHash: "h2" })).toBeNull();
    expect(await scene.schedules.portrait("nightly")).toEqual(before);
    const { id } = await scene.schedules.state("nightly");
    expect(await scene.store.schedules.seenDefinitions({ schedule: id })).toEqual([]);
  });

  test("of many concurrent creations of the same schedule, one succeeds", async ({ scene }) => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => scene.schedules.create("nightly")),
    );
    const [id, ...more] = answers.filter((answer) => answer !== null);
    expect(more).toEqual([]);
    expect((await scene.schedules.state("nightly")).id).toBe(id);
  });

  test("a schedule knows whether any instance has announced its job", async ({ scene }) => {
    await scene.schedules.create("nightly");
    expect((await scene.schedules.state("nightly")).isJobKnown).toBe(false);
    await scene.schedules.knowJob();
    expect((await scene.schedules.state("nightly")).isJobKnown).toBe(true);
  });

  test("the first version is stored with its author", async ({ scene }) => {
    await scene.schedules.make("nightly", { by: "ann", input: "[1]" });
    expect(await scene.store.schedules.versions({ name: "nightly" })).toEqual([
      {
        version: 1,
        kind: "created",
        at: scene.now,
        by: "ann",
        job: "study",
        definition: DEFINITION,
        input: "[1]",
        anchorAt: scene.now,
      },
    ]);
    expect(await scene.store.schedules.versions({ name: "nobody" })).toEqual([]);
  });

  test("a schedule from code counts its definition as seen; one from a call does not", async ({
    scene,
  }) => {
    const code = await scene.schedules.make("code", { codeHash: "h1", release: "7" });
    const call = await scene.schedules.make("call");
    expect(await scene.store.schedules.seenDefinitions({ schedule: code.id })).toEqual([
      { hash: "h1", release: "7", firstSeenAt: scene.now },
    ]);
    expect(await scene.store.schedules.seenDefinitions({ schedule: call.id })).toEqual([]);
  });

  test("a definition is seen first once, unless it is forced", async ({ scene }) => {
    const { id } = await scene.schedules.make("nightly", { codeHash: "h1" });
    const firstAt = scene.now;
    const edit = (codeHash: string, isForced: boolean) => {
      scene.advance(1_000);
      return scene.schedules.change("nightly", {
        edit: scene.schedules.edit({ kind: "edited", codeHash, isForced }),
      });
    };
    const seen = async () => {
      const all = await scene.store.schedules.seenDefinitions({ schedule: id });
      return new Map(all.map(({ hash, firstSeenAt }) => [hash, firstSeenAt - firstAt]));
    };
    await edit("h2", false);
    await edit("h1", false);
    expect(await seen()).toEqual(new Map([["h1", 0]]).set("h2", 1_000));
    await edit("h1", true);
    expect(await seen()).toEqual(new Map([["h1", 3_000]]).set("h2", 1_000));
    expect((await scene.schedules.state("nightly")).codeHash).toBe("h1");
  });

  test("an edit settles ticks by the old version and then shows the new definition", async ({
    scene,
  }) => {
    const before = await scene.schedules.make("nightly", { input: '"old"', tags: ["old"] });
    scene.advance(60 * MINUTE_MS);
    const id = scene.id();
    const at = scene.now;
    await scene.schedules.change("nightly", {
      progress: { ...firedProgress(before, { at, id }), nextAt: at + 1 },
      ticks: [oneTick(at, "on_time", { run: id })],
      runs: [scene.schedules.run({ id, nominalAt: at })],
      edit: scene.schedules.edit({
        kind: "edited",
        by: "bob",
        definition: OTHER,
        input: '"new"',
        tags: ["new"],
        anchorAt: at,
      }),
    });
    expect(await scene.schedules.ticks("nightly")).toMatchObject([{ version: 1, run: id }]);
    expect(await scene.record(id)).toMatchObject({ input: '"old"', tags: ["old"] });
    expect(await scene.schedules.state("nightly")).toMatchObject({
      version: 2,
      definition: OTHER,
      input: '"new"',
      anchorAt: at,
      nextAt: at + 1,
      createdAt: before.createdAt,
      updatedAt: at,
    });
    expect(await scene.store.schedules.versions({ name: "nightly" })).toMatchObject([
      { version: 1, kind: "created", definition: DEFINITION, at: before.createdAt },
      { version: 2, kind: "edited", definition: OTHER, input: '"new"', by: "bob", at },
    ]);
    const next = await scene.schedules.fire("nightly", { at: at + 1 });
    expect(await scene.record(next)).toMatchObject({ input: '"new"', tags: ["new"] });
    expect((await scene.schedules.ticks("nightly"))[0]).toMatchObject({ run: next, version: 2 });
  });

  test("a change without an edit keeps the version", async ({ scene }) => {
    await scene.schedules.make("nightly");
    await scene.schedules.fire("nightly");
    await scene.schedules.pause("nightly");
    expect(await scene.schedules.state("nightly")).toMatchObject({ version: 1 });
    expect(await scene.store.schedules.versions({ name: "nightly" })).toHaveLength(1);
  });

  test("a deleted schedule keeps its number and where it stood, and can be made again", async ({
    scene,
  }) => {
    const { id } = await scene.schedules.make("nightly");
    await scene.schedules.fire("nightly");
    const cursorAt = scene.now;
    scene.advance(1_000);
    await scene.schedules.remove("nightly");
    expect(await scene.schedules.state("nightly")).toMatchObject({
      id,
      cursorAt,
      nextAt: null,
      deletedAt: scene.now,
      version: 2,
    });
    await scene.schedules.change("nightly", {
      progress: { nextAt: scene.now + 1 },
      edit: scene.schedules.edit({ kind: "recreated" }),
    });
    expect(await scene.schedules.state("nightly")).toMatchObject({
      id,
      cursorAt,
      deletedAt: null,
      version: 3,
    });
    const versions = await scene.store.schedules.versions({ name: "nightly" });
    expect(versions.map(({ kind }) => kind)).toEqual(["created", "deleted", "recreated"]);
  });

  test("a pause stores the actor, the time and the reason, and a resume removes them", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly");
    const pause = { pausedAt: scene.now, pausedBy: "ann", pauseNote: 'it\'s "late"' };
    await scene.schedules.pause("nightly", pause);
    expect(await scene.schedules.state("nightly")).toMatchObject({ ...pause, nextAt: null });
    await scene.schedules.fire("nightly");
    expect(await scene.schedules.state("nightly")).toMatchObject(pause);
    await scene.schedules.change("nightly", { standing: UPRIGHT });
    expect(await scene.schedules.state("nightly")).toMatchObject(UPRIGHT);
  });

  test("a broken schedule has the time and the reason", async ({ scene }) => {
    const state = await scene.schedules.make("nightly");
    const standing = { ...UPRIGHT, brokenAt: scene.now, brokenError: "no such zone" };
    const progress = { nextAt: null };
    await scene.schedules.write([changeOf(state, { progress, standing })]);
    expect(await scene.schedules.state("nightly")).toMatchObject(standing);
  });

  test("states are read by name: deleted ones too, unknown ones not", async ({ scene }) => {
    for (const name of ["a", "b", "c"]) await scene.schedules.make(name);
    await scene.schedules.remove("b");
    const names = ["c", "nobody", "b"];
    const { now, schedules } = await scene.store.schedules.states({ names });
    expect(now).toBe(scene.now);
    expect(schedules.map(({ name }) => name).sort()).toEqual(["b", "c"]);
    expect((await scene.store.schedules.states({ names: [] })).schedules).toEqual([]);
  });
}
