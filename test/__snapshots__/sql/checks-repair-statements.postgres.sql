-- COUNT_CHILDREN.0
update batch as b set unended = 
(select count(*) from live_run p join run r on r.id = p.run where r.batch = b.id) where b.unended <> 
(select count(*) from live_run p join run r on r.id = p.run where r.batch = b.id);

-- COUNT_CHILDREN.1
update batch set scheduled = unended + completed + failed + cancelled
where scheduled <> unended + completed + failed + cancelled;

-- COUNT_ENDS
insert into rollup as x (hour_at, lane, mode, status, shard, runs, ran_ms)
select e.hour_at, e.lane, e.mode, e.status, 0, e.runs - coalesce(t.runs, 0), e.ran_ms
from (
select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, r.mode, o.status, count(*) as runs,
  sum(o.finished_at - o.started_at) as ran_ms
from outcome o join run r on r.id = o.id where o.fence is not null and o.finished_at > clock() - 2592000000
group by 1, 2, 3, 4) e left join (
  select c.hour_at, c.lane, c.mode, c.status, sum(c.runs) as runs from rollup c group by 1, 2, 3, 4
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.mode = e.mode and t.status = e.status
where e.runs > coalesce(t.runs, 0)
on conflict (hour_at, lane, mode, status, shard) do update set runs = x.runs + excluded.runs, ran_ms = x.ran_ms + excluded.ran_ms;

-- EMPTY_LEASE
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- ENDED_BY_MODE
select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, r.mode, o.status, count(*) as runs,
  sum(o.finished_at - o.started_at) as ran_ms
from outcome o join run r on r.id = o.id where o.fence is not null and o.finished_at > clock() - 2592000000
group by 1, 2, 3, 4;

-- END_BATCHES
update batch as b set ended_at = clock() where b.unended = 0 and b.ended_at is null;

-- EXPIRE
update lease set until = clock() where until > clock() and;

-- HELD_ONCE
update lease k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where not exists (select 1 from outcome o where o.id = m.run)
    and not exists (select 1 from live_run q where q.run = m.run and q.fence > k.fence) order by m.place)
where exists (select from unnest(k.ids) m (run) where not (not exists (select 1 from outcome o where o.id = m.run)
    and not exists (select 1 from live_run q where q.run = m.run and q.fence > k.fence)));

-- HELD_RUNS
update lease k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where exists (select 1 from run r where r.id = m.run) order by m.place)
where exists (select from unnest(k.ids) m (run) where not (exists (select 1 from run r where r.id = m.run)));

-- LOOK_AGAIN
update flow_line set look_at = clock() where look_at is not null;

-- MAKE_AFTER
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select b.then_run, clock(), clock(), b.then_lane, b.then_policy, b.then_version, b.then_priority, 0, b.run, json_build_object('scheduled', b.scheduled, 'errors', b.refused, 'completed', b.completed, 'failed', b.failed,
    'cancelled', b.cancelled)::text
from batch b where b.unended = 0 and b.ended_at is null and b.then_run is not null
  and not exists (select 1 from run r where r.id = b.then_run);

-- NOT_COUNTED
delete from flow_run where not exists (
  select 1 from live_run p where p.run = flow_run.run and p.place in ('ready', 'lease'));

-- NOT_READY
delete from ready where id in (select p.run from live_run p where p.place = 'lease')
  or id in (select o.id from outcome o);

-- OF_REFERENCES.a backfill belongs to a schedule.sql.0
delete from backfill where schedule is not null and not exists (
  select 1 from schedule y where y.id = backfill.schedule);

-- OF_REFERENCES.a backfilled tick belongs to a schedule.sql.0
delete from backfill_run where schedule is not null and not exists (
  select 1 from schedule y where y.id = backfill_run.schedule);

-- OF_REFERENCES.a count of items belongs to a run.sql.0
delete from item_count where run is not null and not exists (
  select 1 from run y where y.id = item_count.run);

-- OF_REFERENCES.a definition in code belongs to a schedule.sql.0
delete from declared where schedule is not null and not exists (
  select 1 from schedule y where y.id = declared.schedule);

-- OF_REFERENCES.a delivery belongs to a schedule.sql.0
delete from delivery where schedule is not null and not exists (
  select 1 from schedule y where y.id = delivery.schedule);

-- OF_REFERENCES.a delivery of an alert has its alert.sql.0
delete from alert_delivery where alert is not null and not exists (
  select 1 from alert y where y.id = alert_delivery.alert);

-- OF_REFERENCES.a line belongs to a limit.sql.0
delete from flow_line where flow is not null and not exists (
  select 1 from flow y where y.id = flow_line.flow);

