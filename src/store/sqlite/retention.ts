// Removes rows past their retention on SQLite, a bounded number per call.

import { pruneExpiredKeys } from "../access/keys.js";
import { pruneSessions } from "../access/sessions.js";
import { pruneAlerts } from "../alerts/alerts.js";
import { pruneAudit } from "../audit.js";
import { prunePauses } from "../pause.js";
import { firstIdAt, type PruneParams, Retention, removeEnded, TICKS_KEPT } from "../retention.js";
import type { SqliteLimits } from "./limits.js";
import type { SqliteSession } from "./session.js";

/** A batch lasts as long as the run that made it: a later attempt may read it. */
export const PRUNE_BATCHES = /* sql */ `
delete from {batch} where id in (
  select b.id from {batch} b
  where b.ended_at < :now - :keepMs and not exists (select 1 from {run} r where r.id = b.run) limit (:limit + 0))`;

/**
 * Terminal runs past their retention, oldest first. Ids begin with the time of creation: younger ones are not visited.
 */
const OLD_RUNS = /* sql */ `
select o.id from {outcome} o where o.id < :before and o.finished_at < :now - :keepMs order by o.id limit (:limit + 0)`;
const PRUNE_KEYS = /* sql */ `
delete from {key} where (job, key) in (select job, key from {key} where expires_at <= :now limit (:limit + 0))`;
const PRUNE_INSTANCES = /* sql */ `
delete from {instance} where seen_at < :now - :keepMs - 86400000
  and not exists (select 1 from {lease} k where k.holder = {instance}.no)`;
const PRUNE_ROLLUPS = /* sql */ `
delete from {rollup} where hour_at < :now - max(:keepMs, 2678400000)`;

// A stretch is old when its last tick is; the index has its first tick, which is older.
const PRUNE_TICKS = /* sql */ `
delete from {tick} where (schedule, at) in (
  select schedule, at from {tick} indexed by {tick_at}
  where at < :now - :keepMs and last_at < :now - :keepMs order by at limit (:limit + 0))`;

/** Whole days, in the order of the index, from the position of the last visit. */
const VISIT_TICKS = /* sql */ `
select schedule, at from {tick} indexed by {tick_at}
where (at, schedule) > (:afterAt, :afterSchedule) and at < :untilAt order by at, schedule limit (:limit + 0)`;

/**
 * Of these rows, the ones to remove: postgres/days.ts (thinDay) says which stay. Conditions are ordered by their cost:
 * newer rows are counted only for rows that fired, or are not the first of their minute.
 */
const THIN_TICKS = /* sql */ `
delete from {tick} where (schedule, at) in (
  select t.schedule, t.at from json_each(:rows) e
  cross join {tick} t on t.schedule = e.value ->> 0 and t.at = e.value ->> 1
  where not (t.outcome <> 0 and (t.last_at >= t.at + 60000 or not exists (
      select 1 from {tick} x where x.schedule = t.schedule and x.at >= t.at - t.at % 60000 and x.at < t.at and x.outcome <> 0)))
    and ${TICKS_KEPT} <= (select count(*) from (
      select 1 from {tick} y where y.schedule = t.schedule and y.at > t.at
        and y.at < t.at - t.at % 86400000 + 86400000 + :keepTicksMs limit ${TICKS_KEPT})))`;
const PRUNE_BACKFILLS = /* sql */ `delete from {backfill} where ended_at < :now - :keepMs`;

/** Log lines older than their retention, of runs that still exist. */
const PRUNE_OLD_LOGS = /* sql */ `
delete from {log} where (run, fence, no) in (
  select g.run, g.fence, g.no from {log} g where g.run < :before and g.at < :now - :keepLogsMs
  order by g.run, g.fence, g.no limit (:limit + 0))`;

const DAY_MS = 86_400_000;
/** How many rows of the ledger one prune visits without finding one to remove. */
const VISITED_MAX = 10_000;

/** The parts whose own rows grow old. */
type Parts = {
  readonly session: SqliteSession;
  readonly limits: SqliteLimits;
};

export class SqliteRetention extends Retention {
  readonly #parts: Parts;
  /** The position in the ledger. */
  #thinned = { afterAt: -1, afterSchedule: 0 };

  constructor(parts: Parts) {
    super(parts.session);
    this.#parts = parts;
  }

  prune({ keepMs, keepTicksMs, keepLogsMs = keepMs, limit }: PruneParams): Promise<number> {
    const { session, limits } = this.#parts;
    const { file } = session;
    return session.transact("retention.prune", (now) => {
      const before = firstIdAt(now - keepMs);
      const old = file.all(OLD_RUNS, { keepMs, limit, now, before }).map(({ id }) => String(id));
      session.drive(removeEnded("sqlite", { ids: old }), now);
      const oldLines = { before: firstIdAt(now - keepLogsMs), keepLogsMs, limit, now };
      const rest = [
        file.run(PRUNE_KEYS, { limit, now }),
        file.run(PRUNE_INSTANCES, { keepMs, now }),
        file.run(PRUNE_ROLLUPS, { keepMs, now }),
        file.run(PRUNE_TICKS, { keepMs: Math.max(keepMs, keepTicksMs), limit, now }),
        keepTicksMs < keepMs ? this.#thinLedger({ keepTicksMs, limit, now }) : 0,
        file.run(PRUNE_BACKFILLS, { keepMs, now }),
        file.run(PRUNE_BATCHES, { keepMs, limit, now }),
        limits.prune(limit, now),
        keepLogsMs < keepMs ? file.run(PRUNE_OLD_LOGS, oldLines) : 0,
        session.drive(pruneAlerts({ keepMs, limit }), now),
        session.drive(prunePauses(keepMs), now),
        session.drive(pruneAudit({ keepMs, limit }), now),
        session.drive(pruneExpiredKeys(), now),
        session.drive(pruneSessions(), now),
      ];
      return rest.reduce((sum, removed) => sum + removed, old.length);
    });
  }

  /**
   * Runs inside a write transaction: of days past `keepTicksMs`, removes the rows that are not kept for as long as
   * runs. Each row is visited once in the life of this process, until a row is removed or enough were visited.
   */
  #thinLedger(params: {
    readonly keepTicksMs: number;
    readonly limit: number;
    readonly now: number;
  }) {
    const { keepTicksMs, limit, now } = params;
    const { file } = this.#parts.session;
    const untilAt = now - keepTicksMs - ((now - keepTicksMs) % DAY_MS);
    for (let visited = 0; visited < VISITED_MAX; visited += limit) {
      const rows = file.all(VISIT_TICKS, { ...this.#thinned, untilAt, limit });
      const last = rows.at(-1);
      if (!last) return 0;
      this.#thinned = { afterAt: Number(last.at), afterSchedule: Number(last.schedule) };
      const pairs = JSON.stringify(rows.map(({ schedule, at }) => [schedule, at]));
      const removed = file.run(THIN_TICKS, { rows: pairs, keepTicksMs });
      if (removed > 0) return removed;
    }
    return 0;
  }
}
