// One attempt as those know it who do something for it: which run, under which grant, told to stop how.

import type { LogsPolicy } from "../core/kept-logs.js";
import type { Claim, ClaimedRun } from "../store/store.js";

export type Attempted = {
  readonly run: ClaimedRun;
  readonly claim: Claim;
  /** Which of its log lines are kept. */
  readonly logs: LogsPolicy;
  /** It told something that may not be stored yet. */
  hasTold: boolean;
  signal(): AbortSignal;
};
