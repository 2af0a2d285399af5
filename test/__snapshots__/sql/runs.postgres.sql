-- ATTEMPTS
select a.attempt, a.fence, i.id as holder, a.ended, a.started_at, a.ended_at, a.error
from attempt a left join instance i on i.no = a.holder where a.run = :id::uuid
union all
select o.attempt, o.fence, i.id, o.status + 10, o.started_at, o.finished_at, o.error
from outcome o left join instance i on i.no = o.holder where o.id = :id::uuid and o.fence is not null
order by 2;

-- CANCEL
with now as materialized (select clock() as at),
from_ready as (delete from ready where id = :id::uuid returning id, lane, attempt, extra),
from_waiting as (delete from waiting where id = :id::uuid returning id, lane, attempt, extra),
pending as materialized (select * from from_ready union all select * from from_waiting),
finished as (
  insert into outcome (id, finished_at, lane, attempt, extra, status)
  select p.id, now.at, p.lane, p.attempt, p.extra, 3 from pending p cross join now
),
requested as (
  update lease k
  set cancels = jsonb_build_object(:id::text, now.at) || coalesce(k.cancels, '{}')
  from now where k.ids @> array[:id::uuid] returning k.fence
),
ended_runs as materialized (
  select r.schedule, p.id, 3 as status, 0 as place
  from pending p, lateral (select x.schedule from run x where x.id = p.id offset 0) r where r.schedule is not null
),

rescheduled as (
  update schedule s set revision = s.revision + 1,
    next_at = case
      when s.next_at is null or s.range_min is null then s.next_at
      when e.status = 2 and s.fail_min is not null
        then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint
      else now.at + s.range_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.range_max - s.range_min + 1))::bigint end,
    hold_until = case when s.range_min is null
      then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint else s.hold_until end,
    hold_run = case when s.range_min is null then e.id else s.hold_run end
  from ended_runs e, now
  where s.id = any(array(select schedule from ended_runs)) and s.id = e.schedule and s.last_run = e.id
    and (s.range_min is not null or (e.status = 2 and s.fail_min is not null))
  returning s.id
),

child_ends as materialized (select e.* from (select r.batch, 3 as status, p.id, null::text as result, '{"code":"CANCELLED","name":"CancelledError","message":"The run was cancelled."}' as error
    from pending p, lateral (select x.batch from run x where x.id = p.id offset 0) r) e where e.batch is not null),
child_changes as materialized (
  select e.batch, -1 as unended, (e.status = 1)::int as completed, (e.status = 2)::int as failed,
    (e.status = 3)::int as cancelled
  from child_ends e
),
answered as (
  update wait w set status = e.status, value = e.result, error = e.error, ended_at = now.at
  from child_ends e, now where w.batch = e.batch and w.child = e.id and w.ended_at is null
  returning w.run
),
woken_parents as (
  insert into wake as k (run, at) select distinct a.run, now.at from answered a cross join now order by 1
  on conflict (run) do update set at = excluded.at
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
),

ended_waits as (
  insert into wake as k (run, at)
  select distinct w.run, now.at from (select p.id from pending p) e join wait w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
),
leaving as materialized (select id as run from pending),

lined as materialized (select null::int as flow, null::int as lane, false as suspect where false),

left_flow as (delete from flow_run where run = any(array(select run from leaving)) returning held),
freed as materialized (select distinct held as flow from left_flow where held is not null),
touched as materialized (
  select f.id from flow f
  where f.id = any(array(select e.flow from freed e union all select e.flow from lined e))
  order by f.job, f.key for update
),
bumped as (
  update flow set revision = revision + 1,
    open_at = case when id = any(array(select flow from freed)) then 0 else open_at end
  where id = any(array(select id from touched))
),
-- If runs wait already, a new one changes nothing; a run that leaves lets the line be read again.
relined as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select x.flow, x.lane, x.suspect, x.look_at
  from (
    select e.flow, e.lane, e.suspect, now.at as look_at from lined e cross join now
    union
    select y.flow, y.lane, y.suspect, null from flow_line y
    where y.flow = any(array(select flow from freed))
      and not exists (select from lined e where e.flow = y.flow and e.lane = y.lane and e.suspect = y.suspect)
  ) x
  where x.flow = any(array(select id from touched))
  on conflict (flow, lane, suspect) do update set look_at = case
    when n.look_at is not null and n.flow = any(array(select flow from freed)) then (select at from now)
    else coalesce(n.look_at, excluded.look_at) end
)
select
  (select count(*)::int from continued) as continued,
  (select count(*)::int from rescheduled) as rescheduled,
  exists (select from pending) as cancelled,
  exists (select from requested) as requested,
  exists (select from outcome where id = :id::uuid) as terminal,
  exists (select from run where id = :id::uuid) as known;

