// The definition of a store: what every database must do, test by test. A new store is right when
// this passes on it. One file per noun; the promises' numbers (S1…) are those of the design.

import { test as base, describe } from "vitest";
import { cancelSuite } from "./cancel-suite.js";
import { claimSuite } from "./claim-suite.js";
import { concurrencySuite } from "./concurrency-suite.js";
import { enqueueSuite } from "./enqueue-suite.js";
import { instanceSuite } from "./instance-suite.js";
import { keySuite } from "./key-suite.js";
import { listSuite } from "./list-suite.js";
import { modelSuite } from "./model-suite.js";
import { openSuite } from "./open-suite.js";
import { pollSuite } from "./poll-suite.js";
import { pruneSuite } from "./prune-suite.js";
import { reclaimSuite } from "./reclaim-suite.js";
import { renewSuite } from "./renew-suite.js";
import { retrySuite } from "./retry-suite.js";
import { type MakePlace, Scene, type SceneTest } from "./scene.js";
import { settleSuite } from "./settle-suite.js";
import { staleSuite } from "./stale-suite.js";
import { textSuite } from "./text-suite.js";

export type StoreSuiteOptions = {
  /** Whether several stores can be opened on one place. */
  readonly isShared: boolean;
  /** How many random histories are compared with the model. */
  readonly histories: number;
};

/** Every test gets a fresh place. */
export function sceneTest(makePlace: MakePlace): SceneTest {
  return base.extend<{ scene: Scene }>({
    scene: async ({ task: _ }, use) => {
      const scene = await Scene.start(await makePlace());
      await use(scene);
      await scene.end();
    },
  }) as SceneTest;
}

/** What one holder can see; half of the suite. */
export function describeStore(
  name: string,
  makePlace: MakePlace,
  { isShared, histories }: StoreSuiteOptions,
): void {
  const test = sceneTest(makePlace);
  describe(name, () => {
    describe("open", () => openSuite(test, { isShared }));
    describe("instances", () => instanceSuite(test));
    describe("enqueue", () => enqueueSuite(test));
    describe("keys", () => keySuite(test));
    describe("claim", () => claimSuite(test));
    describe("settle", () => settleSuite(test));
    describe("stale fences", () => staleSuite(test));
    describe("renew", () => renewSuite(test));
    describe("reclaim", () => reclaimSuite(test));
    describe("cancel", () => cancelSuite(test));
    describe("retry and remove", () => retrySuite(test));
    describe("poll and promote", () => pollSuite(test));
    describe("lists", () => listSuite(test));
    describe("prune", () => pruneSuite(test));
    describe("texts", () => textSuite(test));
    describe("random histories", () => modelSuite(test, { histories }));
    if (isShared) describe("several stores at once", () => concurrencySuite(test));
  });
}
