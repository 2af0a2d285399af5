-- ADD_BATCH
insert into batch (run, name, created_at, scheduled, refused, errors, unended, completed, failed, cancelled,
  then_run, then_lane, then_policy, then_version, then_priority)
values (:parent, :name, :now, 0, 0, '[]', 0, 0, 0, 0,
  :thenRun, :thenLane, :thenPolicy, :thenVersion, :thenPriority)
on conflict (run, name) do nothing returning id;

-- ADD_CALL
insert into wait (run, name, kind, generation, fence, since, key, child, batch, is_left)
values (:id, :name, 3, :generation, :fence, :now, :job, :child, :batch,
  :isLeft);

-- CHILDREN
with page as materialized (
  select c.id from (
select r.id from run r
where r.parent = :parent
  and (:batch is null
    or r.batch = (select b.id from batch b where b.run = :parent and b.name = :batch))
  and r.id not in (select b.then_run from batch b where b.run = :parent and b.then_run is not null)
    and r.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff') ) c
  where :status is null or :status = coalesce(
    (select o.status from outcome o where o.id = c.id),
    case when exists (select 1 from ready y where y.id = c.id) or exists (select 1 from waiting w where w.id = c.id)
      then -1 else 0 end)
  order by c.id desc limit (:limit + 0)
)

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- CHILDREN_OF
select r.id from run r
where r.parent = :parent
  and (:batch is null
    or r.batch = (select b.id from batch b where b.run = :parent and b.name = :batch))
  and r.id not in (select b.then_run from batch b where b.run = :parent and b.then_run is not null);

-- FAILED_CHILDREN
select c.id from (
select r.id from run r
where r.parent = :parent
  and (:batch is null
    or r.batch = (select b.id from batch b where b.run = :parent and b.name = :batch))
  and r.id not in (select b.then_run from batch b where b.run = :parent and b.then_run is not null)
  and r.id > coalesce(:after, '00000000-0000-0000-0000-000000000000') ) c
where (select o.status from outcome o where o.id = c.id) = 2 order by c.id limit (:limit + 0);

-- FILL_BATCH
update batch set scheduled = :scheduled, refused = :refused, errors = :errors where id = :batch;

-- HELD
select 1 from lease k where k.fence = :fence and exists (select 1 from json_each(k.ids) m where m.value = :parent);

-- KNOWN_CALL
select 1 as known from wait where run = :id and name = :name;

-- LIST
select name, scheduled, errors, completed, failed, cancelled, case when ended_at is not null then then_run end as then_run
from batch where run = :run and name >= ' ' order by id;

-- MADE_BATCH
select scheduled, errors from batch where run = :parent and name = :name;

-- OUTCOMES
select id, status from outcome where id in (select value from json_each(:ids));
