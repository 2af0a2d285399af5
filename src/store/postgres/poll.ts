// Whether there is anything to do on PostgreSQL, and what makes waiting runs ready when their time has come.

import { CANCEL_GRACE_MS, type RunId } from "../../runs/rules/run.js";
import { toGlobalPause } from "../pause.js";
import { heeding } from "../record.js";
import type * as store from "../store.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/poll.js";

export class PostgresPoll implements Pick<store.Store, "poll" | "promote"> {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async poll(params: store.PollParams): Promise<store.PollAnswer> {
    const [row = {}] = await this.#asker.attempt("poll", this.#asker.beat, sql.POLL, {
      wantsLastPoll: false,
      ...params,
      cancelGraceMs: CANCEL_GRACE_MS,
    });
    return heeding({
      now: Number(row.now),
      halt: toGlobalPause(row),
      hasReady: row.hasReady === true,
      hasSuspect: row.hasSuspect === true,
      hasLimited: row.hasLimited === true,
      hasDue: row.hasDue === true,
      hasExpired: row.hasExpired === true,
      hasDueSchedule: row.hasDueSchedule === true,
      hasFreeGate: row.hasFreeGate === true,
      hasGated: row.hasGated === true,
      lastPolledAt: row.lastPolledAt === null ? null : Number(row.lastPolledAt),
      hasOverdueCancel: row.hasOverdueCancel === true,
      cancelRequested: (row.cancelRequested ?? []) as RunId[],
      nextWakeAt: row.nextWakeAt === null ? null : Number(row.nextWakeAt),
    });
  }

  async promote({ limit }: { readonly limit: number }): Promise<number> {
    const [row] = await this.#asker.attempt("promote", this.#asker.work, sql.PROMOTE, { limit });
    const promoted = Number(row?.promoted);
    return row?.newcomers === true ? Math.max(promoted, await this.lineUp(limit)) : promoted;
  }

  /** Limited runs that came in transactions which stay open for long: their flows are touched only now. */
  async lineUp(limit: number): Promise<number> {
    const [row] = await this.#asker.attempt("promote", this.#asker.work, sql.LINE_UP, { limit });
    return Number(row?.promoted);
  }
}