-- GET
select * from run_state where id = :id::uuid;

-- KNOWN
select r.id from run r where r.id = :id::uuid;

-- LIST.any
with page as materialized (
select s.id from (select x.id, x.lane from run x) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- LIST.asleep
with page as materialized (
select s.id from (select x.id, x.lane from waiting x where x.asleep_at is not null) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- LIST.cancelled
with page as materialized (
select s.id from (select x.id, x.lane from outcome x where x.status = 3) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- LIST.completed
with page as materialized (
select s.id from (select x.id, x.lane from outcome x where x.status = 1) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- LIST.failed
with page as materialized (
select s.id from (select x.id, x.lane from outcome x where x.status = 2) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- LIST.pending
with page as materialized (
select s.id from (select x.id, x.lane from ready x union all select x.id, x.lane from waiting x) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- LIST.running
with page as materialized (
select s.id from (select m.value as id, x.lane from lease x cross join unnest(x.ids) as m (value)) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit)

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

-- RETRY
with now as materialized (select clock() as at),
reopened as (
  delete from outcome where id = :id::uuid and status in (2, 3) and exists (select from run r where r.id = :id::uuid)
  returning id, fence, started_at, finished_at, holder, attempt, extra, status, error
),
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, case when status = 3 then 5 else 0 end, holder, started_at, finished_at, error
  from reopened where fence is not null
),
revived as materialized (
  select o.id, o.attempt, o.extra + 1 as extra, r.lane, r.policy, r.priority, l.job, 
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(r.input, '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end as flow_key
  from reopened o
  join run r on r.id = o.id
  join lane l on l.id = r.lane
  left join job j on j.name = l.job
),
newcomers as materialized (
  select job, flow_key as key, lane, not :isGated::boolean as lined from revived where flow_key is not null
),

roots as (
  insert into flow (job, key, revision, used, open_at)
  select distinct c.job, '', 1, 0, 0 from newcomers c
  where c.job <> all(array(select x.job from newcomers x where x.key = ''))
    and not exists (select from flow f where f.job = c.job and f.key = '')
  on conflict (job, key) do nothing
),
flows as (
  insert into flow as f (job, key, revision, used, open_at)
  select c.job, c.key, 1, 0, 0 from newcomers c group by c.job, c.key order by c.job collate "C", c.key collate "C"
  on conflict (job, key) do update set revision = f.revision + 1
  returning id, job, key
),
new_lines as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select f.id, c.lane, false, now.at from newcomers c join flows f on f.job = c.job and f.key = c.key cross join now
  where c.lined group by 1, 2, 4
  on conflict (flow, lane, suspect) do update set look_at = coalesce(n.look_at, excluded.look_at)
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select r.id, now.at - r.priority * 60000, r.lane, r.policy, r.attempt, 0, 0, 0, r.extra, false
  from revived r cross join now where not :isGated::boolean and r.flow_key is null
),
held as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select r.id, now.at, r.lane, r.policy, r.priority, r.attempt, 0, 0, 0, r.extra, false,
    case when :isGated::boolean then 'schedule' else 'flow' end, f.id
  from revived r left join flows f on f.job = r.job and f.key = r.flow_key cross join now
  where :isGated::boolean or r.flow_key is not null
),

child_changes as materialized (
  select r.batch, 1 as unended, 0 as completed, -(o.status = 2)::int as failed, -(o.status = 3)::int as cancelled
  from reopened o, lateral (select x.batch from run x where x.id = o.id offset 0) r where r.batch is not null
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
select
  (select count(*)::int from continued) as continued,
  exists (select from reopened) as reopened,
  (select status from outcome where id = :id::uuid) as status,
  exists (select from run where id = :id::uuid) as known;

-- RETRY_CHILDREN
with now as materialized (select clock() as at),
reopened as (
  delete from outcome where id = any(array(
select c.id from (
select r.id from run r
where r.parent = :parent::uuid
  and (:batch::text is null
    or r.batch = (select b.id from batch b where b.run = :parent::uuid and b.name = :batch::text))
  and r.id not in (select b.then_run from batch b where b.run = :parent::uuid and b.then_run is not null)
  and r.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000') offset 0) c
where (select o.status from outcome o where o.id = c.id) = 2 order by c.id limit :limit)) and status = 2
  returning id, fence, started_at, finished_at, holder, attempt, extra, status, error
),
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, case when status = 3 then 5 else 0 end, holder, started_at, finished_at, error
  from reopened where fence is not null
),
revived as materialized (
  select o.id, o.attempt, o.extra + 1 as extra, r.lane, r.policy, r.priority, l.job, 
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(r.input, '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end as flow_key
  from reopened o
  join run r on r.id = o.id
  join lane l on l.id = r.lane
  left join job j on j.name = l.job
),
newcomers as materialized (
  select job, flow_key as key, lane, not :isGated::boolean as lined from revived where flow_key is not null
),

roots as (
  insert into flow (job, key, revision, used, open_at)
  select distinct c.job, '', 1, 0, 0 from newcomers c
  where c.job <> all(array(select x.job from newcomers x where x.key = ''))
    and not exists (select from flow f where f.job = c.job and f.key = '')
  on conflict (job, key) do nothing
),
flows as (
  insert into flow as f (job, key, revision, used, open_at)
  select c.job, c.key, 1, 0, 0 from newcomers c group by c.job, c.key order by c.job collate "C", c.key collate "C"
  on conflict (job, key) do update set revision = f.revision + 1
  returning id, job, key
),
new_lines as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select f.id, c.lane, false, now.at from newcomers c join flows f on f.job = c.job and f.key = c.key cross join now
  where c.lined group by 1, 2, 4
  on conflict (flow, lane, suspect) do update set look_at = coalesce(n.look_at, excluded.look_at)
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select r.id, now.at - r.priority * 60000, r.lane, r.policy, r.attempt, 0, 0, 0, r.extra, false
  from revived r cross join now where not :isGated::boolean and r.flow_key is null
),
held as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select r.id, now.at, r.lane, r.policy, r.priority, r.attempt, 0, 0, 0, r.extra, false,
    case when :isGated::boolean then 'schedule' else 'flow' end, f.id
  from revived r left join flows f on f.job = r.job and f.key = r.flow_key cross join now
  where :isGated::boolean or r.flow_key is not null
),

child_changes as materialized (
  select r.batch, 1 as unended, 0 as completed, -(o.status = 2)::int as failed, -(o.status = 3)::int as cancelled
  from reopened o, lateral (select x.batch from run x where x.id = o.id offset 0) r where r.batch is not null
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
select (select count(*)::int from continued) as continued, (select json_agg(id order by id) from reopened) as revived;

-- SELECT.any
select s.id from (select x.id, x.lane from run x) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SELECT.asleep
select s.id from (select x.id, x.lane from waiting x where x.asleep_at is not null) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SELECT.cancelled
select s.id from (select x.id, x.lane from outcome x where x.status = 3) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SELECT.completed
select s.id from (select x.id, x.lane from outcome x where x.status = 1) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SELECT.failed
select s.id from (select x.id, x.lane from outcome x where x.status = 2) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SELECT.pending
select s.id from (select x.id, x.lane from ready x union all select x.id, x.lane from waiting x) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SELECT.running
select s.id from (select m.value as id, x.lane from lease x cross join unnest(x.ids) as m (value)) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane = any(array(select l.id from lane l where l.job = :job::text)))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from schedule c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text = any(r.tags))
      and (:text::text is null or strpos(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    offset 0)
order by s.id desc limit :limit;

-- SOURCES.any
select x.id, x.lane from run x;

-- SOURCES.asleep
select x.id, x.lane from waiting x where x.asleep_at is not null;

-- SOURCES.cancelled
select x.id, x.lane from outcome x where x.status = 3;

-- SOURCES.completed
select x.id, x.lane from outcome x where x.status = 1;

-- SOURCES.failed
select x.id, x.lane from outcome x where x.status = 2;

-- SOURCES.pending
select x.id, x.lane from ready x union all select x.id, x.lane from waiting x;

-- SOURCES.running
select m.value as id, x.lane from lease x cross join unnest(x.ids) as m (value);

-- TERMINAL
select id from outcome where id = any(:ids::uuid[]);

-- WITH_DIGITS
select x.id from (
  select b.id from (
    select r.id from run r where r.id >= :first::uuid and r.id <= :last::uuid order by r.id desc limit :limit) b
  union
  select e.id from (
    select n.id from (select r.id from run r order by r.id desc limit 20000) n
    where substr(replace(n.id::text, '-', ''), 33 - length(:digits::text)) = :digits::text limit :limit) e
) x order by x.id desc limit :limit;