-- OF_REFERENCES.a log line belongs to a run.sql.0
delete from log where run is not null and not exists (
  select 1 from run y where y.id = log.run);

-- OF_REFERENCES.a run of a schedule has it.sql.0
update run set schedule = null where schedule is not null and not exists (
  select 1 from schedule y where y.id = run.schedule);

-- OF_REFERENCES.a run that was let through has its limit.sql.0
delete from flow_run where flow is not null and not exists (
  select 1 from flow y where y.id = flow_run.flow);

-- OF_REFERENCES.a schedule's backfill is there.sql.0
update schedule set backfill = null where backfill is not null and not exists (
  select 1 from backfill y where y.id = schedule.backfill);

-- OF_REFERENCES.a tick belongs to a schedule.sql.0
delete from tick where schedule is not null and not exists (
  select 1 from schedule y where y.id = tick.schedule);

-- OF_REFERENCES.a turn belongs to a limit.sql.0
delete from flow_turn where flow is not null and not exists (
  select 1 from flow y where y.id = flow_turn.flow);

-- OF_REFERENCES.a version belongs to a schedule.sql.0
delete from schedule_version where schedule is not null and not exists (
  select 1 from schedule y where y.id = schedule_version.schedule);

-- OF_REFERENCES.an attempt belongs to a run.sql.0
delete from attempt where run is not null and not exists (
  select 1 from run y where y.id = attempt.run);

-- OF_REFERENCES.an item belongs to a run.sql.0
delete from item where run is not null and not exists (
  select 1 from run y where y.id = item.run);

-- OF_REFERENCES.progress belongs to a run.sql.0
delete from progress where run is not null and not exists (
  select 1 from run y where y.id = progress.run);

-- ONE_PLACE
delete from waiting where id in (select y.id from ready y)
  or id in (select p.run from live_run p where p.place = 'lease') or id in (select o.id from outcome o);

-- OURS.a batch counts its runs.sql.0
update batch as b set unended = 
(select count(*) from live_run p join run r on r.id = p.run where r.batch = b.id) where b.unended <> 
(select count(*) from live_run p join run r on r.id = p.run where r.batch = b.id);

-- OURS.a batch counts its runs.sql.1
update batch set scheduled = unended + completed + failed + cancelled
where scheduled <> unended + completed + failed + cancelled;

-- OURS.a batch counts its runs.sql.2
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select b.then_run, clock(), clock(), b.then_lane, b.then_policy, b.then_version, b.then_priority, 0, b.run, json_build_object('scheduled', b.scheduled, 'errors', b.refused, 'completed', b.completed, 'failed', b.failed,
    'cancelled', b.cancelled)::text
from batch b where b.unended = 0 and b.ended_at is null and b.then_run is not null
  and not exists (select 1 from run r where r.id = b.then_run);

-- OURS.a batch counts its runs.sql.3
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, clock() - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from attempt a where a.run = r.id), 0, 0, 0, 0, false
from run r join policy y on y.id = r.policy
join batch b on b.then_run = r.id where b.unended = 0 and b.ended_at is null and not exists (select 1 from live_run p where p.run = r.id)
  and not exists (select 1 from outcome o where o.id = r.id);

-- OURS.a batch counts its runs.sql.4
update batch as b set ended_at = clock() where b.unended = 0 and b.ended_at is null;

-- OURS.a gate is opened by its schedule.sql.0
update schedule set revision = revision + 1, is_gated = true where not is_gated and id in (select r.schedule from waiting w join run r on r.id = w.id where w.gate = 'schedule');

-- OURS.a gate is opened by its schedule.sql.1
update waiting set gate = null where gate = 'schedule' and not exists (
  select 1 from run r join schedule s on s.id = r.schedule where r.id = waiting.id);

-- OURS.a key names a run of its job.sql.0
delete from key where not exists (
  select 1 from run r join lane l on l.id = r.lane where r.id = key.run and l.job = key.job);

-- OURS.a lease has a holder.sql.0
update lease set until = clock() where until > clock() and  not exists (select 1 from instance i where i.no = lease.holder);

-- OURS.a lease has runs.sql.0
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- OURS.a lock that is held has not ended.sql.0
update lock set state = 2, ended_at = clock() where state = 0 and fence in (select h.fence from lock_history h);

-- OURS.a named key has a digest and opens a scope.sql.0
delete from access_key where name = '' or length(digest) <> 64 or scopes not like '["%"]';

-- OURS.a pause of everything ends after it began.sql.0
update pause set until_at = at where until_at < at;

-- OURS.a pending or held row agrees with its run.sql.0
update ready as x set lane = (select r.lane from run r where r.id = x.id),
  policy = (select r.policy from run r where r.id = x.id)
