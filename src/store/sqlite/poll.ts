// Polls on SQLite: finds out whether there is work, reports that this instance is alive, and makes due runs ready. The
// poll is one statement that returns one JSON text, because an idle instance sends nothing else. Each part first finds
// out, by an index, whether there is any row to read.

import { CANCEL_GRACE_MS } from "../../runs/rules/run.js";
import { toGlobalPause } from "../pause.js";
import { COUNTERS } from "../rows.js";
import {
  type PollParams,
  type PollResult,
  type WorkVerbs,
  wakeAtOf,
  withoutPausedWork,
} from "../work.js";
import type { SqliteFile } from "./connection/connection.js";
import { HAS_LINE, LANES_OF_JOBS, MAY_CLAIM, type SqliteLimits } from "./limits.js";
import { POLLED_SCHEDULES } from "./schedule-statements.js";
import type { SqliteSession } from "./session.js";

export const PROMOTE = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select id, wake_at - priority * 60000, lane, policy, ${COUNTERS}, suspect from {waiting}
where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0)`;

const DELETE_PROMOTED = /* sql */ `
delete from {waiting} where id in (
  select id from {waiting} where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0))`;

const HAS_READY = (suspect: 0 | 1) => /* sql */ `
exists (select 1 from {ready}) and exists (
  select 1 from ${LANES_OF_JOBS}
  where ${MAY_CLAIM} and exists (select 1 from {ready} r where r.lane = l.id and r.suspect = ${suspect}))`;

// Every part that needs the lanes reads them again: as soon as one run is ready, a table of them in between takes three
// times as long as all other parts together (measured).
export const POLL = /* sql */ `
select json_object(
  'hasReady', ${HAS_READY(0)},
  'hasSuspect', case when ${HAS_READY(1)} then 1 else ${HAS_LINE(1)} end,
  'hasLimited', ${HAS_LINE(0)},
  'hasDue', exists (select 1 from {waiting} where gate is null and wake_at <= :now),
  'hasExpired', exists (select 1 from {lease} where until <= :now),
  'hasWakes', exists (select 1 from {signal} where is_new) or exists (select 1 from {wake}),
  'cancelRequested', (select json_group_array(c.key) from {lease} k, json_each(k.cancels) c
    where k.holder = :holder and k.cancels is not null
      and exists (select 1 from json_each(k.ids) m where m.value = c.key)),
  'hasOverdueCancel', exists (select 1 from {lease} k, json_each(k.cancels) c
    where k.cancels is not null and c.value + :cancelGraceMs <= :now
      and exists (select 1 from json_each(k.ids) m where m.value = c.key)),
  'nextWakeAt', (select min(wake_at) from {waiting} where gate is null and wake_at > :now),
  'paused', (select json_array(z.at, z.note) from {pause} z where z.until_at is null),
  'quiet', (select json_array(i.quiet_at, i.quiet_note) from {instance} i
    where i.no = :holder and i.quiet_at is not null),
  ${POLLED_SCHEDULES}
) as answer`;

/** A separate statement: it reads all instances, and few polls need it. */
const LAST_POLLED = /* sql */ `select max(polled_at) as at from {instance}`;

const SEE_INSTANCE = /* sql */ `
update {instance} set seen_at = :now, polled_at = iif(:isScheduler, :now, polled_at) where no = :holder`;

/** The result as SQLite writes it: booleans are 0 or 1. */
type Polled = {
  readonly [Member in keyof Omit<
    PollResult,
    "now" | "pause" | "lastPolledAt"
  >]: PollResult[Member] extends boolean ? 0 | 1 : PollResult[Member];
} & { readonly nextTickAt: number | null; readonly paused: unknown; readonly quiet: unknown };

export class SqliteWork implements WorkVerbs {
  readonly #session: SqliteSession;
  readonly #limits: SqliteLimits;

  constructor(session: SqliteSession, limits: SqliteLimits) {
    this.#session = session;
    this.#limits = limits;
  }

  poll(params: PollParams): Promise<PollResult> {
    const { file } = this.#session;
    return this.#session.transact("poll", (now) => {
      file.look();
      return pollOnce(file, params, now);
    });
  }

  promote({ limit }: { readonly limit: number }): Promise<number> {
    const { file } = this.#session;
    return this.#session.transact("promote", (now) => {
      const limited = this.#limits.promote({ limit }, now);
      // These runs now wait behind their gates: the rest of the limit is for due runs beside them.
      const rest = { limit: limit - limited, now };
      file.run(PROMOTE, rest);
      return limited + file.run(DELETE_PROMOTED, rest);
    });
  }
}

function pollOnce(
  file: SqliteFile,
  { holder, jobs, queues, isScheduler, wantsLastPoll = false }: PollParams,
  now: number,
): PollResult {
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
  // Written last: the result contains which instance polled before.
  file.run(SEE_INSTANCE, { holder, isScheduler, now });
  const { cancelRequested, nextWakeAt, nextTickAt } = polled;
  const wakeAt = Math.min(nextWakeAt ?? Infinity, nextTickAt ?? Infinity);
  return withoutPausedWork({
    now,
    pause: toGlobalPause(polled),
    hasReady: polled.hasReady === 1,
    hasSuspect: polled.hasSuspect === 1,
    hasLimited: polled.hasLimited === 1,
    hasDue: polled.hasDue === 1,
    hasExpired: polled.hasExpired === 1,
    hasWakes: polled.hasWakes === 1,
    hasDueSchedule: polled.hasDueSchedule === 1,
    hasFreeGate: polled.hasFreeGate === 1,
    hasGated: polled.hasGated === 1,
    lastPolledAt,
    hasOverdueCancel: polled.hasOverdueCancel === 1,
    cancelRequested,
    nextWakeAt: wakeAtOf(wakeAt === Infinity ? null : wakeAt),
  });
}
