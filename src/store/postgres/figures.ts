// Reads the figures of metrics on PostgreSQL.

import { WAITER_VOID_MS } from "../../locks/rules/lock.js";
import {
  type FigureRecord,
  type FiguresStore,
  toFigureRecord,
  toScheduleNames,
} from "../figures.js";
import type { PostgresSession } from "./session.js";

/** A lane is counted by its index, up to the limit: a million pending runs cost no more than that. */
export const FIGURES = /* sql */ `
with now as materialized (select {now} as at),
depth as materialized (
  select l.queue, 'ready' as state, x.runs from {lane} l,
    lateral (select count(*) as runs from (select 1 from {ready} r where r.lane = l.id limit :limit) y) x
  union all
  select l.queue, 'waiting', w.runs
  from (select y.lane, count(*) as runs from (select x.lane from {waiting} x limit :limit) y group by 1) w
  join {lane} l on l.id = w.lane
  union all
  select l.queue, 'running', k.runs
  from (select x.lane, sum(cardinality(x.ids)) as runs from {lease} x group by 1) k
  join {lane} l on l.id = k.lane
),
live as materialized (
  select i.is_scheduler from {instance} i cross join now
  where i.retired_at is null and i.seen_at > now.at - greatest(60000, 3 * i.poll_ms)
)
select 'queue' as kind, d.queue as name, d.state, least(sum(d.runs), :limit) as value from depth d group by 2, 3
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
select 'lock', '', 'held', count(*) from {lock} l cross join now where l.state = 0 and l.until > now.at
union all
select 'lock', '', 'waiting', count(*) from {lock_waiter} w cross join now where w.seen_at > now.at - ${WAITER_VOID_MS}`;

export const SCHEDULE_NAMES = /* sql */ `
select s.id, s.name from {schedule} s where s.id = any(:ids::int[])`;

export class PostgresFigures implements Omit<FiguresStore, "load"> {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async figures(params: { readonly limit: number }): Promise<readonly FigureRecord[]> {
    return (await this.#asker.repeat("figures", FIGURES, params)).map(toFigureRecord);
  }

  async scheduleNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const params = { ids: [...ids] };
    return toScheduleNames(await this.#asker.repeat("scheduleNames", SCHEDULE_NAMES, params));
  }
}
