// The scenarios in the order in which they run.

import { claimCost } from "./claim-cost.mjs";
import { claimTime } from "./claim-time.mjs";
import { drainScenarios, sqliteDrainScenarios } from "./drain.mjs";
import { enqueueScenarios, sqliteEnqueueScenarios } from "./enqueue.mjs";
import { footprintScenarios } from "./footprint.mjs";
import { httpScenarios } from "./http.mjs";
import { itemScenarios } from "./items.mjs";
import { lockScenarios, sqliteLockScenarios } from "./locks.mjs";
import { nextTickScenarios } from "./next-ticks.mjs";
import { pickup } from "./pickup.mjs";
import { scheduleClaimScenarios } from "./schedule-claims.mjs";
import { scheduleCostScenarios } from "./schedule-cost.mjs";
import { fireScenarios } from "./schedules.mjs";
import { stepScenarios } from "./steps.mjs";
import { takeover } from "./takeover.mjs";
import { testingYear } from "./testing-year.mjs";

export const scenarios = [
  ...enqueueScenarios,
  pickup,
  ...drainScenarios,
  claimCost,
  claimTime,
  takeover,
  ...sqliteEnqueueScenarios,
  ...sqliteDrainScenarios,
  ...lockScenarios,
  ...sqliteLockScenarios,
  ...itemScenarios,
  ...stepScenarios,
  ...httpScenarios,
  ...nextTickScenarios,
  ...fireScenarios,
  ...scheduleCostScenarios,
  ...scheduleClaimScenarios,
  testingYear,
  ...footprintScenarios,
];
