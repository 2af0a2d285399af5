-- ADD_BATCH
insert into batch (run, name, created_at, scheduled, refused, errors, unended, completed, failed, cancelled,
  then_run, then_lane, then_policy, then_version, then_priority)
values (:parent::uuid, :name, clock(), 0, 0, '[]', 0, 0, 0, 0,
  :thenRun::uuid, :thenLane::int, :thenPolicy::int, :thenVersion::int, :thenPriority::smallint)
on conflict (run, name) do nothing returning id;

-- ADD_CALL
insert into wait (run, name, kind, generation, fence, since, key, child, batch, is_left)
values (:id::uuid, :name::text, 3, :generation::int, :fence::bigint, clock(), :job::text, :child::uuid, :batch::int,
  :isLeft::boolean);

-- CHILDREN
with page as materialized (
  select c.id from (
select r.id from run r
where r.parent = :parent::uuid
  and (:batch::text is null
    or r.batch = (select b.id from batch b where b.run = :parent::uuid and b.name = :batch::text))
  and r.id not in (select b.then_run from batch b where b.run = :parent::uuid and b.then_run is not null)
    and r.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') offset 0) c
  where :status::smallint is null or :status::smallint = coalesce(
    (select o.status from outcome o where o.id = c.id),
    case when exists (select 1 from ready y where y.id = c.id) or exists (select 1 from waiting w where w.id = c.id)
      then -1 else 0 end)
  order by c.id desc limit :limit
)

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          to_json(substr(f.input, 1, 1024) || '…')::text || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          to_json(substr(f.result, 1, 1024) || '…')::text || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id = any(array(select id from page)) offset 0) f limit :limit
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- CHILDREN_OF
select r.id from run r
where r.parent = :parent::uuid
  and (:batch::text is null
    or r.batch = (select b.id from batch b where b.run = :parent::uuid and b.name = :batch::text))
  and r.id not in (select b.then_run from batch b where b.run = :parent::uuid and b.then_run is not null);

-- COUNT_BATCH
with now as materialized (select clock() as at),
child_changes as materialized (
  select :batch::int as batch, :unended::int as unended, :completed::int as completed, :failed::int as failed,
    :cancelled::int as cancelled
),

batch_change as materialized (
  select batch, sum(unended)::int as unended, sum(completed)::int as completed, sum(failed)::int as failed,
    sum(cancelled)::int as cancelled
  from child_changes group by batch
),
batch_locked as materialized (
  select b.* from batch b where b.id = any(array(select batch from batch_change)) order by b.id for update
),
batch_after as materialized (
  select l.id, l.run, l.scheduled, l.refused, l.then_run, l.then_lane, l.then_policy, l.then_version, l.then_priority,
    l.unended + c.unended as unended, l.completed + c.completed as completed, l.failed + c.failed as failed,
    l.cancelled + c.cancelled as cancelled, l.ended_at is null and l.unended + c.unended = 0 as is_over
  from batch_locked l join batch_change c on c.batch = l.id
),
batch_counted as (
  update batch b set unended = a.unended, completed = a.completed, failed = a.failed, cancelled = a.cancelled,
    ended_at = case when a.is_over then now.at else b.ended_at end
  from batch_after a, now where b.id = a.id
),
continued as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
  select a.then_run, now.at, now.at, a.then_lane, a.then_policy, a.then_version, a.then_priority, 0, a.run,
    format('{"scheduled":%s,"errors":%s,"completed":%s,"failed":%s,"cancelled":%s}',
      a.scheduled, a.refused, a.completed, a.failed, a.cancelled)
  from batch_after a cross join now where a.is_over and a.then_run is not null
  returning id, due_at, lane, policy, priority
),
continuation as materialized (select c.*, exists (
  select from lane l join job j on j.name = l.job
  where l.id = c.lane and (j.concurrency_limit is not null or j.rate_limit is not null)) as limited from continued c),
continuing as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select c.id, c.due_at - c.priority * 60000, c.lane, c.policy, 0, 0, 0, 0, 0, false from continuation c where not c.limited
),
continuing_limited as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select c.id, c.due_at, c.lane, c.policy, c.priority, 0, 0, 0, 0, 0, false, 0 from continuation c where c.limited
)
select (select count(*)::int from continued) as continued;

-- FAILED_CHILDREN
select c.id from (
select r.id from run r
where r.parent = :parent::uuid
  and (:batch::text is null
    or r.batch = (select b.id from batch b where b.run = :parent::uuid and b.name = :batch::text))
  and r.id not in (select b.then_run from batch b where b.run = :parent::uuid and b.then_run is not null)
  and r.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000') offset 0) c
where (select o.status from outcome o where o.id = c.id) = 2 order by c.id limit :limit;

-- FILL_BATCH
update batch set scheduled = :scheduled::int, refused = :refused::int, errors = :errors where id = :batch::int;

-- HELD
select k.fence from lease k where k.fence = :fence::bigint and k.ids @> array[:parent::uuid] for share;

-- KNOWN_CALL
select 1 as known from wait where run = :id::uuid and name = :name::text;

-- LIST
select name, scheduled, errors, completed, failed, cancelled, case when ended_at is not null then then_run end as then_run
from batch where run = :run::uuid and name >= ' ' order by id;

-- MADE_BATCH
select scheduled, errors from batch where run = :parent::uuid and name = :name;

-- OUTCOMES
select id, status from outcome where id = any(:ids::uuid[]);

-- PRUNE_BATCHES
with now as materialized (select clock() as at),
gone as (
  delete from batch where id = any(array(
    select b.id from batch b, now where b.ended_at < now.at - :keepMs::bigint
      and not exists (select from run r where r.id = b.run) limit :limit)) returning 1
)
select count(*)::int as pruned from gone;
