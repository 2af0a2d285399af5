-- ANY_LINE
select 1 from flow_line where look_at is not null limit 1;

-- DELETE_READY
delete from ready where id = :run;

-- DELETE_STANDING
delete from waiting where id in (select value from json_each(:ids));

-- DUE_LIMITED
select id, lane, flow, suspect from (
  select * from waiting where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0))
where flow is not null;

-- ENSURE_FLOW
insert into flow (job, key, used, open_at) values (:job, :key, 0, 0)
on conflict (job, key) do update set used = used returning id;

-- FIRST_TURN
select min(at) as at from flow_turn where flow = :flow;

-- FLOW_OF_RUN
select p.flow, r.lane, exists (
  select 1 from lane l join job j on j.name = l.job where l.id = r.lane and j.rate_limit is not null) as is_rated
from flow_run p join run r on r.id = p.run where p.run = :run;

-- FREE_FLOW
update flow set open_at = 0 where id = :flow;

-- FREE_LINES
update flow_line set look_at = :now where flow = :flow and look_at is not null;

-- HAS_LIMITED_JOBS
select 1 from job where concurrency_limit is not null or rate_limit is not null limit 1;

-- HELD_COUNT
select count(*) as held from flow_run where held = :flow;

-- IDLE_FLOWS
select f.id from flow f
where f.key <> ''
  and not exists (select 1 from waiting w where w.flow = f.id)
  and not exists (select 1 from flow_run r where r.flow = f.id)
  and not exists (
    select 1 from flow_turn t where t.flow = f.id
      and t.at > :now - coalesce((select j.rate_per_ms from job j where j.name = f.job), 0))
limit (:limit + 0);

-- KEEP_FLOW
update waiting set flow = :flow where id = :run;

-- LEAVE_FLOW
delete from flow_run where run = :run returning flow, held;

-- LET_THROUGH
insert into flow_run (run, flow, held) select value, :flow, :held from json_each(:ids);

-- LIMITED_AMONG
select r.id, r.input, l.job, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms, j.rate_key
from json_each(:ids) m cross join run r on r.id = m.value
join lane l on l.id = r.lane join job j on j.name = l.job
where j.concurrency_limit is not null or j.rate_limit is not null;

-- LINES
select n.flow, n.lane, n.look_at, r.id as root, f.key, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms, j.rate_key
from lane l
join flow r on r.job = l.job and r.key = '' and r.open_at <= :now
join job j on j.name = l.job
left join queue q on q.name = l.queue
cross join flow_line n on n.lane = l.id and n.suspect = :suspect and n.look_at <= :now
cross join flow f on f.id = n.flow
where l.job in (select value from json_each(:jobs)) and 
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null
order by n.look_at, n.flow limit (:limit + 0);

-- MARK_LIMITED
update ready set limited = 1 where id = :run;

-- OPEN_LINE
insert into flow_line (flow, lane, suspect, look_at) values (:flow, :lane, :suspect, :now)
on conflict do update set look_at = coalesce(look_at, excluded.look_at);

-- PASS_TURNS
delete from flow_turn where flow = :flow and at <= :before returning runs;

-- PRUNE_FLOWS.0
delete from flow_turn where flow in (select value from json_each(:ids));

-- PRUNE_FLOWS.1
delete from flow_line where flow in (select value from json_each(:ids));

-- PRUNE_FLOWS.2
delete from flow where id in (select value from json_each(:ids));

-- REOPEN_FLOWS
update flow set open_at = 0 where job = :name;

-- REOPEN_LINES
update flow_line set look_at = :now
where look_at is not null and flow in (select id from flow where job = :name);

-- SET_LOOK
update flow_line set look_at = :lookAt where flow = :flow and lane = :lane and suspect = :suspect;

-- SET_OPEN
update flow set open_at = :openAt where id = :flow;

-- SET_USED
update flow set used = used + :runs where id = :flow;

-- STANDING
select id, wake_at - priority * 60000 as sort_at, policy, attempt, losses, refunds, laters, extra from waiting
where flow = :flow and lane = :lane and suspect = :suspect and gate = 'flow'
order by wake_at - priority * 60000, id limit (:limit + 0);

-- STAND_AGAIN
insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
select y.id, :now, y.lane, y.policy, r.priority, y.attempt, y.losses, y.refunds, y.laters, y.extra, y.suspect, 'flow', :flow
from ready y cross join run r on r.id = y.id where y.id = :run
returning lane, suspect;

-- STAND_NEW_RUN
insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
values (:row ->> 0, :row ->> 1, :row ->> 2, :row ->> 3, :row ->> 4, 0, 0, 0, 0, 0, 0, :row ->> 5, :row ->> 6);

-- STAND_NOW
update waiting set gate = 'flow', asleep_at = null, wake_at = min(wake_at, :now), flow = :flow where id = :run returning lane, suspect;

-- TAKE_TURNS
insert into flow_turn (flow, at, runs) values (:flow, :now, :runs)
on conflict do update set runs = runs + excluded.runs;

-- USED
select used from flow where id = :flow;
