// Reads statistics for operators, metrics and the dashboard: sums of ended runs, recent failures, the timeline of
// schedules, and a few figures whose cost is bounded however many rows there are.

import { WAITER_VOID_MS } from "../locks/rules/lock.js";
import type { RunId, RunStatus, TerminalStatus } from "../runs/rules/run.js";
import { REASONS, type Reason } from "../schedules/rules/tick.js";
import { numberOrNull, type Row, statusOf, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";

const GLANCE = /* sql */ `
select (select r.id from {run} r order by r.id desc limit 1) as newest,
  (select count(*) || ' ' || coalesce(max(k.fence), 0) || ' ' || coalesce(sum({length}(k.ids)), 0) from {lease} k) as held,
  (select sum(t.runs) from {rollup} t where t.hour_at > {now} - 3600000) as ended,
  (select a.id from {audit} a order by a.id desc limit 1) as audited,
  (select count(*) from {alert} a where a.resolved_at is null) as alerts`;

/** Modes 0 and 1: enqueued and scheduled. */
const SUMMARY = /* sql */ `
with now as materialized (select {now} as at),
ended as materialized (
  select r.hour_at - r.hour_at % :bucketMs::bigint as at, r.lane, r.status, sum(r.runs) as runs,
    coalesce(sum(r.runs) filter (where r.mode in (0, 1)), 0) as regular, sum(r.ran_ms) as ran_ms
  from {rollup} r
  where r.hour_at > coalesce(:at::bigint, (select now.at from now) - :agoMs::bigint) - 3600000
    and (:job::text is null or r.lane {any select l.id from {lane} l where l.job = :job::text})
  group by 1, 2, 3
)
select e.at, null as job, e.status, sum(e.runs) as runs, sum(e.regular) as regular, sum(e.ran_ms) as ran_ms
from ended e group by 1, 3
union all
select null, (select l.job from {lane} l where l.id = e.lane), e.status, sum(e.runs), sum(e.regular), sum(e.ran_ms)
from ended e group by 2, 3`;

/** `status <> 1` is the condition of the index, which SQLite does not derive from the other condition. */
const FAILURES = /* sql */ `
with newest as materialized (
  select o.id, o.lane, o.finished_at, o.error from {outcome} o where o.status = 2 and o.status <> 1
  order by o.id desc limit :limit
)
select o.id, (select l.job from {lane} l where l.id = o.lane) as job, o.finished_at, o.error from newest o
where o.finished_at >= coalesce(:at::bigint, {now} - :agoMs::bigint)
order by o.finished_at desc, o.id desc`;

/**
 * Few ticks have a run that has not ended, so searching the leases for those costs little. `cross join`: SQLite must
 * begin with the schedules.
 */
const TIMELINE = /* sql */ `
with ticks as materialized (
  select s.name as schedule, ({greatest}(t.at, :fromAt::bigint) - :fromAt::bigint) / :cellMs::bigint as cell,
    t.at, t.last_at, t.count, t.reason, {greatest}(0, t.recorded_at - t.at) as late_ms, t.run,
    case when t.run is null then null
      when o.id is not null then o.status
      when exists (select 1 from {lease} k where t.run {any k.ids}) then 0
      when exists (select 1 from {run} r where r.id = t.run) then -1 end as status
  from {schedule} s cross join {tick} t left join {outcome} o on o.id = t.run
  where s.name {any :names::text[]} and t.schedule = s.id and t.at <= :toAt::bigint and t.last_at >= :fromAt::bigint
)
select schedule, min(at) as first_at, max(last_at) as last_at, sum(count) as count, reason, status,
  max(late_ms) as late_ms, max(run::text) as run
from ticks group by schedule, cell, reason, status order by schedule, first_at, reason, status`;

/** A lane is counted by its index, up to the limit: a million pending runs cost no more than that. */
const figures = (isHeldLock: string) => /* sql */ `
with now as materialized (select {now} as at),
depth as materialized (
  select l.queue, 'ready' as state,
    (select count(*) from (select 1 from {ready} r where r.lane = l.id limit :limit) y) as runs
  from {lane} l
  union all
  select l.queue, 'waiting', w.runs
  from (select y.lane, count(*) as runs from (select x.lane from {waiting} x limit :limit) y group by 1) w
  join {lane} l on l.id = w.lane
  union all
  select l.queue, 'running', k.runs
  from (select x.lane, sum({length}(x.ids)) as runs from {lease} x group by 1) k
  join {lane} l on l.id = k.lane
),
live as materialized (
  select i.is_scheduler from {instance} i cross join now
  where i.retired_at is null and i.seen_at > now.at - {greatest}(60000, 3 * i.poll_ms)
)
select 'queue' as kind, d.queue as name, d.state, {least}(sum(d.runs), :limit) as value from depth d group by 2, 3
union all
select 'instance', '', 'any', count(*) from live
union all
select 'instance', '', 'scheduler', count(*) from live where is_scheduler
union all
select 'schedule', '', case when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end, count(*)
from {schedule} s where s.deleted_at is null group by 3
union all
select 'overdue', '', '', count(*) from {schedule} s cross join now
where s.next_at is not null and s.next_at < now.at - 300000
union all
select 'wait', '', case w.kind when 2 then 'signal' when 3 then 'run' else 'sleep' end, count(*)
from (select x.kind from {wait} x where x.ended_at is null limit :limit) w group by 3
union all
select 'lock', '', 'held', count(*) from {lock} l cross join now where ${isHeldLock}
union all
select 'lock', '', 'waiting', count(*) from {lock_waiter} w cross join now where w.seen_at > now.at - ${WAITER_VOID_MS}`;

/** PostgreSQL keeps the row of a lock after its release; on SQLite a release removes the row. */
const FIGURES = {
  postgres: figures("l.state = 0 and l.until > now.at"),
  sqlite: figures("l.until > now.at"),
};

/** The beginning: an instant, or a duration before now by the database's clock. */
export type Since = { readonly at: number } | { readonly agoMs: number };

type StatisticsFilter = {
  readonly since: Since;
  readonly bucketMs: number;
  readonly job: string | null;
};

/** Ended runs of one status: of one stretch of time (then `job` is null) or of one job. */
export type StatisticsRecord = {
  readonly at: number | null;
  readonly job: string | null;
  readonly status: TerminalStatus;
  readonly runs: number;
  /** Of these, the runs that were not made by hand: scheduled or enqueued. */
  readonly regular: number;
  readonly ranMs: number;
};

export type FailureRecord = {
  readonly id: RunId;
  readonly job: string;
  readonly finishedAt: number;
  /** JSON text. */
  readonly error: string | null;
};

/** Differs from an earlier value if meanwhile runs were stored, claimed or ended, or a person changed something. */
export type Glance = {
  readonly newestRun: RunId | null;
  /** Opaque: changes with the held runs and the ended ones. */
  readonly leases: string;
  /** The newest entry of the audit trail: changes by people add one. */
  readonly audited: number | null;
  readonly openAlerts: number;
};

type TimelineParams = {
  /** Names of schedules. */
  readonly names: readonly string[];
  readonly fromAt: number;
  readonly toAt: number;
  /** Equal ticks within this time, counted from `fromAt`, share a cell. */
  readonly cellMs: number;
};

export type TimelineCell = {
  readonly schedule: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  readonly reason: Reason;
  /** The status of their runs; null: there is none, or it was removed. */
  readonly status: RunStatus | null;
  /** The largest of them. */
  readonly lateMs: number;
  /** One of their runs. */
  readonly run: RunId | null;
};

/** One number: its kind, its subject (a queue, a schedule's status) and its state. */
export type FigureRecord = {
  readonly kind: "queue" | "instance" | "schedule" | "overdue" | "wait" | "lock";
  readonly name: string;
  readonly state: string;
  readonly value: number;
};

export class Statistics {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Cheap enough to be read every other second. */
  async glance(): Promise<Glance> {
    const [found = {}] = await this.#session.read({ verb: "statistics.glance", sql: GLANCE });
    return toGlance(found);
  }

  /** Sums of ended runs, by stretch of time and by job; whole hours. */
  async summary({ since, bucketMs, job }: StatisticsFilter): Promise<readonly StatisticsRecord[]> {
    const params = { bucketMs, job, ...sinceParams(since) };
    const found = await this.#session.read({ verb: "statistics.summary", sql: SUMMARY, params });
    return found.map(toStatisticsRecord);
  }

  /** Of the newest failed runs, at most `limit`, those that failed since then; the newest first. */
  async failures({
    since,
    limit,
  }: {
    readonly since: Since;
    readonly limit: number;
  }): Promise<readonly FailureRecord[]> {
    const params = { limit, ...sinceParams(since) };
    const found = await this.#session.read({ verb: "statistics.failures", sql: FAILURES, params });
    return found.map(toFailureRecord);
  }

  /** By schedule and time. A stretch counts if it overlaps the requested time. */
  async timeline(params: TimelineParams): Promise<readonly TimelineCell[]> {
    const found = await this.#session.read({ verb: "statistics.timeline", sql: TIMELINE, params });
    return found.map(toTimelineCell);
  }

  /** Counts stop at `limit` for each lane. */
  async figures(params: { readonly limit: number }): Promise<readonly FigureRecord[]> {
    const found = await this.#session.read({ verb: "statistics.figures", sql: FIGURES, params });
    return found.map(toFigureRecord);
  }
}

/** As the statements take it. */
export function sinceParams(since: Since): {
  readonly at: number | null;
  readonly agoMs: number | null;
} {
  return "at" in since ? { at: since.at, agoMs: null } : { at: null, agoMs: since.agoMs };
}

function toGlance(row: Row): Glance {
  return {
    newestRun: textOrNull(row.newest),
    leases: `${row.held} ${row.ended}`,
    audited: numberOrNull(row.audited),
    openAlerts: Number(row.alerts),
  };
}

function toStatisticsRecord(row: Row): StatisticsRecord {
  return {
    at: numberOrNull(row.at),
    job: textOrNull(row.job),
    status: statusOf(Number(row.status)) as TerminalStatus,
    runs: Number(row.runs),
    regular: Number(row.regular),
    ranMs: Number(row.ran_ms),
  };
}

function toFailureRecord(row: Row): FailureRecord {
  return {
    id: String(row.id),
    job: String(row.job),
    finishedAt: Number(row.finished_at),
    error: textOrNull(row.error),
  };
}

function toTimelineCell(row: Row): TimelineCell {
  const reason = REASONS[Number(row.reason)];
  if (reason === undefined) throw new Error(`A tick has the unknown reason ${row.reason}.`);
  return {
    schedule: String(row.schedule),
    firstAt: Number(row.first_at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    reason,
    status: row.status === null ? null : statusOf(Number(row.status)),
    lateMs: Number(row.late_ms),
    run: textOrNull(row.run),
  };
}

function toFigureRecord(row: Row): FigureRecord {
  return {
    kind: String(row.kind) as FigureRecord["kind"],
    name: String(row.name),
    state: String(row.state),
    value: Number(row.value),
  };
}
