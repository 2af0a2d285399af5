// Two hints about where a claim has to read: where it starts in the index of waiting runs, and which days of history hold
// the runs that it takes. Both only save work: a claim that misses a run because of a hint is repeated without it.

import type { RunId } from "../../runs/rules/run.js";
import type { Clock } from "../../shared/ports.js";
import { firstIdAt } from "../retention.js";
import { DAY_MS } from "./days.js";

// ── where a claim starts to read the index ───────────────────────────────────────────────────────
// Claimed rows stay in the index until they are vacuumed, for minutes if a transaction is held open, and every claim
// would walk over them; so a worker that drains a backlog remembers the oldest run that it saw and starts there. It is
// only a hint: from time to time, and whenever a claim returns fewer runs than requested, the whole index is read
// again.

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

// ── which days hold the runs ─────────────────────────────────────────────────────────────────────
// The server opens every partition that a statement may read, also those in which it then reads nothing, and thirty
// days made a claim of one run a third slower. Nearly all claimed runs were made in the last two days, so a claim reads
// only these. This is only a hint: the caller notices when a claimed run is missing, reads the claim again from all
// days, and claims read all days for a while.

const RECENT_DAYS = 2;
/** Runs that were made long ago often come together: a backlog, or runs that were enqueued for today weeks ago. */
const ALL_DAYS_MS = 60_000;

const FIRST_ID = "00000000-0000-0000-0000-000000000000";
const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

type IdRange = { readonly idsFrom: RunId; readonly idsUntil: RunId };
export const ALL_DAYS: IdRange = { idsFrom: FIRST_ID, idsUntil: LAST_ID };

export class ClaimedDays {
  readonly #clock: Clock;
  #allUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The ids among which the next claim looks for its runs. */
  range(): IdRange {
    if (this.#clock.monotonicMs() < this.#allUntilMs) return ALL_DAYS;
    const today = this.#clock.wallMs() - (this.#clock.wallMs() % DAY_MS);
    return {
      idsFrom: firstIdAt(today - RECENT_DAYS * DAY_MS),
      // Runs of an app whose clock is ahead lie in the partition of tomorrow, which exists already.
      idsUntil: firstIdAt(today + 2 * DAY_MS),
    };
  }

  /** A claimed run lies outside of the range. */
  missed(): void {
    this.#allUntilMs = this.#clock.monotonicMs() + ALL_DAYS_MS;
  }
}