where exists (select 1 from run r where r.id = x.id and (r.lane <> x.lane or r.policy <> x.policy));

-- OURS.a pending or held row agrees with its run.sql.1
update waiting as x set lane = (select r.lane from run r where r.id = x.id),
  policy = (select r.policy from run r where r.id = x.id)
where exists (select 1 from run r where r.id = x.id and (r.lane <> x.lane or r.policy <> x.policy));

-- OURS.a pending or held row agrees with its run.sql.2
update lease as k set
  lane = (select min(r.lane) from live_run p join run r on r.id = p.run where p.fence = k.fence),
  policy = (select min(r.policy) from live_run p join run r on r.id = p.run where p.fence = k.fence)
where exists (select 1 from live_run p join run r on r.id = p.run
  where p.fence = k.fence and (r.lane <> k.lane or r.policy <> k.policy));

-- OURS.a pending or held row agrees with its run.sql.3
update outcome as o set lane = (select r.lane from run r where r.id = o.id)
where exists (select 1 from run r where r.id = o.id and r.lane <> o.lane);

-- OURS.a run is in exactly one place.sql.0
delete from ready where id in (select p.run from live_run p where p.place = 'lease')
  or id in (select o.id from outcome o);

-- OURS.a run is in exactly one place.sql.1
delete from waiting where id in (select y.id from ready y)
  or id in (select p.run from live_run p where p.place = 'lease') or id in (select o.id from outcome o);

-- OURS.a run is in exactly one place.sql.2
update lease k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where not exists (select 1 from outcome o where o.id = m.run)
    and not exists (select 1 from live_run q where q.run = m.run and q.fence > k.fence) order by m.place)
where exists (select from unnest(k.ids) m (run) where not (not exists (select 1 from outcome o where o.id = m.run)
    and not exists (select 1 from live_run q where q.run = m.run and q.fence > k.fence)));

-- OURS.a run is in exactly one place.sql.3
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- OURS.a run is in exactly one place.sql.4
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, clock() - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from attempt a where a.run = r.id), 0, 0, 0, 0, false
from run r join policy y on y.id = r.policy where not exists (select 1 from live_run p where p.run = r.id)
  and not exists (select 1 from outcome o where o.id = r.id);

-- OURS.a run that a limit let through counts in it.sql.0
update ready set limited = false where limited and not exists (select 1 from flow_run f where f.run = ready.id);

-- OURS.a run that a limit let through counts in it.sql.1
update lease set limited = false where limited and not exists (
  select 1 from live_run p join flow_run f on f.run = p.run where p.fence = lease.fence);

-- OURS.a run that counts in a limit is ready or held.sql.0
delete from flow_run where not exists (
  select 1 from live_run p where p.run = flow_run.run and p.place in ('ready', 'lease'));

-- OURS.a run that counts in a limit is ready or held.sql.1
update flow set revision = revision + 1, open_at = 0;

-- OURS.a run that counts in a limit is ready or held.sql.2
update flow_line set look_at = clock() where look_at is not null;

-- OURS.a run that waits for a limit stands in its line.sql.0
insert into flow_line as n (flow, lane, suspect, look_at)
select distinct w.flow, w.lane, w.suspect, clock() from waiting w
where w.gate = 'flow' and w.flow is not null and not exists (
  select 1 from flow_line n where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null)
on conflict (flow, lane, suspect) do update set look_at = excluded.look_at;

-- OURS.a schedule has its version kept.sql.0
insert into schedule_version (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, 1, clock(), 'repair', s.job, s.definition, s.input, s.anchor_at from schedule s
where not exists (select 1 from schedule_version v where v.schedule = s.id and v.version = s.version);

-- OURS.a schedule knows its live runs.sql.0
update schedule s set revision = revision + 1, live = s.live || array(
select p.run from live_run p join run r on r.id = p.run
where r.schedule = s.id and not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run) order by p.run) where exists (
select p.run from live_run p join run r on r.id = p.run
where r.schedule = s.id and not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run));

-- OURS.a schedule that does not fire has no next tick.sql.0
update schedule set revision = revision + 1, next_at = null
where next_at is not null and (is_ended or paused_at is not null or broken_at is not null or deleted_at is not null);

-- OURS.a scheduled run has its tick.sql.0
insert into tick (schedule, at, last_at, count, outcome, reason, recorded_at, version, run)
select r.schedule, r.nominal_at, r.nominal_at, 1, 0, 1, clock(), s.version, r.id
from run r join schedule s on s.id = r.schedule
where r.mode = 1 and not exists (select 1 from tick t where t.schedule = r.schedule and t.at = r.nominal_at)
  and (r.nominal_at > clock() - 3600000 or exists (
    select 1 from tick t where t.schedule = r.schedule and t.outcome = 0
      and t.at < r.nominal_at and t.at >= r.nominal_at - r.nominal_at % 86400000));

