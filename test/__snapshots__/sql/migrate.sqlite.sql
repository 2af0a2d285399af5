-- CREATE_PRIVATE_VIEWS
-- The table of each run that has not ended.
drop view if exists live_run;
create view live_run as
select id as run, 'ready' as place, null as fence, lane, policy, attempt, extra from ready
union all
select id, 'waiting', null, lane, policy, attempt, extra from waiting
union all
select m.value, 'lease', k.fence, k.lane, k.policy, k.attempt, k.extra from lease k, json_each(k.ids) as m;

-- The runs that schedules count as live.
drop view if exists schedule_live;
create view schedule_live as
select s.id as schedule, m.value as run from schedule s, json_each(s.live) as m;

drop view if exists held_lock;
create view held_lock as
select name, fence, holder, acquired_at, renewed_at, until, execution from lock ;;

-- CREATE_VIEWS
drop view if exists v_runs;
create view v_runs as
select s.id, s.job, s.schedule,
  case s.mode when 0 then 'enqueued' when 1 then 'scheduled' when 2 then 'manual' when 3 then 'test' when 4 then 'backfill' end as mode, case s.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status, s.attempt,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.created_at) / 1000.0, 'unixepoch') as created_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.due_at) / 1000.0, 'unixepoch') as due_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.started_at) / 1000.0, 'unixepoch') as started_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.finished_at) / 1000.0, 'unixepoch') as finished_at,
  s.finished_at - s.started_at as duration_ms,
  strftime('%Y-%m-%dT%H:%M:%fZ', (coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then a.started_at else a.ended_at end) from attempt a where a.run = s.id))) / 1000.0, 'unixepoch') as heartbeat_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.updated_at) / 1000.0, 'unixepoch') as updated_at,
  s.holder, strftime('%Y-%m-%dT%H:%M:%fZ', (s.lease_until) / 1000.0, 'unixepoch') as lease_until, s.fence, s.key,
  case when s.status <> 1 then (s.error ->> 'message') end as last_error,
  case when s.status <> 1 then (s.error ->> 'code') end as last_error_code,
  s.queue, s.priority, s.attempts_max, strftime('%Y-%m-%dT%H:%M:%fZ', (s.nominal_at) / 1000.0, 'unixepoch') as nominal_at, s.parent as parent_id,
  coalesce(s.tags, '[]') as tags, coalesce(s.items, '{}') as items,
  s.status = 1 and exists (
    select 1 from item_count c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  s.input as input, s.result as result,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.cancel_requested_at) / 1000.0, 'unixepoch') as cancel_requested_at, s.version,
  s.finished_at - coalesce((select min(a.started_at) from attempt a where a.run = s.id), s.started_at) as whole_duration_ms
from run_state s;

drop view if exists v_running_runs;
create view v_running_runs as
select s.id, s.job, s.schedule,
  case s.mode when 0 then 'enqueued' when 1 then 'scheduled' when 2 then 'manual' when 3 then 'test' when 4 then 'backfill' end as mode, case s.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status, s.attempt,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.created_at) / 1000.0, 'unixepoch') as created_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.due_at) / 1000.0, 'unixepoch') as due_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.started_at) / 1000.0, 'unixepoch') as started_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.finished_at) / 1000.0, 'unixepoch') as finished_at,
  s.finished_at - s.started_at as duration_ms,
  strftime('%Y-%m-%dT%H:%M:%fZ', (coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then a.started_at else a.ended_at end) from attempt a where a.run = s.id))) / 1000.0, 'unixepoch') as heartbeat_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.updated_at) / 1000.0, 'unixepoch') as updated_at,
  s.holder, strftime('%Y-%m-%dT%H:%M:%fZ', (s.lease_until) / 1000.0, 'unixepoch') as lease_until, s.fence, s.key,
  case when s.status <> 1 then (s.error ->> 'message') end as last_error,
  case when s.status <> 1 then (s.error ->> 'code') end as last_error_code,
  s.queue, s.priority, s.attempts_max, strftime('%Y-%m-%dT%H:%M:%fZ', (s.nominal_at) / 1000.0, 'unixepoch') as nominal_at, s.parent as parent_id,
  coalesce(s.tags, '[]') as tags, coalesce(s.items, '{}') as items,
  s.status = 1 and exists (
    select 1 from item_count c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  s.input as input, s.result as result,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.cancel_requested_at) / 1000.0, 'unixepoch') as cancel_requested_at, s.version,
  (:now - s.heartbeat_at) / 1000 as seconds_since_heartbeat,
  case when s.lease_until > :now then 'active' else 'silent' end as heartbeat_status from run_state s where s.id in (select p.run from live_run p where p.place = 'lease') and s.status = 0;

