// The simulator: real instances on real SQL, in virtual time, from one seed, with everything that can
// go wrong. A seed that breaks a promise is shrunk to few faults and told as a story.

export { type CampaignParams, type CampaignReport, missing, runCampaign } from "./campaign.js";
export { type Counters, SOMETIMES, type Sometimes } from "./checkers/rare-states.js";
export type { Violation } from "./event-log.js";
export { runSeed, type SeedOptions, type SeedReport } from "./seed.js";
export { type Shrunk, shrinkSeed } from "./shrink.js";