-- OURS.a session of the page belongs to a secret.sql.0
delete from session where secret = '' or length(digest) <> 64;

-- OURS.attempts stay within their limit.sql.0
update ready as x set attempt = (select y.attempts - 1 from policy y where y.id = x.policy) + x.extra
where x.attempt >= (select y.attempts from policy y where y.id = x.policy) + x.extra;

-- OURS.attempts stay within their limit.sql.1
update waiting as x set attempt = (select y.attempts - 1 from policy y where y.id = x.policy) + x.extra
where x.attempt >= (select y.attempts from policy y where y.id = x.policy) + x.extra;

-- OURS.every pending or held row has its run.sql.0
delete from ready where not exists (select 1 from run r where r.id = ready.id);

-- OURS.every pending or held row has its run.sql.1
delete from waiting where not exists (select 1 from run r where r.id = waiting.id);

-- OURS.every pending or held row has its run.sql.2
delete from outcome where not exists (select 1 from run r where r.id = outcome.id);

-- OURS.every pending or held row has its run.sql.3
update lease k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where exists (select 1 from run r where r.id = m.run) order by m.place)
where exists (select from unnest(k.ids) m (run) where not (exists (select 1 from run r where r.id = m.run)));

-- OURS.every pending or held row has its run.sql.4
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- OURS.fences come from their sequence.sql.0
select setval('lease_fence_seq', m.fence) from (
  select max(g.fence) as fence from (
    
select k.fence from lease k union all select a.fence from attempt a union all select o.fence from outcome o
union all select t.fence from step t) g
) m where m.fence > (select s.last_value from lease_fence_seq s);

-- OURS.fences come from their sequence.sql.1
select setval('lock_fence', m.fence) from (
  select max(g.fence) as fence from (
    select l.fence from held_lock l union all select h.fence from lock_history h) g
) m where m.fence > (select s.last_value from lock_fence s);

-- OURS.items are counted.sql.0
insert into item_count (run, outcome, items) select i.run, i.outcome, 0 from item i
       where i.run in (
select c.run from (
  select x.run, x.outcome, x.items as counted, 0 as there from item_count x
  union all select i.run, i.outcome, 0, count(*) from item i group by i.run, i.outcome
) c group by c.run, c.outcome having sum(c.counted) <> sum(c.there)) group by i.run, i.outcome on conflict (run, outcome) do nothing;

-- OURS.items are counted.sql.1
update item_count as x set items = (select count(*) from item i where i.run = x.run and i.outcome = x.outcome)
where x.items <> (select count(*) from item i where i.run = x.run and i.outcome = x.outcome);

-- OURS.no ledger is ahead of its cursor.sql.0
update schedule as s set revision = revision + 1,
  cursor_at = (select max(t.last_at) from tick t where t.schedule = s.id),
  next_at = case when s.next_at <= (select max(t.last_at) from tick t where t.schedule = s.id) then null else s.next_at end
where s.cursor_at < (select max(t.last_at) from tick t where t.schedule = s.id);

-- OURS.roll-ups count every end.sql.0
insert into rollup as x (hour_at, lane, mode, status, shard, runs, ran_ms)
select e.hour_at, e.lane, e.mode, e.status, 0, e.runs - coalesce(t.runs, 0), e.ran_ms
from (
select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, r.mode, o.status, count(*) as runs,
  sum(o.finished_at - o.started_at) as ran_ms
from outcome o join run r on r.id = o.id where o.fence is not null and o.finished_at > clock() - 2592000000
group by 1, 2, 3, 4) e left join (
  select c.hour_at, c.lane, c.mode, c.status, sum(c.runs) as runs from rollup c group by 1, 2, 3, 4
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.mode = e.mode and t.status = e.status
where e.runs > coalesce(t.runs, 0)
on conflict (hour_at, lane, mode, status, shard) do update set runs = x.runs + excluded.runs, ran_ms = x.ran_ms + excluded.ran_ms;

-- OURS.the next tick is after the cursor.sql.0
update schedule set revision = revision + 1, next_at = null where next_at <= cursor_at;

-- OURS.the window of a rate adds up.sql.0
update flow as f set used = coalesce((select sum(t.runs) from flow_turn t where t.flow = f.id), 0)
where f.used <> coalesce((select sum(t.runs) from flow_turn t where t.flow = f.id), 0);

-- PUT_BACK
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, clock() - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from attempt a where a.run = r.id), 0, 0, 0, 0, false
from run r join policy y on y.id = r.policy;

