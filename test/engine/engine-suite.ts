// The engine's promises, tested on a database whose time the test moves.

import { test as base, describe } from "vitest";
import { hostileSuite } from "./hostile-suite.js";
import { retrySuite } from "./retry-suite.js";
import { runSuite } from "./run-suite.js";
import { type EnginePlace, World, type WorldTest } from "./world.js";

export function describeEngine(name: string, makePlace: () => Promise<EnginePlace>): void {
  const test: WorldTest = base.extend<{ world: World }>({
    // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this needs nothing.
    world: async ({}, use) => {
      const world = new World(await makePlace());
      await use(world);
      await world.end();
    },
  });
  describe(name, () => {
    describe("a run", () => runSuite(test));
    describe("a failure", () => retrySuite(test));
    describe("a hostile value", () => hostileSuite(test));
  });
}
