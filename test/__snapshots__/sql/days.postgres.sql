-- DAY_COLUMN
create function day_column(day_table text) returns text language plpgsql immutable
set search_path = pg_catalog, pg_temp as $holdfast$
begin
  if day_table in ('run', 'outcome') then return 'id'; end if;
  if day_table in ('attempt', 'item', 'item_count', 'progress', 'log') then return 'run'; end if;
  if day_table = 'tick' then return 'at'; end if;
  raise exception 'The table "%" has no days.', day_table;
end
$holdfast$;;

-- DAY_FUNCTIONS
create function day_bound(day_table text, day_number int) returns text language sql immutable
set search_path = pg_catalog, pg_temp as $holdfast$
  select case when day_table = 'tick' then (day_number::bigint * 86400000)::text
    else substr(d.hex, 1, 8) || '-' || substr(d.hex, 9) || '-0000-0000-000000000000' end
  from (select lpad(to_hex(day_number::bigint * 86400000), 12, '0') as hex) d
$holdfast$;

create function make_day(day_table text, day_number int) returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_home text := replace('x', '.x', '');
  v_column text := day_column(day_table);
  v_day text := format('%s.%I', v_home, day_table || '_day_' || day_number);
  v_rest text := format('%s.%I', v_home, day_table || '_rest');
  v_from text := day_bound(day_table, day_number);
  v_to text := day_bound(day_table, day_number + 1);
begin
  execute format('create table %s (like %s.%I including all)', v_day, v_home, day_table);
  execute format('lock table %s in access exclusive mode', v_rest);
  execute format('with early as (delete from %s where %I >= %L and %I < %L returning *) insert into %s select * from early',
    v_rest, v_column, v_from, v_column, v_to, v_day);
  execute format('alter table %s.%I attach partition %s for values from (%L) to (%L)',
    v_home, day_table, v_day, v_from, v_to);
end
$holdfast$;

create function drop_day(day_table text, day_number int, since bigint, time_column text, is_kept boolean)
returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $holdfast$
declare
  v_home text := replace('x', '.x', '');
  v_column text := day_column(day_table);
  v_day text := format('%s.%I', v_home, day_table || case when is_kept then '_kept_' else '_day_' end || day_number);
  v_from text := day_bound('run', day_number);
  v_to text := day_bound('run', day_number + 1);
  v_stays uuid[];
begin
  execute format('alter table %s.%I detach partition %s', v_home, day_table, v_day);
  if time_column is not null then
    execute format('insert into %s.%I select d.* from %s d where d.%I >= $1', v_home, day_table, v_day, time_column) using since;
  else
    if day_table = 'run' then
      v_stays := array(
select x.id from ready x where x.id >= v_from::uuid and x.id < v_to::uuid
union all select x.id from waiting x where x.id >= v_from::uuid and x.id < v_to::uuid
union all select u.id from lease x, unnest(x.ids) u (id) where u.id >= v_from::uuid and u.id < v_to::uuid
        union all select o.id from outcome o
        where o.id >= v_from::uuid and o.id < v_to::uuid and o.finished_at >= since);
    else
      v_stays := array(select r.id from run r where r.id >= v_from::uuid and r.id < v_to::uuid);
    end if;
    execute format('insert into %s.%I select d.* from %s d where d.%I = any($1)', v_home, day_table, v_day, v_column) using v_stays;
  end if;
  execute format('drop table %s', v_day);
end
$holdfast$;

create function thin_day(day_number int, keep_ms bigint) returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
declare
  v_statement text;
  v_from bigint := day_bound('tick', day_number)::bigint;
  v_to bigint := day_bound('tick', day_number + 1)::bigint;