-- READY_AFTER
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, clock() - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from attempt a where a.run = r.id), 0, 0, 0, 0, false
from run r join policy y on y.id = r.policy
join batch b on b.then_run = r.id where b.unended = 0 and b.ended_at is null and not exists (select 1 from live_run p where p.run = r.id)
  and not exists (select 1 from outcome o where o.id = r.id);

-- REPAIRS.a backfill belongs to a schedule.sql.0
delete from backfill where schedule is not null and not exists (
  select 1 from schedule y where y.id = backfill.schedule);

-- REPAIRS.a backfilled tick belongs to a schedule.sql.0
delete from backfill_run where schedule is not null and not exists (
  select 1 from schedule y where y.id = backfill_run.schedule);

-- REPAIRS.a batch counts its runs.sql.0
update batch as b set unended = 
(select count(*) from live_run p join run r on r.id = p.run where r.batch = b.id) where b.unended <> 
(select count(*) from live_run p join run r on r.id = p.run where r.batch = b.id);

-- REPAIRS.a batch counts its runs.sql.1
update batch set scheduled = unended + completed + failed + cancelled
where scheduled <> unended + completed + failed + cancelled;

-- REPAIRS.a batch counts its runs.sql.2
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select b.then_run, clock(), clock(), b.then_lane, b.then_policy, b.then_version, b.then_priority, 0, b.run, json_build_object('scheduled', b.scheduled, 'errors', b.refused, 'completed', b.completed, 'failed', b.failed,
    'cancelled', b.cancelled)::text
from batch b where b.unended = 0 and b.ended_at is null and b.then_run is not null
  and not exists (select 1 from run r where r.id = b.then_run);

-- REPAIRS.a batch counts its runs.sql.3
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, clock() - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from attempt a where a.run = r.id), 0, 0, 0, 0, false
from run r join policy y on y.id = r.policy
join batch b on b.then_run = r.id where b.unended = 0 and b.ended_at is null and not exists (select 1 from live_run p where p.run = r.id)
  and not exists (select 1 from outcome o where o.id = r.id);

-- REPAIRS.a batch counts its runs.sql.4
update batch as b set ended_at = clock() where b.unended = 0 and b.ended_at is null;

-- REPAIRS.a count of items belongs to a run.sql.0
delete from item_count where run is not null and not exists (
  select 1 from run y where y.id = item_count.run);

-- REPAIRS.a definition in code belongs to a schedule.sql.0
delete from declared where schedule is not null and not exists (
  select 1 from schedule y where y.id = declared.schedule);

-- REPAIRS.a delivery belongs to a schedule.sql.0
delete from delivery where schedule is not null and not exists (
  select 1 from schedule y where y.id = delivery.schedule);

-- REPAIRS.a delivery of an alert has its alert.sql.0
delete from alert_delivery where alert is not null and not exists (
  select 1 from alert y where y.id = alert_delivery.alert);

-- REPAIRS.a gate is opened by its schedule.sql.0
update schedule set revision = revision + 1, is_gated = true where not is_gated and id in (select r.schedule from waiting w join run r on r.id = w.id where w.gate = 'schedule');

-- REPAIRS.a gate is opened by its schedule.sql.1
update waiting set gate = null where gate = 'schedule' and not exists (
  select 1 from run r join schedule s on s.id = r.schedule where r.id = waiting.id);

-- REPAIRS.a key names a run of its job.sql.0
delete from key where not exists (
  select 1 from run r join lane l on l.id = r.lane where r.id = key.run and l.job = key.job);

-- REPAIRS.a lease has a holder.sql.0
update lease set until = clock() where until > clock() and  not exists (select 1 from instance i where i.no = lease.holder);

-- REPAIRS.a lease has runs.sql.0
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- REPAIRS.a line belongs to a limit.sql.0
delete from flow_line where flow is not null and not exists (
  select 1 from flow y where y.id = flow_line.flow);

-- REPAIRS.a lock that is held has not ended.sql.0
update lock set state = 2, ended_at = clock() where state = 0 and fence in (select h.fence from lock_history h);

-- REPAIRS.a log line belongs to a run.sql.0
delete from log where run is not null and not exists (
  select 1 from run y where y.id = log.run);

-- REPAIRS.a named key has a digest and opens a scope.sql.0
delete from access_key where name = '' or length(digest) <> 64 or scopes not like '["%"]';

-- REPAIRS.a pause of everything ends after it began.sql.0
update pause set until_at = at where until_at < at;

-- REPAIRS.a pending or held row agrees with its run.sql.0
update ready as x set lane = (select r.lane from run r where r.id = x.id),
  policy = (select r.policy from run r where r.id = x.id)
where exists (select 1 from run r where r.id = x.id and (r.lane <> x.lane or r.policy <> x.policy));

