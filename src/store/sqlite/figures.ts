// Reads the figures of metrics on SQLite.

import { WAITER_VOID_MS } from "../../locks/rules/lock.js";
import {
  type FigureRecord,
  type FiguresStore,
  toFigureRecord,
  toScheduleNames,
} from "../figures.js";
import type { SqliteSession } from "./session.js";

export const FIGURES = /* sql */ `
with depth as materialized (
  select l.queue, 'ready' as state,
    (select count(*) from (select 1 from {ready} r where r.lane = l.id limit (:limit + 0))) as runs
  from {lane} l
  union all
  select l.queue, 'waiting', w.runs
  from (select y.lane, count(*) as runs from (select x.lane from {waiting} x limit (:limit + 0)) y group by 1) w
  join {lane} l on l.id = w.lane
  union all
  select l.queue, 'running', k.runs
  from (select x.lane, sum(json_array_length(x.ids)) as runs from {lease} x group by 1) k
  join {lane} l on l.id = k.lane
),
live as materialized (
  select i.is_scheduler from {instance} i
  where i.retired_at is null and i.seen_at > :now - max(60000, 3 * i.poll_ms)
)
select 'queue' as kind, d.queue as name, d.state, min(sum(d.runs), (:limit + 0)) as value from depth d group by 2, 3
union all
select 'instance', '', 'any', count(*) from live
union all
select 'instance', '', 'scheduler', count(*) from live where is_scheduler
union all
select 'schedule', '', case when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end, count(*)
from {schedule} s where s.deleted_at is null group by 3
union all
select 'overdue', '', '', count(*) from {schedule} s where s.next_at is not null and s.next_at < :now - 300000
union all
select 'lock', '', 'held', count(*) from {lock} l where l.until > :now
union all
select 'lock', '', 'waiting', count(*) from {lock_waiter} w where w.seen_at > :now - ${WAITER_VOID_MS}`;

export const SCHEDULE_NAMES = /* sql */ `
select s.id, s.name from {schedule} s where s.id in (select value from json_each(:ids))`;

export class SqliteFigures implements Omit<FiguresStore, "load"> {
  readonly #asker: SqliteSession;

  constructor(asker: SqliteSession) {
    this.#asker = asker;
  }

  async figures({ limit }: { readonly limit: number }): Promise<readonly FigureRecord[]> {
    const { file } = this.#asker;
    const rows = await this.#asker.read((now) => file.all(FIGURES, { limit, now }));
    return rows.map(toFigureRecord);
  }

  async scheduleNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const { file } = this.#asker;
    const params = { ids: JSON.stringify(ids) };
    return toScheduleNames(await file.read(() => file.all(SCHEDULE_NAMES, params)));
  }
}
