// The statements about the days of history on PostgreSQL: partitions of the tables that would otherwise grow forever.
// They name tables that did not exist when the store opened, so they are made for each day.

import { TICKS_KEPT } from "../../retention.js";

export const PARTITIONS = /* sql */ `
select c.relname as name from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema and c.relispartition and c.relkind = 'r'`;

/** A day of one of the partitioned tables; the id of a run shows its day. */
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

export const makeFirstDay = (day: Day) =>
  `create table {${day.name}} partition of {${day.table}} for values from ('${day.from}') to ('${day.to}')`;

const LIVE = /* sql */ `
select x.id from {ready} x where x.id >= :from::uuid and x.id < :to::uuid
union all select x.id from {waiting} x where x.id >= :from::uuid and x.id < :to::uuid
union all select u.id from {lease} x, unnest(x.ids) u (id) where u.id >= :from::uuid and u.id < :to::uuid`;

/** How many rows of a day would have to stay: live runs, and runs that ended recently. */
export const KEPT_OF_DAY = /* sql */ `
select count(*)::int as kept from (
  (${LIVE})
  union all
  (select o.id from {outcome} o
    where o.id >= :from::uuid and o.id < :to::uuid and o.finished_at >= :since::bigint)
  limit :limit) x`;

/**
 * A key lives as long as its run. Keys are removed before the run and its outcome, so that no key names a run whose end
 * is unknown, and an interrupted prune continues here. A key that was taken again stays.
 */
export const PRUNE_KEYS_OF_DAY = /* sql */ `
delete from {key} where ctid = any(array(
  select k.ctid from {key} k
  where k.run >= :from::uuid and k.run < :to::uuid
    and k.run <> all(array(${LIVE}))
    and not exists (select from {outcome} o where o.id = k.run and o.finished_at >= :since::bigint)
  limit :limit))
  and run >= :from::uuid and run < :to::uuid returning 1`;

/**
 * A day of the ledger is replaced by a smaller one, which has the newest rows of each schedule and the ticks that did
 * not fire: the first row of each minute, and every row that covers a minute, so that a schedule of every second keeps
 * at most two rows a minute. The rows of a schedule are counted up to the moment at which the day becomes old, whenever
 * this runs. Both parts are read by an index, for each schedule as many rows as are kept: the cost does not grow with
 * the history. A writer to the old day, who would lose a row, has to wait; a tick that old is rare.
 */