-- REPAIRS.a pending or held row agrees with its run.sql.1
update waiting as x set lane = (select r.lane from run r where r.id = x.id),
  policy = (select r.policy from run r where r.id = x.id)
where exists (select 1 from run r where r.id = x.id and (r.lane <> x.lane or r.policy <> x.policy));

-- REPAIRS.a pending or held row agrees with its run.sql.2
update lease as k set
  lane = (select min(r.lane) from live_run p join run r on r.id = p.run where p.fence = k.fence),
  policy = (select min(r.policy) from live_run p join run r on r.id = p.run where p.fence = k.fence)
where exists (select 1 from live_run p join run r on r.id = p.run
  where p.fence = k.fence and (r.lane <> k.lane or r.policy <> k.policy));

-- REPAIRS.a pending or held row agrees with its run.sql.3
update outcome as o set lane = (select r.lane from run r where r.id = o.id)
where exists (select 1 from run r where r.id = o.id and r.lane <> o.lane);

-- REPAIRS.a run is in exactly one place.sql.0
delete from ready where id in (select p.run from live_run p where p.place = 'lease')
  or id in (select o.id from outcome o);

-- REPAIRS.a run is in exactly one place.sql.1
delete from waiting where id in (select y.id from ready y)
  or id in (select p.run from live_run p where p.place = 'lease') or id in (select o.id from outcome o);

-- REPAIRS.a run is in exactly one place.sql.2
update lease k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where not exists (select 1 from outcome o where o.id = m.run)
    and not exists (select 1 from live_run q where q.run = m.run and q.fence > k.fence) order by m.place)
where exists (select from unnest(k.ids) m (run) where not (not exists (select 1 from outcome o where o.id = m.run)
    and not exists (select 1 from live_run q where q.run = m.run and q.fence > k.fence)));

-- REPAIRS.a run is in exactly one place.sql.3
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- REPAIRS.a run is in exactly one place.sql.4
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, clock() - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from attempt a where a.run = r.id), 0, 0, 0, 0, false
from run r join policy y on y.id = r.policy where not exists (select 1 from live_run p where p.run = r.id)
  and not exists (select 1 from outcome o where o.id = r.id);

-- REPAIRS.a run of a schedule has it.sql.0
update run set schedule = null where schedule is not null and not exists (
  select 1 from schedule y where y.id = run.schedule);

-- REPAIRS.a run that a limit let through counts in it.sql.0
update ready set limited = false where limited and not exists (select 1 from flow_run f where f.run = ready.id);

-- REPAIRS.a run that a limit let through counts in it.sql.1
update lease set limited = false where limited and not exists (
  select 1 from live_run p join flow_run f on f.run = p.run where p.fence = lease.fence);

-- REPAIRS.a run that counts in a limit is ready or held.sql.0
delete from flow_run where not exists (
  select 1 from live_run p where p.run = flow_run.run and p.place in ('ready', 'lease'));

-- REPAIRS.a run that counts in a limit is ready or held.sql.1
update flow set revision = revision + 1, open_at = 0;

-- REPAIRS.a run that counts in a limit is ready or held.sql.2
update flow_line set look_at = clock() where look_at is not null;

-- REPAIRS.a run that sleeps has an open wait.sql.0
update waiting set wake_at = clock(), asleep_at = null where asleep_at is not null and not exists (select 1 from wait x where x.run = waiting.id);

-- REPAIRS.a run that sleeps wakes by its first deadline.sql.0
update waiting as w set wake_at = (select min(x.until) from wait x where x.run = w.id)
where w.asleep_at is not null and w.gate is null and w.wake_at > clock() and w.wake_at > (select min(x.until) from wait x where x.run = w.id);

-- REPAIRS.a run that waits for a limit stands in its line.sql.0
insert into flow_line as n (flow, lane, suspect, look_at)
select distinct w.flow, w.lane, w.suspect, clock() from waiting w
where w.gate = 'flow' and w.flow is not null and not exists (
  select 1 from flow_line n where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null)
on conflict (flow, lane, suspect) do update set look_at = excluded.look_at;

-- REPAIRS.a run that was let through has its limit.sql.0
delete from flow_run where flow is not null and not exists (
  select 1 from flow y where y.id = flow_run.flow);

-- REPAIRS.a schedule has its version kept.sql.0
insert into schedule_version (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, 1, clock(), 'repair', s.job, s.definition, s.input, s.anchor_at from schedule s
where not exists (select 1 from schedule_version v where v.schedule = s.id and v.version = s.version);

-- REPAIRS.a schedule knows its live runs.sql.0
update schedule s set revision = revision + 1, live = s.live || array(
select p.run from live_run p join run r on r.id = p.run
where r.schedule = s.id and not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run) order by p.run) where exists (
select p.run from live_run p join run r on r.id = p.run
where r.schedule = s.id and not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run));

