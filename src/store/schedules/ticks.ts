// Reads the ledger of schedules: one row for a tick, or for a stretch of ticks with the same reason.

import type { RunStatus } from "../../runs/rules/run.js";
import {
  type Evidence,
  OUTCOMES,
  type Outcome,
  REASONS,
  type Reason,
  type TickEntry,
} from "../../schedules/rules/tick.js";
import { json, type Row, statusOf, textOrNull } from "../rows.js";
import type { StoreSession } from "../session.js";

/** Few ticks have a run that has not ended, so searching the leases for those costs little. */
const columns = (isHeld: string) => /* sql */ `
t.at, t.last_at, t.count, t.reason, t.recorded_at, t.version, t.run, t.evidence, s.name as schedule, i.id as recorded_by,
coalesce((select o.status from {outcome} o where o.id = t.run),
  case when t.run is null then null
    when exists (${isHeld}) then 0
    when exists (select 1 from {run} r where r.id = t.run) then -1 end) as run_status`;
const POSTGRES_COLUMNS = columns("select from {lease} k where t.run = any(k.ids)");
const SQLITE_COLUMNS = columns("select 1 from {lease} k, json_each(k.ids) m where m.value = t.run");

const SQLITE_FILTER = /* sql */ `
  and (:fromAt is null or t.last_at >= :fromAt)
  and (:outcome is null or t.outcome = :outcome)
  and (:beforeAt is null or (t.at, s.name) < (:beforeAt, :beforeSchedule))`;

// SQLite gets a fixed order of joins, and one bound for `toAt` and `before`, so that it enters the index where the page
// begins.
const LIST = {
  postgres: /* sql */ `
select ${POSTGRES_COLUMNS}
from {tick} t join {schedule} s on s.id = t.schedule left join {instance} i on i.no = t.holder
where (:fromAt::bigint is null or t.last_at >= :fromAt::bigint)
  and (:toAt::bigint is null or t.at <= :toAt::bigint)
  and (:outcome::smallint is null or t.outcome = :outcome::smallint)
  and (:beforeAt::bigint is null or (t.at, s.name) < (:beforeAt::bigint, :beforeSchedule::text collate "C"))
order by t.at desc, s.name desc limit :limit`,
  sqlite: /* sql */ `
select ${SQLITE_COLUMNS}
from {tick} t indexed by {tick_at} cross join {schedule} s on s.id = t.schedule
left join {instance} i on i.no = t.holder
where t.at <= :untilAt ${SQLITE_FILTER}
order by t.at desc, s.name desc limit (:limit + 0)`,
};

// On PostgreSQL the limit is inside, so that no row beyond the page is joined.
const LIST_OF_ONE = {
  postgres: /* sql */ `
select ${POSTGRES_COLUMNS}
from (select x.id, x.name from {schedule} x where x.name = :schedule::text) s,
  lateral (
    select x.* from {tick} x
    where x.schedule = s.id
      and (:fromAt::bigint is null or x.last_at >= :fromAt::bigint)
      and (:toAt::bigint is null or x.at <= :toAt::bigint)
      and (:outcome::smallint is null or x.outcome = :outcome::smallint)
      and (:beforeAt::bigint is null or x.at < :beforeAt::bigint)
    order by x.at desc limit :limit) t
  left join {instance} i on i.no = t.holder
order by t.at desc`,
  sqlite: /* sql */ `
select ${SQLITE_COLUMNS}
from {schedule} s cross join {tick} t on t.schedule = s.id left join {instance} i on i.no = t.holder
where s.name = :schedule and t.at <= :untilAt ${SQLITE_FILTER}
order by t.at desc limit (:limit + 0)`,
};

// Outcomes are read one by one: with joins PostgreSQL reads whole days of history.
const COMPLETED = /* sql */ `
select t.at from {tick} t where t.schedule = :schedule and t.at {any :ticks::bigint[]}
  and (select 1 from {outcome} o where o.id = t.run and o.status = 1) is not null
union
select b.at from {backfill_run} b where b.schedule = :schedule and b.at {any :ticks::bigint[]}
  and (select 1 from {outcome} o where o.id = b.run and o.status = 1) is not null
order by 1`;

export type TickRecord = TickEntry & {
  readonly schedule: string;
  /** The status of its run; null: it has none, or the run is no longer kept. */
  readonly runStatus: RunStatus | null;
  readonly recordedAt: number;
  readonly recordedBy: string | null;
  readonly version: number;
};

export type TickFilter = {
  readonly schedule?: string;
  /** Nominal times, both inclusive. A stretch counts if it overlaps them. */
  readonly fromAt?: number;
  readonly toAt?: number;
  readonly outcome?: Outcome;
  /** Newest first; continues before this first tick (and schedule, if all are listed). */
  readonly before?: { readonly at: number; readonly schedule: string };
  readonly limit: number;
};

export async function listTicks(
  session: StoreSession,
  { schedule, fromAt, toAt, outcome, before, limit }: TickFilter,
): Promise<readonly TickRecord[]> {
  const found = await session.read({
    verb: "schedules.ticks",
    sql: schedule === undefined ? LIST : LIST_OF_ONE,
    params: {
      schedule,
      fromAt: fromAt ?? null,
      toAt: toAt ?? null,
      untilAt: Math.min(toAt ?? Number.MAX_SAFE_INTEGER, before?.at ?? Number.MAX_SAFE_INTEGER),
      outcome: outcome === undefined ? null : OUTCOMES.indexOf(outcome),
      beforeAt: before?.at ?? null,
      beforeSchedule: before?.schedule ?? null,
      limit,
    },
  });
  return found.map(toTickRecord);
}

export async function completedTicks(
  session: StoreSession,
  params: { readonly schedule: number; readonly ticks: readonly number[] },
): Promise<readonly number[]> {
  const found = await session.read({ verb: "schedules.completedTicks", sql: COMPLETED, params });
  return found.map(({ at }) => Number(at));
}

function toTickRecord(row: Row): TickRecord {
  return {
    schedule: String(row.schedule),
    firstAt: Number(row.at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    reason: REASONS[Number(row.reason)] as Reason,
    run: textOrNull(row.run),
    runStatus: row.run_status === null ? null : statusOf(Number(row.run_status)),
    evidence: json<Evidence>(row.evidence),
    recordedAt: Number(row.recorded_at),
    recordedBy: textOrNull(row.recorded_by),
    version: Number(row.version),
  };
}