drop view if exists v_stale_runs;
create view v_stale_runs as
select s.id, s.job, s.schedule,
  case s.mode when 0 then 'enqueued' when 1 then 'scheduled' when 2 then 'manual' when 3 then 'test' when 4 then 'backfill' end as mode, case s.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status, s.attempt,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.created_at) / 1000.0, 'unixepoch') as created_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.due_at) / 1000.0, 'unixepoch') as due_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.started_at) / 1000.0, 'unixepoch') as started_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.finished_at) / 1000.0, 'unixepoch') as finished_at,
  s.finished_at - s.started_at as duration_ms,
  strftime('%Y-%m-%dT%H:%M:%fZ', (coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then a.started_at else a.ended_at end) from attempt a where a.run = s.id))) / 1000.0, 'unixepoch') as heartbeat_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.updated_at) / 1000.0, 'unixepoch') as updated_at,
  s.holder, strftime('%Y-%m-%dT%H:%M:%fZ', (s.lease_until) / 1000.0, 'unixepoch') as lease_until, s.fence, s.key,
  case when s.status <> 1 then (s.error ->> 'message') end as last_error,
  case when s.status <> 1 then (s.error ->> 'code') end as last_error_code,
  s.queue, s.priority, s.attempts_max, strftime('%Y-%m-%dT%H:%M:%fZ', (s.nominal_at) / 1000.0, 'unixepoch') as nominal_at, s.parent as parent_id,
  coalesce(s.tags, '[]') as tags, coalesce(s.items, '{}') as items,
  s.status = 1 and exists (
    select 1 from item_count c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  s.input as input, s.result as result,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.cancel_requested_at) / 1000.0, 'unixepoch') as cancel_requested_at, s.version,
  (:now - s.heartbeat_at) / 1000 as seconds_since_heartbeat,
  case when s.lease_until > :now then 'active' else 'silent' end as heartbeat_status,
  case when s.heartbeat_at <= :now - 600000 then 'silent' else 'timeout' end as stale_reason
from run_state s
where s.id in (select p.run from live_run p where p.place = 'lease') and s.status = 0 and (s.heartbeat_at <= :now - 600000 or s.started_at <= :now - 7200000);

drop view if exists v_run_stats;
create view v_run_stats as
select strftime('%Y-%m-%d', (t.day_at) / 1000.0, 'unixepoch') as day, t.total, t.completed, t.failed, t.cancelled,
  cast(t.regular_completed as double precision) / nullif(t.regular_ended, 0) as success_rate,
  cast(t.completed_ms as double precision) / nullif(t.completed, 0) as mean_duration_ms, t.ran_ms as total_duration_ms
from (
  select r.hour_at - r.hour_at % 86400000 as day_at, cast(sum(r.runs) as bigint) as total,
    cast(sum(case when r.status = 1 then r.runs else 0 end) as bigint) as completed,
    cast(sum(case when r.status = 2 then r.runs else 0 end) as bigint) as failed,
    cast(sum(case when r.status = 3 then r.runs else 0 end) as bigint) as cancelled,
    sum(case when r.status = 1 and r.mode in (0, 1) then r.runs else 0 end) as regular_completed,
    sum(case when r.status in (1, 2) and r.mode in (0, 1) then r.runs else 0 end) as regular_ended,
    sum(case when r.status = 1 then r.ran_ms else 0 end) as completed_ms, cast(sum(r.ran_ms) as bigint) as ran_ms
  from rollup r
  where r.hour_at >= :now - :now % 86400000 - 2505600000
  group by r.hour_at - r.hour_at % 86400000
) t;