begin
  foreach v_statement in array array[$statement$lock table tick_day_0000000 in share mode$statement$, $statement$create table tick_kept_0000000 (like tick including all)$statement$, $statement$insert into tick_kept_0000000
   select d.* from schedule s
   cross join lateral (
     select coalesce((
       select x.at from tick x where x.schedule = s.id and x.at < 2222222222223
       order by x.at desc offset 199 limit 1), 1111111111111) as at) newest
   cross join lateral (
     select y.* from tick_day_0000000 y where y.schedule = s.id and y.at >= newest.at offset 0) d
   where newest.at < 2222222222222$statement$, $statement$insert into tick_kept_0000000
   select distinct on (d.schedule, d.at / 60000) d.* from tick_day_0000000 d where d.outcome <> 0
   order by d.schedule, d.at / 60000, d.at
   on conflict do nothing$statement$, $statement$insert into tick_kept_0000000
   select d.* from tick_day_0000000 d where d.outcome <> 0 and d.last_at >= d.at + 60000
   on conflict do nothing$statement$, $statement$alter table tick detach partition tick_day_0000000$statement$, $statement$drop table tick_day_0000000$statement$, $statement$alter table tick attach partition tick_kept_0000000 for values from ('1111111111111') to ('2222222222222')$statement$] loop
    execute replace(replace(replace(replace(v_statement,
      '0000000', day_number::text), '2222222222223', (v_to + keep_ms)::text), '2222222222222', v_to::text),
      '1111111111111', v_from::text);
  end loop;
end
$holdfast$;;

-- KEPT_OF_DAY
select count(*)::int as kept from (
  (
select x.id from ready x where x.id >= :from::uuid and x.id < :to::uuid
union all select x.id from waiting x where x.id >= :from::uuid and x.id < :to::uuid
union all select u.id from lease x, unnest(x.ids) u (id) where u.id >= :from::uuid and u.id < :to::uuid)
  union all
  (select o.id from outcome o
    where o.id >= :from::uuid and o.id < :to::uuid and o.finished_at >= :since::bigint)
  limit :limit) x;

-- LIVE
select x.id from ready x where x.id >= :from::uuid and x.id < :to::uuid
union all select x.id from waiting x where x.id >= :from::uuid and x.id < :to::uuid
union all select u.id from lease x, unnest(x.ids) u (id) where u.id >= :from::uuid and u.id < :to::uuid;

-- PARTITIONS
select c.relname as name from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema and c.relispartition and c.relkind = 'r';

-- PRUNE_KEYS_OF_DAY
delete from key where ctid = any(array(
  select k.ctid from key k
  where k.run >= :from::uuid and k.run < :to::uuid
    and k.run <> all(array(
select x.id from ready x where x.id >= :from::uuid and x.id < :to::uuid
union all select x.id from waiting x where x.id >= :from::uuid and x.id < :to::uuid
union all select u.id from lease x, unnest(x.ids) u (id) where u.id >= :from::uuid and u.id < :to::uuid))
    and not exists (select from outcome o where o.id = k.run and o.finished_at >= :since::bigint)
  limit :limit))
  and run >= :from::uuid and run < :to::uuid returning 1;

-- THINNED.1
create table tick_kept_0000000 (like tick including all);

-- THINNED.2
insert into tick_kept_0000000
   select d.* from schedule s
   cross join lateral (
     select coalesce((
       select x.at from tick x where x.schedule = s.id and x.at < 2222222222223
       order by x.at desc offset 199 limit 1), 1111111111111) as at) newest
   cross join lateral (
     select y.* from tick_day_0000000 y where y.schedule = s.id and y.at >= newest.at offset 0) d
   where newest.at < 2222222222222;

-- THINNED.3
insert into tick_kept_0000000
   select distinct on (d.schedule, d.at / 60000) d.* from tick_day_0000000 d where d.outcome <> 0
   order by d.schedule, d.at / 60000, d.at
   on conflict do nothing;

-- THINNED.4
insert into tick_kept_0000000
   select d.* from tick_day_0000000 d where d.outcome <> 0 and d.last_at >= d.at + 60000
   on conflict do nothing;

-- THINNED.6
drop table tick_day_0000000;
