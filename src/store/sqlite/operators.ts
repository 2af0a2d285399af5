// Serves operators on SQLite, and reads the timeline.

import {
  type FailureRecord,
  type Glance,
  type InstanceFilter,
  type InstanceRecord,
  type OperatorStore,
  type StaleParams,
  type StatisticsFilter,
  type StatisticsRecord,
  sinceParams,
  toFailureRecord,
  toGlance,
  toInstanceRecord,
  toStatisticsRecord,
} from "../operators.js";
import {
  type TimelineCell,
  type TimelineParams,
  type TimelineStore,
  toTimelineCell,
} from "../timeline.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";

/** The same rules as in EXPIRE_STALE of postgres-operators.ts. */
export const EXPIRE_STALE = /* sql */ `
update {lease} as k set until = :now, deadline_at = iif(k.renewed_at <= :now - max(:silentMs, :respectsLeases * p.lease_ms),
  max(k.deadline_at, :now + 1), min(k.deadline_at, :now))
from {policy} p
where p.id = k.policy and k.until > :now
  and (k.renewed_at <= :now - max(:silentMs, :respectsLeases * p.lease_ms)
    or k.claimed_at <= :now - max(:ranMs, :respectsLeases * p.timeout_ms))`;

export const INSTANCES = /* sql */ `
with known as (
  select i.*, i.retired_at is null and i.seen_at > :now - max(60000, 3 * i.poll_ms) as is_live from {instance} i
),
page as materialized (
  select * from known
  where :isLive is null or (is_live = :isLive and no < :no) or (:isLive and not is_live)
  order by is_live desc, no desc limit (:limit + 0)
),
holding as materialized (
  select k.holder, sum(json_array_length(k.ids)) as runs from {lease} k group by k.holder
)
select p.*, coalesce((select h.runs from holding h where h.holder = p.no), 0) as held
from page p order by p.is_live desc, p.no desc`;

/** Modes 0 and 1: enqueued and scheduled. */
export const STATISTICS = /* sql */ `
with ended as materialized (
  select r.hour_at - r.hour_at % :bucketMs as at, r.lane, r.status, sum(r.runs) as runs,
    sum(iif(r.mode in (0, 1), r.runs, 0)) as regular, sum(r.ran_ms) as ran_ms
  from {rollup} r
  where r.hour_at > coalesce(:at, :now - :agoMs) - 3600000
    and (:job is null or r.lane in (select l.id from {lane} l where l.job = :job))
  group by 1, 2, 3
)
select e.at, null as job, e.status, sum(e.runs) as runs, sum(e.regular) as regular, sum(e.ran_ms) as ran_ms
from ended e group by 1, 3
union all
select null, l.job, e.status, sum(e.runs), sum(e.regular), sum(e.ran_ms)
from ended e join {lane} l on l.id = e.lane group by 2, 3`;

export const FAILURES = /* sql */ `
with newest as materialized (
  select o.id, o.lane, o.finished_at, o.error from {outcome} o where o.status = 2 and o.status <> 1
  order by o.id desc limit (:limit + 0)
)
select o.id, l.job, o.finished_at, o.error from newest o join {lane} l on l.id = o.lane
where o.finished_at >= coalesce(:at, :now - :agoMs)
order by o.finished_at desc, o.id desc`;

export const GLANCE = /* sql */ `
select (select r.id from {run} r order by r.id desc limit 1) as newest,
  (select count(*) || ' ' || max(k.fence) || ' ' || sum(json_array_length(k.ids)) from {lease} k) as held,
  (select sum(t.runs) from {rollup} t where t.hour_at > :now - 3600000) as ended,
  (select a.id from {audit} a order by a.id desc limit 1) as audited,
  (select count(*) from {alert} a where a.resolved_at is null) as alerts`;

/** Few ticks have a run that has not ended, so that looking for those among the leases costs little. */
export const TIMELINE = /* sql */ `
with ticks as materialized (
  select s.name as schedule, (max(t.at, :fromAt) - :fromAt) / :cellMs as cell,
    t.at, t.last_at, t.count, t.reason, max(0, t.recorded_at - t.at) as late_ms, t.run,
    case when t.run is null then null
      when o.id is not null then o.status
      when exists (select 1 from {lease} k, json_each(k.ids) m where m.value = t.run) then 0
      when exists (select 1 from {run} r where r.id = t.run) then -1 end as status
  from json_each(:names) n cross join {schedule} s on s.name = n.value cross join {tick} t on t.schedule = s.id
    left join {outcome} o on o.id = t.run
  where t.at <= :toAt and t.last_at >= :fromAt
)
select schedule, min(at) as first_at, max(last_at) as last_at, sum(count) as count, reason, status,
  max(late_ms) as late_ms, max(run) as run
from ticks group by schedule, cell, reason, status order by schedule, first_at, reason, status`;

export class SqliteOperators implements OperatorStore, TimelineStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;

  constructor(asker: SqliteSession) {
    this.#asker = asker;
    this.#file = asker.file;
  }

  async expireStale({ respectsLeases = false, ...times }: StaleParams): Promise<number> {
    const params = { ...times, respectsLeases: Number(respectsLeases) };
    return this.#asker.write("expireStale", (now) =>
      this.#file.run(EXPIRE_STALE, { ...params, now }),
    );
  }

  async glance(): Promise<Glance> {
    const [row = {}] = await this.#read(GLANCE, {});
    return toGlance(row);
  }

  async instances({ limit, after }: InstanceFilter): Promise<readonly InstanceRecord[]> {
    const params = { limit, isLive: after?.isLive ?? null, no: after?.no ?? null };
    return (await this.#read(INSTANCES, params)).map(toInstanceRecord);
  }

  async statistics({ since, ...rest }: StatisticsFilter): Promise<readonly StatisticsRecord[]> {
    const rows = await this.#read(STATISTICS, { ...rest, ...sinceParams(since) });
    return rows.map(toStatisticsRecord);
  }

  async failures({
    since,
    limit,
  }: Parameters<OperatorStore["failures"]>[0]): Promise<readonly FailureRecord[]> {
    return (await this.#read(FAILURES, { limit, ...sinceParams(since) })).map(toFailureRecord);
  }

  async timeline({ names, ...rest }: TimelineParams): Promise<readonly TimelineCell[]> {
    const params = { ...rest, names: JSON.stringify(names) };
    return (await this.#file.read(() => this.#file.all(TIMELINE, params))).map(toTimelineCell);
  }

  #read(template: string, params: Row): Promise<Row[]> {
    return this.#asker.read((now) => this.#file.all(template, { ...params, now }));
  }
}