drop view if exists v_run_attempts;
create view v_run_attempts as
select a.run as run_id, a.attempt, a.fence, i.id as holder, case a.ended when 0 then 'failed' when 1 then 'lost' when 2 then 'timeout' when 3 then 'later' when 4 then 'handed_back' when 5 then 'cancelled' when 6 then 'suspended' when 11 then 'completed' when 12 then 'failed' when 13 then 'cancelled' end as ended,
  strftime('%Y-%m-%dT%H:%M:%fZ', (a.started_at) / 1000.0, 'unixepoch') as started_at, strftime('%Y-%m-%dT%H:%M:%fZ', (a.ended_at) / 1000.0, 'unixepoch') as ended_at,
  a.ended_at - a.started_at as duration_ms, (a.error ->> 'message') as error,
  (a.error ->> 'code') as error_code
from (
  select x.run, x.attempt, x.fence, x.holder, x.ended, x.started_at, x.ended_at, x.error from attempt x
  union all
  select o.id, o.attempt, o.fence, o.holder, o.status + 10, o.started_at, o.finished_at, o.error from outcome o
  where o.fence is not null
) a left join instance i on i.no = a.holder;

drop view if exists v_run_items;
create view v_run_items as
select t.run as run_id, t.key, t.outcome, t.attempt, t.fence,
  strftime('%Y-%m-%dT%H:%M:%fZ', (t.started_at) / 1000.0, 'unixepoch') as started_at, t.duration_ms, t.value as value,
  (t.error ->> 'message') as error, (t.error ->> 'code') as error_code
from item t;

drop view if exists v_run_logs;
create view v_run_logs as
select g.run as run_id, g.fence, g.no, g.attempt, strftime('%Y-%m-%dT%H:%M:%fZ', (g.at) / 1000.0, 'unixepoch') as at,
  case g.level when 0 then 'debug' when 1 then 'info' when 2 then 'warn' when 3 then 'error' end as level, g.message, g.fields as fields
from log g;

drop view if exists v_schedules;
create view v_schedules as
select s.name, s.job, s.paused_at is not null as paused, strftime('%Y-%m-%dT%H:%M:%fZ', (s.next_at) / 1000.0, 'unixepoch') as next_run_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', (case when r.id is null then null
    else coalesce(o.started_at, h.claimed_at, r.created_at) end) / 1000.0, 'unixepoch') as last_run_at,
  case when r.id is null then null when o.id is not null then case o.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end
    when h.run is not null then 'running' else 'pending' end as last_status,
  k.holder as locked_by, strftime('%Y-%m-%dT%H:%M:%fZ', (k.until) / 1000.0, 'unixepoch') as locked_until, s.version,
  case when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end as state,
  s.last_run as last_run_id, strftime('%Y-%m-%dT%H:%M:%fZ', (s.last_tick_at) / 1000.0, 'unixepoch') as last_tick_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.cursor_at) / 1000.0, 'unixepoch') as recorded_until,
  s.queue, s.priority, coalesce(s.tags, '[]') as tags, s.definition as definition, s.input as input,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.paused_at) / 1000.0, 'unixepoch') as paused_at, s.paused_by, s.pause_note, strftime('%Y-%m-%dT%H:%M:%fZ', (s.broken_at) / 1000.0, 'unixepoch') as broken_at,
  s.broken_error, s.app, case s.source when 0 then 'api' when 1 then 'code' end as source, s.release,
  strftime('%Y-%m-%dT%H:%M:%fZ', (s.created_at) / 1000.0, 'unixepoch') as created_at, strftime('%Y-%m-%dT%H:%M:%fZ', (s.updated_at) / 1000.0, 'unixepoch') as updated_at
from schedule s
left join run r on r.id = s.last_run
left join outcome o on o.id = r.id
left join (
  select p.run, l.claimed_at from live_run p join lease l on l.fence = p.fence where p.place = 'lease'
) h on h.run = r.id
left join (
  select x.schedule, i.id as holder, l.until, row_number() over (partition by x.schedule order by l.fence) as place
  from live_run p join lease l on l.fence = p.fence join run x on x.id = p.run
  left join instance i on i.no = l.holder
  where p.place = 'lease' and x.schedule is not null
) k on k.schedule = s.id and k.place = 1
where s.deleted_at is null;

