-- HAS_FLOWS
select 1 from flow where job = :name limit 1;

-- PRUNE_FLOWS
with empty as materialized (
  select f.id, f.revision from flow f
  where f.key <> ''
    and not exists (select from waiting w where w.flow = f.id)
    and not exists (select from flow_run r where r.flow = f.id)
    and not exists (
      select from flow_turn t where t.flow = f.id
        and t.at > clock() - coalesce((select j.rate_per_ms from job j where j.name = f.job), 0))
  limit :limit
),
idle as materialized (
  select k.id from empty e, lateral (
    select f.id from flow f where f.id = e.id and f.revision = e.revision for update skip locked) k
),
turns as (delete from flow_turn where flow = any(array(select id from idle))),
lines as (delete from flow_line where flow = any(array(select id from idle))),
flows as (delete from flow where id = any(array(select id from idle)) returning 1)
select count(*)::int as pruned from flows;

-- REOPEN_JOB
with now as materialized (select clock() as at),
root as (
  insert into flow as f (job, key, revision, used, open_at) select :name, '', 1, 0, 0 where :isLimited::boolean
  on conflict (job, key) do nothing
),
touched as materialized (
  select f.id from flow f where f.job = :name order by f.job, f.key for update
),
bumped as (
  update flow set revision = revision + 1, open_at = 0 where id = any(array(select id from touched))
)
update flow_line set look_at = now.at from now
where look_at is not null and flow = any(array(select id from touched));
