// A tick and its run are written together or not at all, for every cause of a refused run.

import { test as base, describe, expect } from "vitest";
import { oneTick } from "../../src/schedules/rules/tick.js";
import { memoryPlace, POSTGRES_URL, postgresPlace } from "./places.js";
import { type MakePlace, Scene } from "./scene.js";
import { changeOf, firedProgress } from "./schedule-fixtures.js";

describeTickAtomicity("SQLite in memory", memoryPlace);
describe.skipIf(POSTGRES_URL === undefined)("with a server", () =>
  describeTickAtomicity("PostgreSQL", () => postgresPlace()),
);

function describeTickAtomicity(name: string, makePlace: MakePlace): void {
  const test = base.extend<{ scene: Scene }>({
    scene: async ({ task: _ }, use) => {
      const scene = await Scene.start(await makePlace());
      await use(scene);
      await scene.end();
    },
  });

  describe(`a tick on ${name}`, () => {
    test("whose run already exists leaves the ledger and the schedule unchanged", async ({
      scene,
    }) => {
      const [taken] = await scene.enqueued(1);
      const state = await scene.schedules.make("nightly");
      const before = await scene.schedules.portrait("nightly");
      const id = taken as string;
      const fire = scene.schedules.write([
        changeOf(state, {
          ticks: [oneTick(scene.now, "on_time", { run: id })],
          runs: [scene.schedules.run({ id, nominalAt: scene.now })],
          progress: firedProgress(state, { at: scene.now, id }),
        }),
      ]);
      await expect(fire).rejects.toThrow();
      expect(await scene.schedules.portrait("nightly")).toEqual(before);
    });

    test("whose job is unknown is refused with its run, and not fired without one", async ({
      scene,
    }) => {
      await scene.schedules.create("nightly");
      const state = await scene.schedules.state("nightly");
      const before = await scene.schedules.portrait("nightly");
      const run = scene.schedules.run({ nominalAt: scene.now });
      const fire = scene.schedules.write([
        changeOf(state, {
          ticks: [oneTick(scene.now, "on_time", { run: run.id })],
          runs: [run],
          progress: firedProgress(state, { at: scene.now, id: run.id }),
        }),
      ]);
      await expect(fire).rejects.toThrow();
      expect(await scene.schedules.portrait("nightly")).toEqual(before);
    });
  });
}
