// Which days of history a claim opens. The server opens every partition that a statement may read, also those in which
// it then reads nothing, and thirty days made a claim of one run a third slower. Nearly all claimed runs were made in the
// last two days, so a claim reads only these. This is only a hint: the caller notices when a claimed run is
// missing, reads the claim again from all days, and claims read all days for a while.

import type { RunId } from "../../runs/rules/run.js";
import type { Clock } from "../../shared/ports.js";
import { firstIdAt } from "../retention.js";
import { DAY_MS } from "./days.js";

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
      // Tomorrow's day is made already, and an app clock may be ahead.
      idsUntil: firstIdAt(today + 2 * DAY_MS),
    };
  }

  /** A claimed run lies outside of the range. */
  missed(): void {
    this.#allUntilMs = this.#clock.monotonicMs() + ALL_DAYS_MS;
  }
}
