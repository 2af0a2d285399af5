-- NOW
select clock() as now;

-- OLD_RUNS
select o.id, n.at - :keepMs::bigint as until from outcome_rest o cross join (select clock() as at) n
where o.finished_at < n.at - :keepMs::bigint order by o.finished_at limit :limit;

-- ONE_TOO_MANY
select x.id from (select o.id, o.lane from outcome o order by o.id desc limit 100000) x
where x.lane in (select l.id from lane l where l.job = :job) order by x.id desc limit 1 offset :count;

-- PRUNE
with now as materialized (select clock() as at),
expired as (
  delete from key where ctid = any(array(
    select k.ctid from key k, now where k.expires_at <= now.at limit :limit))
    and expires_at <= (select at from now) returning 1
),
instances as (
  delete from instance where no = any(array(
    select i.no from instance i, now
    where i.seen_at < now.at - :keepMs::bigint - 86400000
      and not exists (select from lease k where k.holder = i.no) limit :limit))
    and seen_at < (select at from now) - :keepMs::bigint - 86400000 returning 1
),
rollups as (
  delete from rollup where ctid = any(array(
    select r.ctid from rollup r, now where r.hour_at < now.at - greatest(:keepMs::bigint, 2678400000) limit :limit)) returning 1
)
select (select count(*) from expired) + (select count(*) from instances)
  + (select count(*) from rollups) as pruned;

-- PRUNE_OLD_LOGS
with old as (
  delete from log_rest where ctid = any(array(
    select g.ctid from log_rest g where g.at < clock() - :keepLogsMs::bigint limit :limit)) returning 1)
select count(*)::int as pruned from old;

-- PRUNE_SCHEDULES
with now as materialized (select clock() as at),
ticks as (
  delete from tick_rest where ctid = any(array(
    select t.ctid from tick_rest t, now where t.last_at < now.at - greatest(:keepTicksMs::bigint, :keepMs::bigint) limit :limit)) returning 1
),
old as materialized (
  select b.id from backfill b, now where b.ended_at < now.at - :keepMs::bigint limit :limit
),
runs as (delete from backfill_run where backfill = any(array(select id from old))),
backfills as (delete from backfill where id = any(array(select id from old)) returning 1),
deliveries as (
  delete from delivery where ctid = any(array(
    select d.ctid from delivery d where not exists (select from run r where r.id = d.run) limit :limit)) returning 1
)
select (select count(*) from ticks) + (select count(*) from backfills) + (select count(*) from deliveries) as pruned;

-- REMOVE_OUTCOMES
delete from outcome where id = any(:ids::uuid[])
  and ((:until::bigint is null and :edge::uuid is null) or finished_at < :until::bigint or id <= :edge::uuid)
returning id;

-- REMOVE_RUNS.0
delete from attempt where run = any(:ids::uuid[]);

-- REMOVE_RUNS.1
delete from item where run = any(:ids::uuid[]);

-- REMOVE_RUNS.2
delete from item_count where run = any(:ids::uuid[]);

-- REMOVE_RUNS.3
delete from progress where run = any(:ids::uuid[]);

-- REMOVE_RUNS.4
delete from log where run = any(:ids::uuid[]);

-- REMOVE_RUNS.5
delete from key where run = any(:ids::uuid[]);

-- REMOVE_RUNS.6
delete from run where id = any(:ids::uuid[]);

-- VISIT
select o.id, o.lane in (select l.id from lane l where l.job = :job) as is_mine, o.finished_at < :until::bigint or o.id <= :edge::uuid as is_old
from outcome o
where o.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
  and o.id <= greatest(coalesce(:before::uuid, :edge::uuid), coalesce(:edge::uuid, :before::uuid))
order by o.id limit :limit;
