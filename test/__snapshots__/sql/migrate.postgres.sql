-- CREATE_PRIVATE_VIEWS
-- The table of each run that has not ended.
create or replace view live_run as
select id as run, 'ready' as place, null::bigint as fence, lane, policy, attempt, extra from ready
union all
select id, 'waiting', null, lane, policy, attempt, extra from waiting
union all
select m.value, 'lease', k.fence, k.lane, k.policy, k.attempt, k.extra from lease k, unnest(k.ids) as m (value);

-- The runs that schedules count as live.
create or replace view schedule_live as
select s.id as schedule, m.value as run from schedule s, unnest(s.live) as m (value);

create or replace view held_lock as
select name, fence, holder, acquired_at, renewed_at, until, execution from lock where state = 0;;

-- CREATE_VIEWS
create or replace view v_runs as
select s.id, s.job, s.schedule,
  case s.mode when 0 then 'enqueued' when 1 then 'scheduled' when 2 then 'manual' when 3 then 'test' when 4 then 'backfill' end as mode, case s.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status, s.attempt,
  to_timestamp((s.created_at) / 1000.0) as created_at, to_timestamp((s.due_at) / 1000.0) as due_at,
  to_timestamp((s.started_at) / 1000.0) as started_at, to_timestamp((s.finished_at) / 1000.0) as finished_at,
  s.finished_at - s.started_at as duration_ms,
  to_timestamp((coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then a.started_at else a.ended_at end) from attempt a where a.run = s.id))) / 1000.0) as heartbeat_at, to_timestamp((s.updated_at) / 1000.0) as updated_at,
  s.holder, to_timestamp((s.lease_until) / 1000.0) as lease_until, s.fence, s.key,
  case when s.status <> 1 then ((case when strpos(s.error, '\u') = 0 then s.error
    else regexp_replace(s.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'message') end as last_error,
  case when s.status <> 1 then ((case when strpos(s.error, '\u') = 0 then s.error
    else regexp_replace(s.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'code') end as last_error_code,
  s.queue, s.priority, s.attempts_max, to_timestamp((s.nominal_at) / 1000.0) as nominal_at, s.parent as parent_id,
  (case when strpos(coalesce(s.tags, '[]'), '\u') = 0 then coalesce(s.tags, '[]')
    else regexp_replace(coalesce(s.tags, '[]'), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as tags, (case when strpos(coalesce(s.items, '{}'), '\u') = 0 then coalesce(s.items, '{}')
    else regexp_replace(coalesce(s.items, '{}'), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as items,
  s.status = 1 and exists (
    select 1 from item_count c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  (case when strpos(s.input, '\u') = 0 then s.input
    else regexp_replace(s.input, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as input, (case when strpos(s.result, '\u') = 0 then s.result
    else regexp_replace(s.result, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as result,
  to_timestamp((s.cancel_requested_at) / 1000.0) as cancel_requested_at, s.version,
  s.finished_at - coalesce((select min(a.started_at) from attempt a where a.run = s.id), s.started_at) as whole_duration_ms
from run_state s;

create or replace view v_running_runs as
select s.id, s.job, s.schedule,
  case s.mode when 0 then 'enqueued' when 1 then 'scheduled' when 2 then 'manual' when 3 then 'test' when 4 then 'backfill' end as mode, case s.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status, s.attempt,
  to_timestamp((s.created_at) / 1000.0) as created_at, to_timestamp((s.due_at) / 1000.0) as due_at,
  to_timestamp((s.started_at) / 1000.0) as started_at, to_timestamp((s.finished_at) / 1000.0) as finished_at,
  s.finished_at - s.started_at as duration_ms,
  to_timestamp((coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then a.started_at else a.ended_at end) from attempt a where a.run = s.id))) / 1000.0) as heartbeat_at, to_timestamp((s.updated_at) / 1000.0) as updated_at,
  s.holder, to_timestamp((s.lease_until) / 1000.0) as lease_until, s.fence, s.key,
  case when s.status <> 1 then ((case when strpos(s.error, '\u') = 0 then s.error
    else regexp_replace(s.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'message') end as last_error,
  case when s.status <> 1 then ((case when strpos(s.error, '\u') = 0 then s.error
    else regexp_replace(s.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'code') end as last_error_code,
  s.queue, s.priority, s.attempts_max, to_timestamp((s.nominal_at) / 1000.0) as nominal_at, s.parent as parent_id,
  (case when strpos(coalesce(s.tags, '[]'), '\u') = 0 then coalesce(s.tags, '[]')
    else regexp_replace(coalesce(s.tags, '[]'), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as tags, (case when strpos(coalesce(s.items, '{}'), '\u') = 0 then coalesce(s.items, '{}')
    else regexp_replace(coalesce(s.items, '{}'), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as items,
  s.status = 1 and exists (
    select 1 from item_count c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  (case when strpos(s.input, '\u') = 0 then s.input
    else regexp_replace(s.input, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as input, (case when strpos(s.result, '\u') = 0 then s.result
    else regexp_replace(s.result, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as result,
  to_timestamp((s.cancel_requested_at) / 1000.0) as cancel_requested_at, s.version,
  (clock() - s.heartbeat_at) / 1000 as seconds_since_heartbeat,
  case when s.lease_until > clock() then 'active' else 'silent' end as heartbeat_status from run_state s where s.id in (select p.run from live_run p where p.place = 'lease') and s.status = 0;

create or replace view v_stale_runs as
select s.id, s.job, s.schedule,
  case s.mode when 0 then 'enqueued' when 1 then 'scheduled' when 2 then 'manual' when 3 then 'test' when 4 then 'backfill' end as mode, case s.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status, s.attempt,
  to_timestamp((s.created_at) / 1000.0) as created_at, to_timestamp((s.due_at) / 1000.0) as due_at,
  to_timestamp((s.started_at) / 1000.0) as started_at, to_timestamp((s.finished_at) / 1000.0) as finished_at,
  s.finished_at - s.started_at as duration_ms,
  to_timestamp((coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in ('{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}', '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}', '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}') then a.started_at else a.ended_at end) from attempt a where a.run = s.id))) / 1000.0) as heartbeat_at, to_timestamp((s.updated_at) / 1000.0) as updated_at,
  s.holder, to_timestamp((s.lease_until) / 1000.0) as lease_until, s.fence, s.key,
  case when s.status <> 1 then ((case when strpos(s.error, '\u') = 0 then s.error
    else regexp_replace(s.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'message') end as last_error,
  case when s.status <> 1 then ((case when strpos(s.error, '\u') = 0 then s.error
    else regexp_replace(s.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'code') end as last_error_code,
  s.queue, s.priority, s.attempts_max, to_timestamp((s.nominal_at) / 1000.0) as nominal_at, s.parent as parent_id,
  (case when strpos(coalesce(s.tags, '[]'), '\u') = 0 then coalesce(s.tags, '[]')
    else regexp_replace(coalesce(s.tags, '[]'), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as tags, (case when strpos(coalesce(s.items, '{}'), '\u') = 0 then coalesce(s.items, '{}')
    else regexp_replace(coalesce(s.items, '{}'), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as items,
  s.status = 1 and exists (
    select 1 from item_count c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  (case when strpos(s.input, '\u') = 0 then s.input
    else regexp_replace(s.input, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as input, (case when strpos(s.result, '\u') = 0 then s.result
    else regexp_replace(s.result, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as result,
  to_timestamp((s.cancel_requested_at) / 1000.0) as cancel_requested_at, s.version,
  (clock() - s.heartbeat_at) / 1000 as seconds_since_heartbeat,
  case when s.lease_until > clock() then 'active' else 'silent' end as heartbeat_status,
  case when s.heartbeat_at <= clock() - 600000 then 'silent' else 'timeout' end as stale_reason
from run_state s
where s.id in (select p.run from live_run p where p.place = 'lease') and s.status = 0 and (s.heartbeat_at <= clock() - 600000 or s.started_at <= clock() - 7200000);

create or replace view v_run_stats as
select cast(to_timestamp((t.day_at) / 1000.0) at time zone 'UTC' as date) as day, t.total, t.completed, t.failed, t.cancelled,
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
  where r.hour_at >= clock() - clock() % 86400000 - 2505600000
  group by r.hour_at - r.hour_at % 86400000
) t;

create or replace view v_run_attempts as
select a.run as run_id, a.attempt, a.fence, i.id as holder, case a.ended when 0 then 'failed' when 1 then 'lost' when 2 then 'timeout' when 3 then 'later' when 4 then 'handed_back' when 5 then 'cancelled' when 6 then 'suspended' when 11 then 'completed' when 12 then 'failed' when 13 then 'cancelled' end as ended,
  to_timestamp((a.started_at) / 1000.0) as started_at, to_timestamp((a.ended_at) / 1000.0) as ended_at,
  a.ended_at - a.started_at as duration_ms, ((case when strpos(a.error, '\u') = 0 then a.error
    else regexp_replace(a.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'message') as error,
  ((case when strpos(a.error, '\u') = 0 then a.error
    else regexp_replace(a.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'code') as error_code
from (
  select x.run, x.attempt, x.fence, x.holder, x.ended, x.started_at, x.ended_at, x.error from attempt x
  union all
  select o.id, o.attempt, o.fence, o.holder, o.status + 10, o.started_at, o.finished_at, o.error from outcome o
  where o.fence is not null
) a left join instance i on i.no = a.holder;

create or replace view v_run_items as
select t.run as run_id, t.key, t.outcome, t.attempt, t.fence,
  to_timestamp((t.started_at) / 1000.0) as started_at, t.duration_ms, (case when strpos(t.value, '\u') = 0 then t.value
    else regexp_replace(t.value, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as value,
  ((case when strpos(t.error, '\u') = 0 then t.error
    else regexp_replace(t.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'message') as error, ((case when strpos(t.error, '\u') = 0 then t.error
    else regexp_replace(t.error, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb ->> 'code') as error_code
from item t;

create or replace view v_run_logs as
select g.run as run_id, g.fence, g.no, g.attempt, to_timestamp((g.at) / 1000.0) as at,
  case g.level when 0 then 'debug' when 1 then 'info' when 2 then 'warn' when 3 then 'error' end as level, g.message, (case when strpos(g.fields, '\u') = 0 then g.fields
    else regexp_replace(g.fields, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as fields
from log g;

create or replace view v_schedules as
select s.name, s.job, s.paused_at is not null as paused, to_timestamp((s.next_at) / 1000.0) as next_run_at,
  to_timestamp((case when r.id is null then null
    else coalesce(o.started_at, h.claimed_at, r.created_at) end) / 1000.0) as last_run_at,
  case when r.id is null then null when o.id is not null then case o.status when -1 then 'pending' when 0 then 'running' when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end
    when h.run is not null then 'running' else 'pending' end as last_status,
  k.holder as locked_by, to_timestamp((k.until) / 1000.0) as locked_until, s.version,
  case when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end as state,
  s.last_run as last_run_id, to_timestamp((s.last_tick_at) / 1000.0) as last_tick_at, to_timestamp((s.cursor_at) / 1000.0) as recorded_until,
  s.queue, s.priority, coalesce(to_jsonb(s.tags), '[]') as tags, (case when strpos(s.definition, '\u') = 0 then s.definition
    else regexp_replace(s.definition, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as definition, (case when strpos(s.input, '\u') = 0 then s.input
    else regexp_replace(s.input, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as input,
  to_timestamp((s.paused_at) / 1000.0) as paused_at, s.paused_by, s.pause_note, to_timestamp((s.broken_at) / 1000.0) as broken_at,
  s.broken_error, s.app, case s.source when 0 then 'api' when 1 then 'code' end as source, s.release,
  to_timestamp((s.created_at) / 1000.0) as created_at, to_timestamp((s.updated_at) / 1000.0) as updated_at
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

create or replace view v_ticks as
select s.name as schedule, to_timestamp((t.at) / 1000.0) as tick_at, to_timestamp((t.last_at) / 1000.0) as last_tick_at, t.count,
  case t.outcome when 0 then 'fired' when 1 then 'skipped' when 2 then 'missed' end as outcome, case t.reason when 0 then 'on_time' when 1 then 'late' when 2 then 'catch_up' when 3 then 'stuck_reset' when 4 then 'overlap' when 5 then 'queue_full' when 6 then 'after_failure' when 7 then 'paused' when 8 then 'nobody' when 9 then 'too_old' when 10 then 'over_limit' when 11 then 'broken' when 12 then 'no_ping' end as reason, t.run as run_id,
  to_timestamp((t.recorded_at) / 1000.0) as recorded_at, i.id as holder, t.version, (case when strpos(t.evidence, '\u') = 0 then t.evidence
    else regexp_replace(t.evidence, '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as evidence
from tick t join schedule s on s.id = t.schedule left join instance i on i.no = t.holder;

create or replace view v_locks as
select l.name, l.holder, l.fence, to_timestamp((l.acquired_at) / 1000.0) as acquired_at,
  to_timestamp((l.renewed_at) / 1000.0) as renewed_at, to_timestamp((l.until) / 1000.0) as lease_until, l.until <= clock() as expired,
  (select count(*) from lock_waiter w where w.name = l.name and w.seen_at > clock() - 3000) as waiting,
  l.execution
from held_lock l;

create or replace view v_lock_history as
select h.name, h.fence, h.holder, case h.state when 0 then 'acquired' when 1 then 'released' when 2 then 'expired' when 3 then 'revoked' end as status,
  to_timestamp((h.acquired_at) / 1000.0) as acquired_at, to_timestamp((h.until) / 1000.0) as lease_until,
  to_timestamp((h.ended_at) / 1000.0) as ended_at, h.ended_at - h.acquired_at as held_ms, h.note, h.execution
from (
  select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution
  from lock_history x
  union all
  select l.fence, l.name, l.holder, 0, l.acquired_at, l.until, null, null, l.execution from held_lock l
) h;

create or replace view v_instances as
select i.id, i.app, i.release, (case when strpos(cast(i.jobs as text), '\u') = 0 then cast(i.jobs as text)
    else regexp_replace(cast(i.jobs as text), '\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]', '\\ufffd', 'gi') end)::jsonb as jobs, i.is_scheduler as scheduler,
  i.retired_at is null and (i.seen_at > clock() - 60000 or i.seen_at > clock() - 3 * i.poll_ms) as live,
  to_timestamp((i.started_at) / 1000.0) as started_at, to_timestamp((i.seen_at) / 1000.0) as seen_at,
  to_timestamp((i.polled_at) / 1000.0) as polled_at, to_timestamp((i.retired_at) / 1000.0) as retired_at,
  (select count(*) from live_run p join lease l on l.fence = p.fence where l.holder = i.no) as held
from instance i;

create or replace view v_queues as
select n.name, q.paused_at is not null as paused, to_timestamp((q.paused_at) / 1000.0) as paused_at, q.pause_note,
  coalesce(c.ready, 0) as ready, coalesce(c.waiting, 0) as waiting, coalesce(c.running, 0) as running
from (select l.queue as name from lane l union select x.name from queue x) n
left join queue q on q.name = n.name
left join (
  select l.queue, cast(sum(case when p.place = 'ready' then 1 else 0 end) as bigint) as ready,
    cast(sum(case when p.place = 'waiting' then 1 else 0 end) as bigint) as waiting,
    cast(sum(case when p.place = 'lease' then 1 else 0 end) as bigint) as running
  from live_run p join lane l on l.id = p.lane group by l.queue
) c on c.queue = n.name;;