drop view if exists v_ticks;
create view v_ticks as
select s.name as schedule, strftime('%Y-%m-%dT%H:%M:%fZ', (t.at) / 1000.0, 'unixepoch') as tick_at, strftime('%Y-%m-%dT%H:%M:%fZ', (t.last_at) / 1000.0, 'unixepoch') as last_tick_at, t.count,
  case t.outcome when 0 then 'fired' when 1 then 'skipped' when 2 then 'missed' end as outcome, case t.reason when 0 then 'on_time' when 1 then 'late' when 2 then 'catch_up' when 3 then 'stuck_reset' when 4 then 'overlap' when 5 then 'queue_full' when 6 then 'after_failure' when 7 then 'paused' when 8 then 'nobody' when 9 then 'too_old' when 10 then 'over_limit' when 11 then 'broken' when 12 then 'no_ping' end as reason, t.run as run_id,
  strftime('%Y-%m-%dT%H:%M:%fZ', (t.recorded_at) / 1000.0, 'unixepoch') as recorded_at, i.id as holder, t.version, t.evidence as evidence
from tick t join schedule s on s.id = t.schedule left join instance i on i.no = t.holder;

drop view if exists v_locks;
create view v_locks as
select l.name, l.holder, l.fence, strftime('%Y-%m-%dT%H:%M:%fZ', (l.acquired_at) / 1000.0, 'unixepoch') as acquired_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', (l.renewed_at) / 1000.0, 'unixepoch') as renewed_at, strftime('%Y-%m-%dT%H:%M:%fZ', (l.until) / 1000.0, 'unixepoch') as lease_until, l.until <= :now as expired,
  (select count(*) from lock_waiter w where w.name = l.name and w.seen_at > :now - 3000) as waiting,
  l.execution
from held_lock l;

drop view if exists v_lock_history;
create view v_lock_history as
select h.name, h.fence, h.holder, case h.state when 0 then 'acquired' when 1 then 'released' when 2 then 'expired' when 3 then 'revoked' end as status,
  strftime('%Y-%m-%dT%H:%M:%fZ', (h.acquired_at) / 1000.0, 'unixepoch') as acquired_at, strftime('%Y-%m-%dT%H:%M:%fZ', (h.until) / 1000.0, 'unixepoch') as lease_until,
  strftime('%Y-%m-%dT%H:%M:%fZ', (h.ended_at) / 1000.0, 'unixepoch') as ended_at, h.ended_at - h.acquired_at as held_ms, h.note, h.execution
from (
  select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution
  from lock_history x
  union all
  select l.fence, l.name, l.holder, 0, l.acquired_at, l.until, null, null, l.execution from held_lock l
) h;

drop view if exists v_instances;
create view v_instances as
select i.id, i.app, i.release, cast(i.jobs as text) as jobs, i.is_scheduler as scheduler,
  i.retired_at is null and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms) as live,
  strftime('%Y-%m-%dT%H:%M:%fZ', (i.started_at) / 1000.0, 'unixepoch') as started_at, strftime('%Y-%m-%dT%H:%M:%fZ', (i.seen_at) / 1000.0, 'unixepoch') as seen_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', (i.polled_at) / 1000.0, 'unixepoch') as polled_at, strftime('%Y-%m-%dT%H:%M:%fZ', (i.retired_at) / 1000.0, 'unixepoch') as retired_at,
  (select count(*) from live_run p join lease l on l.fence = p.fence where l.holder = i.no) as held
from instance i;

drop view if exists v_queues;
create view v_queues as
select n.name, q.paused_at is not null as paused, strftime('%Y-%m-%dT%H:%M:%fZ', (q.paused_at) / 1000.0, 'unixepoch') as paused_at, q.pause_note,
  coalesce(c.ready, 0) as ready, coalesce(c.waiting, 0) as waiting, coalesce(c.running, 0) as running
from (select l.queue as name from lane l union select x.name from queue x) n
left join queue q on q.name = n.name
left join (
  select l.queue, cast(sum(case when p.place = 'ready' then 1 else 0 end) as bigint) as ready,
    cast(sum(case when p.place = 'waiting' then 1 else 0 end) as bigint) as waiting,
    cast(sum(case when p.place = 'lease' then 1 else 0 end) as bigint) as running
  from live_run p join lane l on l.id = p.lane group by l.queue
) c on c.queue = n.name;;

-- FOUND
select * from schema_version;
