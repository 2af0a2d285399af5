// Where a claim begins to look. Claimed rows stay in the index until they are vacuumed, for minutes
// if a transaction is held open, and every claim would walk over them; so a worker that drains a
// backlog remembers the oldest run it saw and begins there. Only a hint: from time to time, and
// whenever a claim comes back short, the whole index is looked at again.

import type { Clock } from "../../shared/ports.js";

/** Runs that became ready with an earlier place wait for about this long. */
const LOOK_BACK_EVERY_MS = 500;
/** Looking back may take no more than a tenth of the time, however much lies behind. */
const LOOK_BACK_SHARE = 10;
/** Small claims look at everything: an urgent run is then never passed by. */
const CLAIM_MIN = 100;

export const FROM_THE_START = "-9223372036854775808";

export class ClaimScanStart {
  readonly #clock: Clock;
  readonly #bounds = new Map<string, { readonly low: string; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Where a claim of this scope may begin. */
  low(scope: string): string {
    const bound = this.#bounds.get(scope);
    return bound && this.#clock.monotonicMs() < bound.untilMs ? bound.low : FROM_THE_START;
  }

  /** What a claim saw: `head` is the place of the oldest run there was. */
  saw(params: {
    readonly scope: string;
    readonly low: string;
    readonly limit: number;
    readonly count: number;
    readonly head: string | null;
    readonly tookMs: number;
  }): void {
    const { scope, low, limit, count, head, tookMs } = params;
    if (head === null || count < limit || limit < CLAIM_MIN) {
      this.#bounds.delete(scope);
      return;
    }
    const earlier = this.#bounds.get(scope);
    const isContinued = earlier && low !== FROM_THE_START;
    const restMs = Math.max(LOOK_BACK_EVERY_MS, tookMs * LOOK_BACK_SHARE);
    const untilMs = isContinued ? earlier.untilMs : this.#clock.monotonicMs() + restMs;
    this.#bounds.set(scope, { low: head, untilMs });
  }
}
