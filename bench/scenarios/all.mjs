// The scenarios in the order in which they run.

import { drainScenarios, sqliteDrainScenarios } from "./drain.mjs";
import { enqueueScenarios, sqliteEnqueueScenarios } from "./enqueue.mjs";
import { pickup } from "./pickup.mjs";

export const scenarios = [
  ...enqueueScenarios,
  pickup,
  ...drainScenarios,
  ...sqliteEnqueueScenarios,
  ...sqliteDrainScenarios,
];
