-- BATCH_OF
select batch from run where id = :id;

-- CLAIMED
select c.holder, c.cancels, :now - c.claimed_at as "heldMs", json_object(
  'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'leaseMs', max(c.until - :now, 0),
  'isSuspect', json(iif(c.suspect, 'true', 'false')),
  'isLimited', json(iif(c.limited, 'true', 'false')), 'refunds', c.refunds, 'laters', c.laters, 'extraAttempts', c.extra,
  'policy', json_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
  'runs', (
    select json_group_array(json_array(
      r.id, r.input, r.mode, r.version, r.priority, r.created_at, r.due_at, r.nominal_at, r.schedule, r.batch, json(r.tags)))
    from json_each(c.ids) m cross join run r on r.id = m.value)
) as claim
from lease c join lane l on l.id = c.lane join policy p on p.id = c.policy
where c.holder = :holder and c.token = :token order by c.fence;

-- COUNT_OUTCOMES
insert into rollup (hour_at, lane, mode, status, shard, runs, ran_ms)
select :now - :now % 3600000, value ->> 0, value ->> 1, value ->> 2, 0, value ->> 3, value ->> 4 from json_each(:rows)
where true
on conflict do update set runs = runs + excluded.runs, ran_ms = ran_ms + excluded.ran_ms;

-- DELETE_LEASE
delete from lease where fence = :fence;

-- DELETE_OUTCOME
delete from outcome where id = :id;

-- DELETE_READY
delete from ready where lane = :lane and suspect = :suspect and (sort_at, id) <= (:sortAt, :id);

-- ENDING
select status + 10 as ended, error, result from outcome where id = :id and fence = :fence
union all
select ended, error, null from attempt where run = :id and fence = :fence;

-- HEADS
select lane, job from (
  select l.id as lane, l.job, (
    select r.sort_at from ready r where r.lane = l.id and r.suspect = :suspect
    order by r.sort_at, r.id limit 1) as head
  from 
json_each(:jobs) v cross join lane l on l.job = v.value left join queue q on q.name = l.queue where 
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null)
where head is not null order by head, job;

-- HELD
select c.holder, c.cancels, :now - c.claimed_at as "heldMs", json_object(
  'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'leaseMs', max(c.until - :now, 0),
  'isSuspect', json(iif(c.suspect, 'true', 'false')),
  'isLimited', json(iif(c.limited, 'true', 'false')), 'refunds', c.refunds, 'laters', c.laters, 'extraAttempts', c.extra,
  'policy', json_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
  'runs', (
    select json_group_array(json_array(
      r.id, r.input, r.mode, r.version, r.priority, r.created_at, r.due_at, r.nominal_at, r.schedule, r.batch, json(r.tags)))
    from json_each(c.ids) m cross join run r on r.id = m.value)
) as claim
from lease c join lane l on l.id = c.lane join policy p on p.id = c.policy
where c.fence = :fence and exists (select 1 from json_each(c.ids) m where m.value = :id) order by c.fence;

-- INSERT_ATTEMPTS
insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now - (value ->> 5), :now, value ->> 6
from json_each(:rows);

-- INSERT_LEASE
insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
  token, ids, started)
select min(:now + p.lease_ms, :now + p.timeout_ms + 5000), :now + p.timeout_ms, :now, :now, :holder, :lane, :policy,
  :attempt, :losses, :refunds, :laters, :extra, :suspect, :limited, :token, :ids, '[]'
from policy p where p.id = :policy
returning fence;

-- INSERT_OUTCOMES
insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
select value ->> 0, :fence, :now - (value ->> 1), :now, :lane, :holder, :attempt, :extra, :status, value ->> 2, value ->> 3
from json_each(:rows);

-- INSERT_READY
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, :now - r.priority * 60000, r.lane, r.policy, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) cross join run r on r.id = value ->> 0 where value ->> 1 = 0;

-- INSERT_WAITING
insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
select r.id, :now + (value ->> 1), r.lane, r.policy, r.priority, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) cross join run r on r.id = value ->> 0 where value ->> 1 > 0;

-- INSTANCE_OF
select id, remote_by from instance where no = :holder;

-- KEEP_ATTEMPT
insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
values (:id, :fence, :attempt, :ended, :holder, :startedAt, :endedAt, :error);

-- LEASES
select json_object('fence', k.fence, 'until', k.until, 'deadline_at', k.deadline_at, 'claimed_at', k.claimed_at,
  'holder', k.holder, 'lane', k.lane, 'attempt', k.attempt, 'losses', k.losses, 'refunds', k.refunds,
  'laters', k.laters, 'extra', k.extra, 'suspect', k.suspect, 'limited', k.limited, 'ids', k.ids,
  'started', k.started, 'cancels', k.cancels) as lease
from json_each(:rows) f cross join lease k on k.fence = f.value;

-- ORIGINS_OF
select r.id, r.mode, r.schedule, r.batch from json_each(:ids) m cross join run r on r.id = m.value;

-- OUTCOME
select * from outcome where id = :id;

-- READY_ROWS
select json_group_array(json_array(id, sort_at, policy, attempt, losses, refunds, laters, extra, limited)) as rows from (
  select * from ready where lane = :lane and suspect = :suspect order by sort_at, id limit (:limit + 0));

-- RENEW
update lease set renewed_at = :now, until = min(
  :now + (select p.lease_ms from policy p where p.id = lease.policy), deadline_at + 5000)
where fence in (select value from json_each(:rows)) and holder = :holder
returning fence, max(until - :now, 0) as lease_ms, ids;

-- SHRINK_LEASE
update lease set ids = :ids where fence = :fence;

-- WAKE_ENDED
insert into wake (run, at)
select distinct w.run, :now from json_each(:ids) m cross join wait w on w.run = m.value where true
on conflict do update set at = excluded.at;
