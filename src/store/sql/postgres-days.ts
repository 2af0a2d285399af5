// The statements about the days of history on PostgreSQL: partitions of the tables that grow for ever.
// They name tables that did not exist when the store opened, so they are made for each day.

import { TICKS_KEPT } from "./retention.js";

export const PARTITIONS = /* sql */ `
select c.relname as name from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema and c.relispartition and c.relkind = 'r'`;

/** A day of one of the partitioned tables; the id of a run tells its day. */
export type Day = {
  readonly table:
    | "run"
    | "outcome"
    | "attempt"
    | "item"
    | "item_count"
    | "progress"
    | "log"
    | "tick";
  readonly name: string;
  readonly from: string;
  readonly to: string;
};

const ID_OF = {
  run: "id",
  outcome: "id",
  attempt: "run",
  item: "run",
  item_count: "run",
  progress: "run",
  log: "run",
  tick: "at",
} as const;
const idOf = ({ table }: Day) => ID_OF[table];

/**
 * Attaching locks only the rest partition, and only for as long as it takes to look through it;
 * CREATE TABLE … PARTITION OF would lock the whole table. Rows that came early (a caller's clock was
 * ahead) are in the rest partition and move, or the day could not be attached.
 */
export const makeDay = (day: Day) => [
  `create table {${day.name}} (like {${day.table}} including all)`,
  `lock table {${day.table}_rest} in access exclusive mode`,
  `with early as (
     delete from {${day.table}_rest} where ${idOf(day)} >= '${day.from}' and ${idOf(day)} < '${day.to}' returning *)
   insert into {${day.name}} select * from early`,
  `alter table {${day.table}} attach partition {${day.name}} for values from ('${day.from}') to ('${day.to}')`,
];

export const makeFirstDay = (day: Day) =>
  `create table {${day.name}} partition of {${day.table}} for values from ('${day.from}') to ('${day.to}')`;

const LIVE = /* sql */ `
select x.id from {ready} x where x.id >= :from::uuid and x.id < :to::uuid
union all select x.id from {waiting} x where x.id >= :from::uuid and x.id < :to::uuid
union all select u.id from {lease} x, unnest(x.ids) u (id) where u.id >= :from::uuid and u.id < :to::uuid`;

/** How much of a day would have to stay: what lives, and what ended only lately. */
export const KEPT_OF_DAY = /* sql */ `
select count(*)::int as kept from (
  (${LIVE})
  union all
  (select o.id from {outcome} o
    where o.id >= :from::uuid and o.id < :to::uuid and o.finished_at >= :since::bigint)
  limit :limit) x`;

/**
 * Keys live as long as their run: these go before it and its outcome, so that none names a run of which nobody
 * knows that it has ended, and an interrupted prune goes on here. One taken anew stays.
 */
export const PRUNE_KEYS_OF_DAY = /* sql */ `
delete from {key} where ctid = any(array(
  select k.ctid from {key} k
  where k.run >= :from::uuid and k.run < :to::uuid
    and k.run <> all(array(${LIVE}))
    and not exists (select from {outcome} o where o.id = k.run and o.finished_at >= :since::bigint)
  limit :limit))
  and run >= :from::uuid and run < :to::uuid returning 1`;

/** What is of that day but younger stays: a stretch that ended lately, a line of a run that lives long. */
export const dropDayBy = (day: Day, column: "last_at" | "at", since: number) => [
  `alter table {${day.table}} detach partition {${day.name}}`,
  `insert into {${day.table}} select d.* from {${day.name}} d where d.${column} >= ${since}`,
  `drop table {${day.name}}`,
];

/**
 * A day of the ledger gives way to a smaller one, which has the newest rows of each schedule and those that did not
 * fire: of one minute the first, and any that is a minute long, so that a schedule of every second keeps two rows a
 * minute at most. Rows of a schedule are counted up to when the day is old, whoever looks when. Both parts are read
 * by an index, for each schedule as many rows as are kept: nothing here grows with the length of the history.
 * Nobody writes to the old day meanwhile, who would lose it; a tick that old is rare, and waits.
 */
export const thinDay = (day: Day, kept: Day, keepTicksMs: number) => [
  `lock table {${day.name}} in share mode`,
  `create table {${kept.name}} (like {tick} including all)`,
  `insert into {${kept.name}}
   select d.* from {schedule} s
   cross join lateral (
     select coalesce((
       select x.at from {tick} x where x.schedule = s.id and x.at < ${Number(day.to) + keepTicksMs}
       order by x.at desc offset ${TICKS_KEPT - 1} limit 1), ${day.from}) as at) newest
   cross join lateral (
     select y.* from {${day.name}} y where y.schedule = s.id and y.at >= newest.at offset 0) d
   where newest.at < ${day.to}`,
  `insert into {${kept.name}}
   select distinct on (d.schedule, d.at / 60000) d.* from {${day.name}} d where d.outcome <> 0
   order by d.schedule, d.at / 60000, d.at
   on conflict do nothing`,
  `insert into {${kept.name}}
   select d.* from {${day.name}} d where d.outcome <> 0 and d.last_at >= d.at + 60000
   on conflict do nothing`,
  `alter table {tick} detach partition {${day.name}}`,
  `drop table {${day.name}}`,
  `alter table {tick} attach partition {${kept.name}} for values from ('${kept.from}') to ('${kept.to}')`,
];

/** Which runs of a day stay: those that live, and those that ended only lately. All else goes by its run. */
const staysOf = ({ table, from, to }: Day, since: number) =>
  table === "run"
    ? `${LIVE.replaceAll(":from", `'${from}'`).replaceAll(":to", `'${to}'`)}
       union all select o.id from {outcome} o
       where o.id >= '${from}' and o.id < '${to}' and o.finished_at >= ${since}`
    : `select r.id from {run} r where r.id >= '${from}' and r.id < '${to}'`;

/** A day goes as a whole. What has to stay of it moves to the rest partition first. */
export const dropDay = (day: Day, since: number) => [
  `alter table {${day.table}} detach partition {${day.name}}`,
  `insert into {${day.table}} select d.* from {${day.name}} d where d.${idOf(day)} = any(array(
     ${staysOf(day, since)}))`,
  `drop table {${day.name}}`,
];
