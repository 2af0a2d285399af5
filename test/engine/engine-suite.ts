// The engine's promises, tested on a database whose time the test moves.

import { test as base, describe } from "vitest";
import { endSuite } from "./end-suite.js";
import { faultSuite } from "./fault-suite.js";
import { hostileSuite } from "./hostile-suite.js";
import { leaseSuite } from "./lease-suite.js";
import { retrySuite } from "./retry-suite.js";
import { rhythmSuite } from "./rhythm-suite.js";
import { runSuite } from "./run-suite.js";
import { stopSuite } from "./stop-suite.js";
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
    describe("an end", () => endSuite(test));
    describe("a lease", () => leaseSuite(test));
    describe("a stop", () => stopSuite(test));
    describe("a fault", () => faultSuite(test));
    describe("a rhythm", () => rhythmSuite(test));
    describe("a hostile value", () => hostileSuite(test));
  });
}
