// Remembers where a claim starts to read its index. Claimed rows stay in the index until they are vacuumed, for minutes
// if a transaction is held open, and every claim would walk over them; so a worker that drains a backlog remembers the
// oldest run that it saw and starts there. It is only a hint: from time to time, and whenever a claim returns fewer
// runs than requested, the whole index is read again.

import type { Clock } from "../../shared/ports.js";

/** A run that became ready with an earlier position waits for about this long. */
const LOOK_BACK_EVERY_MS = 500;
/** Reading from the beginning may take no more than a tenth of the time, however many rows lie there. */
const LOOK_BACK_SHARE = 10;
/** Small claims read from the beginning, so that an urgent run is never passed by. */
const CLAIM_MIN = 100;

export const FROM_THE_START = "-9223372036854775808";

export class ClaimScanStart {
  readonly #clock: Clock;
  readonly #bounds = new Map<string, { readonly low: string; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The position from which a claim of this scope may read. */
  low(scope: string): string {
    const bound = this.#bounds.get(scope);
    return bound && this.#clock.monotonicMs() < bound.untilMs ? bound.low : FROM_THE_START;
  }

  /** Notes the result of a claim: `head` is the position of the oldest run that existed. */
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
