// Exports the simulator: it runs real instances on real SQL, in virtual time, from one seed, with faults of many kinds.
// A seed that breaks a promise is shrunk to a few faults and printed as a story.

export { type Counters, SOMETIMES, type Sometimes } from "./checkers/rare-states.js";
export type { Violation } from "./event-log.js";
export {
  type CampaignParams,
  type CampaignReport,
  missing,
  runCampaign,
  runSeed,
  type SeedOptions,
  type SeedReport,
  type Shrunk,
  shrinkSeed,
} from "./seeds.js";