-- REPAIRS.a schedule that does not fire has no next tick.sql.0
update schedule set revision = revision + 1, next_at = null
where next_at is not null and (is_ended or paused_at is not null or broken_at is not null or deleted_at is not null);

-- REPAIRS.a schedule's backfill is there.sql.0
update schedule set backfill = null where backfill is not null and not exists (
  select 1 from backfill y where y.id = schedule.backfill);

-- REPAIRS.a scheduled run has its tick.sql.0
insert into tick (schedule, at, last_at, count, outcome, reason, recorded_at, version, run)
select r.schedule, r.nominal_at, r.nominal_at, 1, 0, 1, clock(), s.version, r.id
from run r join schedule s on s.id = r.schedule
where r.mode = 1 and not exists (select 1 from tick t where t.schedule = r.schedule and t.at = r.nominal_at)
  and (r.nominal_at > clock() - 3600000 or exists (
    select 1 from tick t where t.schedule = r.schedule and t.outcome = 0
      and t.at < r.nominal_at and t.at >= r.nominal_at - r.nominal_at % 86400000));

-- REPAIRS.a session of the page belongs to a secret.sql.0
delete from session where secret = '' or length(digest) <> 64;

-- REPAIRS.a tick belongs to a schedule.sql.0
delete from tick where schedule is not null and not exists (
  select 1 from schedule y where y.id = tick.schedule);

-- REPAIRS.a turn belongs to a limit.sql.0
delete from flow_turn where flow is not null and not exists (
  select 1 from flow y where y.id = flow_turn.flow);

-- REPAIRS.a version belongs to a schedule.sql.0
delete from schedule_version where schedule is not null and not exists (
  select 1 from schedule y where y.id = schedule_version.schedule);

-- REPAIRS.an attempt belongs to a run.sql.0
delete from attempt where run is not null and not exists (
  select 1 from run y where y.id = attempt.run);

-- REPAIRS.an item belongs to a run.sql.0
delete from item where run is not null and not exists (
  select 1 from run y where y.id = item.run);

-- REPAIRS.an open wait belongs to a live run.sql.0
delete from wait where not exists (select 1 from run r where r.id = wait.run);

-- REPAIRS.an open wait belongs to a live run.sql.1
insert into wake (run, at) select distinct x.run, clock() from wait x where not exists (select 1 from live_run p where p.run = x.run)
  and not exists (select 1 from wake k where k.run = x.run)
  and not exists (select 1 from outcome o where o.id = x.run and x.kind = 3 and x.since >= o.finished_at) on conflict do nothing;

-- REPAIRS.an open wait has no end.sql.0
update waiting set wake_at = clock(), asleep_at = null where asleep_at is not null and gate is null and exists (
  select 1 from wait x join step t on t.run = x.run and t.name = x.name where x.run = waiting.id);

-- REPAIRS.an open wait has no end.sql.1
delete from wait where exists (select 1 from step t where t.run = wait.run and t.name = wait.name);

-- REPAIRS.attempts stay within their limit.sql.0
update ready as x set attempt = (select y.attempts - 1 from policy y where y.id = x.policy) + x.extra
where x.attempt >= (select y.attempts from policy y where y.id = x.policy) + x.extra;

-- REPAIRS.attempts stay within their limit.sql.1
update waiting as x set attempt = (select y.attempts - 1 from policy y where y.id = x.policy) + x.extra
where x.attempt >= (select y.attempts from policy y where y.id = x.policy) + x.extra;

-- REPAIRS.every pending or held row has its run.sql.0
delete from ready where not exists (select 1 from run r where r.id = ready.id);

-- REPAIRS.every pending or held row has its run.sql.1
delete from waiting where not exists (select 1 from run r where r.id = waiting.id);

-- REPAIRS.every pending or held row has its run.sql.2
delete from outcome where not exists (select 1 from run r where r.id = outcome.id);

-- REPAIRS.every pending or held row has its run.sql.3
update lease k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where exists (select 1 from run r where r.id = m.run) order by m.place)
where exists (select from unnest(k.ids) m (run) where not (exists (select 1 from run r where r.id = m.run)));

-- REPAIRS.every pending or held row has its run.sql.4
delete from lease where not exists (select 1 from live_run p where p.fence = lease.fence);

-- REPAIRS.fences come from their sequence.sql.0
select setval('lease_fence_seq', m.fence) from (
  select max(g.fence) as fence from (
    
select k.fence from lease k union all select a.fence from attempt a union all select o.fence from outcome o
union all select t.fence from step t) g
) m where m.fence > (select s.last_value from lease_fence_seq s);