const thinning = (day: Day, kept: Day, keepTicksMs: number) => [
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

/** Placeholders for a day in the text of a function, which replaces them. */
const ANY_NUMBER = "0000000";
const ANY_FROM = 1_111_111_111_111;
const ANY_TO = 2_222_222_222_222;
const ANY_DAY = { table: "tick", from: String(ANY_FROM), to: String(ANY_TO) } as const;
const THINNED = thinning(
  { ...ANY_DAY, name: `tick_day_${ANY_NUMBER}` },
  { ...ANY_DAY, name: `tick_kept_${ANY_NUMBER}` },
  1,
);

/**
 * Only an owner may attach, detach and drop partitions. These functions run with the rights of the schema's owner and
 * do only that, so that instances may have a role with fewer rights (deploy/postgres-role.sql). Attaching locks only
 * the rest partition, and only while it is scanned; CREATE TABLE … PARTITION OF would lock the whole table. Rows that
 * came early (a caller's clock was ahead) are in the rest partition and move first, or the day could not be attached. A
 * day is dropped whole, and the rows that have to stay move to the rest partition first: by the time of the row (a
 * stretch that ended recently, a log line of a long run), or by the run: live ones and those that ended recently. All
 * other tables follow their run.
 */
export const DAY_FUNCTIONS = /* sql */ `
create function {day_bound}(day_table text, day_number int) returns text language sql immutable
set search_path = pg_catalog, pg_temp as $holdfast$
  select case when day_table = 'tick' then (day_number::bigint * 86400000)::text
    else substr(d.hex, 1, 8) || '-' || substr(d.hex, 9) || '-0000-0000-000000000000' end
  from (select lpad(to_hex(day_number::bigint * 86400000), 12, '0') as hex) d
$holdfast$;

create function {make_day}(day_table text, day_number int) returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_home text := replace('{x}', '.x', '');
  v_column text := {day_column}(day_table);
  v_day text := format('%s.%I', v_home, day_table || '_day_' || day_number);
  v_rest text := format('%s.%I', v_home, day_table || '_rest');
  v_from text := {day_bound}(day_table, day_number);
  v_to text := {day_bound}(day_table, day_number + 1);
begin
  execute format('create table %s (like %s.%I including all)', v_day, v_home, day_table);
  execute format('lock table %s in access exclusive mode', v_rest);
  execute format('with early as (delete from %s where %I >= %L and %I < %L returning *) insert into %s select * from early',
    v_rest, v_column, v_from, v_column, v_to, v_day);
  execute format('alter table %s.%I attach partition %s for values from (%L) to (%L)',
    v_home, day_table, v_day, v_from, v_to);
end
$holdfast$;

create function {drop_day}(day_table text, day_number int, since bigint, time_column text, is_kept boolean)
returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $holdfast$
declare
  v_home text := replace('{x}', '.x', '');
  v_column text := {day_column}(day_table);
  v_day text := format('%s.%I', v_home, day_table || case when is_kept then '_kept_' else '_day_' end || day_number);
  v_from text := {day_bound}('run', day_number);
  v_to text := {day_bound}('run', day_number + 1);
  v_stays uuid[];
begin
  execute format('alter table %s.%I detach partition %s', v_home, day_table, v_day);
  if time_column is not null then
    execute format('insert into %s.%I select d.* from %s d where d.%I >= $1', v_home, day_table, v_day, time_column) using since;
  else
    if day_table = 'run' then
      v_stays := array(${LIVE.replaceAll(":from", "v_from").replaceAll(":to", "v_to")}
        union all select o.id from {outcome} o
        where o.id >= v_from::uuid and o.id < v_to::uuid and o.finished_at >= since);
    else
      v_stays := array(select r.id from {run} r where r.id >= v_from::uuid and r.id < v_to::uuid);
    end if;
    execute format('insert into %s.%I select d.* from %s d where d.%I = any($1)', v_home, day_table, v_day, v_column) using v_stays;
  end if;
  execute format('drop table %s', v_day);
end
$holdfast$;

create function {thin_day}(day_number int, keep_ms bigint) returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
declare
  v_statement text;
  v_from bigint := {day_bound}('tick', day_number)::bigint;
  v_to bigint := {day_bound}('tick', day_number + 1)::bigint;
begin
  foreach v_statement in array array[${THINNED.map((text) => `$statement$${text}$statement$`).join(", ")}] loop
    execute replace(replace(replace(replace(v_statement,
      '${ANY_NUMBER}', day_number::text), '${ANY_TO + 1}', (v_to + keep_ms)::text), '${ANY_TO}', v_to::text),
      '${ANY_FROM}', v_from::text);
  end loop;
end
$holdfast$;
`;

/** The column by which a table has its days; any other table is refused. Created first, because the others call it. */
export const DAY_COLUMN = /* sql */ `
create function {day_column}(day_table text) returns text language plpgsql immutable
set search_path = pg_catalog, pg_temp as $holdfast$
begin
  if day_table in ('run', 'outcome') then return 'id'; end if;
  if day_table in ('attempt', 'item', 'item_count', 'progress', 'log') then return 'run'; end if;
  if day_table = 'tick' then return 'at'; end if;
  raise exception 'The table "%" has no days.', day_table;
end
$holdfast$;
`;

const numberOf = ({ name }: Day) => Number(/_(\d+)$/.exec(name)?.[1]);
const isKept = ({ name }: Day) => name.includes("_kept_");

export const makeDay = (day: Day) => [`select {make_day}('${day.table}', ${numberOf(day)})`];

/** Rows of that day that are younger stay: a stretch that ended recently, a log line of a long run. */
export const dropDayBy = (day: Day, column: "last_at" | "at", since: number) => [
  `select {drop_day}('${day.table}', ${numberOf(day)}, ${since}, '${column}', ${isKept(day)})`,
];

/** A day is dropped whole. The rows that have to stay move to the rest partition first. */
export const dropDay = (day: Day, since: number) => [
  `select {drop_day}('${day.table}', ${numberOf(day)}, ${since}, null, false)`,
];

export const thinDay = (day: Day, keepTicksMs: number) => [
  `select {thin_day}(${numberOf(day)}, ${keepTicksMs})`,
];
