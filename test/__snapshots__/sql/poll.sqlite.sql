-- DELETE_PROMOTED
delete from waiting where id in (
  select id from waiting where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0));

-- LAST_POLLED
select max(polled_at) as at from instance;

-- POLL
select json_object(
  'hasReady', 
exists (select 1 from ready) and exists (
  select 1 from 
json_each(:jobs) v cross join lane l on l.job = v.value left join queue q on q.name = l.queue
  where 
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null and exists (select 1 from ready r where r.lane = l.id and r.suspect = 0)),
  'hasSuspect', case when 
exists (select 1 from ready) and exists (
  select 1 from 
json_each(:jobs) v cross join lane l on l.job = v.value left join queue q on q.name = l.queue
  where 
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null and exists (select 1 from ready r where r.lane = l.id and r.suspect = 1)) then 1 else 
exists (select 1 from flow_line a where a.look_at is not null) and exists (
  select 1 from 
json_each(:jobs) v cross join lane l on l.job = v.value left join queue q on q.name = l.queue cross join flow r on r.job = l.job and r.key = '' and r.open_at <= :now
  where 
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null and exists (select 1 from flow_line n where n.lane = l.id and n.suspect = 1 and n.look_at <= :now)) end,
  'hasLimited', 
exists (select 1 from flow_line a where a.look_at is not null) and exists (
  select 1 from 
json_each(:jobs) v cross join lane l on l.job = v.value left join queue q on q.name = l.queue cross join flow r on r.job = l.job and r.key = '' and r.open_at <= :now
  where 
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null and exists (select 1 from flow_line n where n.lane = l.id and n.suspect = 0 and n.look_at <= :now)),
  'hasDue', exists (select 1 from waiting where gate is null and wake_at <= :now),
  'hasExpired', exists (select 1 from lease where until <= :now),
  'hasWakes', exists (select 1 from signal where is_new) or exists (select 1 from wake),
  'cancelRequested', (select json_group_array(c.key) from lease k, json_each(k.cancels) c
    where k.holder = :holder and k.cancels is not null
      and exists (select 1 from json_each(k.ids) m where m.value = c.key)),
  'hasOverdueCancel', exists (select 1 from lease k, json_each(k.cancels) c
    where k.cancels is not null and c.value + :cancelGraceMs <= :now
      and exists (select 1 from json_each(k.ids) m where m.value = c.key)),
  'nextWakeAt', (select min(wake_at) from waiting where gate is null and wake_at > :now),
  'paused', (select json_array(z.at, z.note) from pause z where z.until_at is null),
  'quiet', (select json_array(i.quiet_at, i.quiet_note) from instance i
    where i.no = :holder and i.quiet_at is not null),
  
  'hasDueSchedule', case
    when not :isScheduler then 0
    when exists (select 1 from schedule s indexed by schedule_next where s.next_at <= :now) then 1
    when exists (select 1 from schedule s indexed by schedule_look where (s.is_gated or s.is_replacing or s.backfill is not null)
  and case when s.is_replacing or s.backfill is not null then 1
    else coalesce((select exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule') 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id) order by m.key limit 1), 1) end) then 1
    else exists (select 1 from schedule s indexed by schedule_lost where s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null)
  end,
  'hasFreeGate', case
    when :isScheduler then 0
    else exists (select 1 from schedule s indexed by schedule_look where (s.is_gated or s.is_replacing or s.backfill is not null)
  and case when s.is_replacing or s.backfill is not null then 1
    else coalesce((select exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule') 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id) order by m.key limit 1), 1) end)
  end,
  'hasGated', case
    when exists (select 1 from waiting w indexed by waiting_gate where w.gate = 'schedule') then 1
    else exists (
      select 1 from schedule s indexed by schedule_look where (s.is_gated or s.is_replacing or s.backfill is not null) and s.backfill is not null)
  end,
  'nextTickAt', case when :isScheduler then
    (select min(s.next_at) from schedule s indexed by schedule_next where s.next_at > :now)
  end
) as answer;

-- PROMOTE
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect from waiting
where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0);

-- SEE_INSTANCE
update instance set seen_at = :now, polled_at = iif(:isScheduler, :now, polled_at) where no = :holder;