-- REPAIRS.fences come from their sequence.sql.1
select setval('lock_fence', m.fence) from (
  select max(g.fence) as fence from (
    select l.fence from held_lock l union all select h.fence from lock_history h) g
) m where m.fence > (select s.last_value from lock_fence s);

-- REPAIRS.items are counted.sql.0
insert into item_count (run, outcome, items) select i.run, i.outcome, 0 from item i
       where i.run in (
select c.run from (
  select x.run, x.outcome, x.items as counted, 0 as there from item_count x
  union all select i.run, i.outcome, 0, count(*) from item i group by i.run, i.outcome
) c group by c.run, c.outcome having sum(c.counted) <> sum(c.there)) group by i.run, i.outcome on conflict (run, outcome) do nothing;

-- REPAIRS.items are counted.sql.1
update item_count as x set items = (select count(*) from item i where i.run = x.run and i.outcome = x.outcome)
where x.items <> (select count(*) from item i where i.run = x.run and i.outcome = x.outcome);

-- REPAIRS.no ledger is ahead of its cursor.sql.0
update schedule as s set revision = revision + 1,
  cursor_at = (select max(t.last_at) from tick t where t.schedule = s.id),
  next_at = case when s.next_at <= (select max(t.last_at) from tick t where t.schedule = s.id) then null else s.next_at end
where s.cursor_at < (select max(t.last_at) from tick t where t.schedule = s.id);

-- REPAIRS.no run sleeps through the end of a wait.sql.0
insert into wake (run, at) select distinct e.id, clock() from (
select w.id, x.name from waiting w join wait x on x.run = w.id
left join signal s on x.kind = 2 and s.name = x.signal and s.key = x.key
  and s.at >= coalesce(x.signal_since, 0) and s.at <= coalesce(x.until, s.at)
where w.asleep_at is not null and w.gate is null and w.wake_at > clock() and not exists (select 1 from wake k where k.run = w.id)
  and (x.ended_at is not null or s.is_new = false
    or (x.kind = 3 and exists (select 1 from outcome o where o.id = x.child)))) e where true on conflict do nothing;

-- REPAIRS.no run sleeps through the end of a wait.sql.1
update wait as x set
  ended_at = (select o.finished_at from outcome o where o.id = x.child),
  status = (select o.status from outcome o where o.id = x.child),
  value = (select o.result from outcome o where o.id = x.child),
  error = (select o.error from outcome o where o.id = x.child)
where x.kind = 3 and x.ended_at is null and exists (select 1 from outcome o where o.id = x.child)
  and exists (select 1 from waiting w where w.id = x.run and w.asleep_at is not null and w.gate is null and w.wake_at > clock());

-- REPAIRS.progress belongs to a run.sql.0
delete from progress where run is not null and not exists (
  select 1 from run y where y.id = progress.run);

-- REPAIRS.roll-ups count every end.sql.0
insert into rollup as x (hour_at, lane, mode, status, shard, runs, ran_ms)
select e.hour_at, e.lane, e.mode, e.status, 0, e.runs - coalesce(t.runs, 0), e.ran_ms
from (
select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, r.mode, o.status, count(*) as runs,
  sum(o.finished_at - o.started_at) as ran_ms
from outcome o join run r on r.id = o.id where o.fence is not null and o.finished_at > clock() - 2592000000
group by 1, 2, 3, 4) e left join (
  select c.hour_at, c.lane, c.mode, c.status, sum(c.runs) as runs from rollup c group by 1, 2, 3, 4
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.mode = e.mode and t.status = e.status
where e.runs > coalesce(t.runs, 0)
on conflict (hour_at, lane, mode, status, shard) do update set runs = x.runs + excluded.runs, ran_ms = x.ran_ms + excluded.ran_ms;

-- REPAIRS.the next tick is after the cursor.sql.0
update schedule set revision = revision + 1, next_at = null where next_at <= cursor_at;

-- REPAIRS.the window of a rate adds up.sql.0
update flow as f set used = coalesce((select sum(t.runs) from flow_turn t where t.flow = f.id), 0)
where f.used <> coalesce((select sum(t.runs) from flow_turn t where t.flow = f.id), 0);

-- RUN_FENCES
select k.fence from lease k union all select a.fence from attempt a union all select o.fence from outcome o
union all select t.fence from step t;

-- UNTOLD
select p.run from live_run p join run r on r.id = p.run
where r.schedule = s.id and not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run);

-- WRONG_ITEMS
select c.run from (
  select x.run, x.outcome, x.items as counted, 0 as there from item_count x
  union all select i.run, i.outcome, 0, count(*) from item i group by i.run, i.outcome
) c group by c.run, c.outcome having sum(c.counted) <> sum(c.there);
