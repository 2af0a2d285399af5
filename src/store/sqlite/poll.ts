// One poll on SQLite: what there is to do, and that this instance is here; and runs whose time has come.

import { CANCEL_GRACE_MS } from "../../runs/rules/run.js";
import { toGlobalPause } from "../pause.js";
import { heeding } from "../record.js";
import type * as store from "../store.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteSession } from "./session.js";
import { LAST_POLLED, POLL, SEE_INSTANCE } from "./sql/poll.js";
import * as sql from "./sql/statements.js";

/** The answer as SQLite writes it: truth is 0 or 1. */
type Polled = {
  readonly [Member in keyof Omit<
    store.PollAnswer,
    "now" | "halt" | "lastPolledAt"
  >]: store.PollAnswer[Member] extends boolean ? 0 | 1 : store.PollAnswer[Member];
} & { readonly nextTickAt: number | null; readonly paused: unknown; readonly quiet: unknown };

export class SqlitePoll implements Pick<store.Store, "poll" | "promote"> {
  readonly #asker: SqliteSession;
  readonly #flow: SqliteLimits;

  constructor(asker: SqliteSession, flow: SqliteLimits) {
    this.#asker = asker;
    this.#flow = flow;
  }

  poll(params: store.PollParams): Promise<store.PollAnswer> {
    const { file } = this.#asker;
    return this.#asker.write("poll", (now) => {
      file.look();
      return pollOnce(file, params, now);
    });
  }

  promote({ limit }: { readonly limit: number }): Promise<number> {
    const { file } = this.#asker;
    return this.#asker.write("promote", (now) => {
      const limited = this.#flow.promote({ limit }, now);
      // Those are behind their gates now: as many as are left of the limit are due beside them.
      const rest = { limit: limit - limited, now };
      file.run(sql.PROMOTE, rest);
      return limited + file.run(sql.DELETE_PROMOTED, rest);
    });
  }
}

function pollOnce(
  file: SqliteFile,
  { holder, jobs, queues, isScheduler, wantsLastPoll = false }: store.PollParams,
  now: number,
): store.PollAnswer {
  const row = file.get(POLL, {
    holder,
    now,
    isScheduler,
    cancelGraceMs: CANCEL_GRACE_MS,
    jobs: JSON.stringify(jobs),
    queues: queues && JSON.stringify(queues),
  });
  const polled = JSON.parse(String(row?.answer)) as Polled;
  const isAsked = wantsLastPoll || polled.hasDueSchedule === 1;
  const lastPolledAt = isAsked ? (file.get(LAST_POLLED)?.at as number | null) : null;
  // Last: who had polled before is part of the answer.
  file.run(SEE_INSTANCE, { holder, isScheduler, now });
  const { cancelRequested, nextWakeAt, nextTickAt } = polled;
  const wakeAt = Math.min(nextWakeAt ?? Infinity, nextTickAt ?? Infinity);
  return heeding({
    now,
    halt: toGlobalPause(polled),
    hasReady: polled.hasReady === 1,
    hasSuspect: polled.hasSuspect === 1,
    hasLimited: polled.hasLimited === 1,
    hasDue: polled.hasDue === 1,
    hasExpired: polled.hasExpired === 1,
    hasDueSchedule: polled.hasDueSchedule === 1,
    hasFreeGate: polled.hasFreeGate === 1,
    hasGated: polled.hasGated === 1,
    lastPolledAt,
    hasOverdueCancel: polled.hasOverdueCancel === 1,
    cancelRequested,
    nextWakeAt: wakeAt === Infinity ? null : wakeAt,
  });
}
