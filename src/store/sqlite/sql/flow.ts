// The statements of limits on SQLite. They run inside of write transactions, so what one of them reads
// is what the next one finds; the decisions in between are in sqlite-flow.ts.

import { LANES_OF_JOBS, MAY_CLAIM } from "./lanes.js";

const COUNTERS = "attempt, losses, refunds, laters, extra";

/** Flows are made when they are first needed; the one of the whole job goes with any other. */
export const ENSURE_FLOW = /* sql */ `
insert into {flow} (job, key, used, open_at) values (:job, :key, 0, 0)
on conflict (job, key) do update set used = used returning id`;

/** Where somebody stands already, newcomers change nothing. */
export const OPEN_LINE = /* sql */ `
insert into {flow_line} (flow, lane, suspect, look_at) values (:flow, :lane, :suspect, :now)
on conflict do update set look_at = coalesce(look_at, excluded.look_at)`;

export const STAND_NEW_RUN = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect, gate, flow)
values (:row ->> 0, :row ->> 1, :row ->> 2, :row ->> 3, :row ->> 4, 0, 0, 0, 0, 0, 0, :row ->> 5, :row ->> 6)`;

export const LEAVE_FLOW = /* sql */ `delete from {flow_run} where run = :run returning flow, held`;
export const FLOW_OF_RUN = /* sql */ `
select p.flow, r.lane, exists (
  select 1 from {lane} l join {job} j on j.name = l.job where l.id = r.lane and j.rate_limit is not null) as is_rated
from {flow_run} p join {run} r on r.id = p.run where p.run = :run`;
export const FREE_FLOW = /* sql */ `update {flow} set open_at = 0 where id = :flow`;
export const FREE_LINES = /* sql */ `
update {flow_line} set look_at = :now where flow = :flow and look_at is not null`;

export const KEEP_FLOW = /* sql */ `update {waiting} set flow = :flow where id = :run`;
export const MARK_LIMITED = /* sql */ `update {ready} set limited = 1 where id = :run`;
/** From ready back to the line. */
export const STAND_AGAIN = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect, gate, flow)
select y.id, :now, y.lane, y.policy, r.priority, y.attempt, y.losses, y.refunds, y.laters, y.extra, y.suspect, 'flow', :flow
from {ready} y cross join {run} r on r.id = y.id where y.id = :run
returning lane, suspect`;
export const DELETE_READY = /* sql */ `delete from {ready} where id = :run`;
/** From behind a gate, or from the future, to the line. */
export const STAND_NOW = /* sql */ `
update {waiting} set gate = 'flow', wake_at = min(wake_at, :now), flow = :flow where id = :run returning lane, suspect`;

export const HAS_LIMITED_JOBS = /* sql */ `
select 1 from {job} where concurrency_limit is not null or rate_limit is not null limit 1`;

const LIMITS = "j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms, j.rate_key";

/** Of these runs, the ones whose job is limited. */
export const LIMITED_AMONG = /* sql */ `
select r.id, r.input, l.job, ${LIMITS}
from json_each(:ids) m cross join {run} r on r.id = m.value
join {lane} l on l.id = r.lane join {job} j on j.name = l.job
where j.concurrency_limit is not null or j.rate_limit is not null`;

export const DUE_LIMITED = /* sql */ `
select id, lane, flow, suspect from (
  select * from {waiting} where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0))
where flow is not null`;

const HAS_LINES = /* sql */ `exists (select 1 from {flow_line} a where a.look_at is not null)`;

/** Whether anybody stands in a line that may be served: most of the time nobody does anywhere. */
export const ANY_LINE = /* sql */ `select 1 from {flow_line} where look_at is not null limit 1`;

/** The lines that are worth a look, those that waited longest for one first. */
export const LINES = /* sql */ `
select n.flow, n.lane, n.look_at, r.id as root, f.key, ${LIMITS}
from {lane} l
join {flow} r on r.job = l.job and r.key = '' and r.open_at <= :now
join {job} j on j.name = l.job
left join {queue} q on q.name = l.queue
cross join {flow_line} n on n.lane = l.id and n.suspect = :suspect and n.look_at <= :now
cross join {flow} f on f.id = n.flow
where l.job in (select value from json_each(:jobs)) and ${MAY_CLAIM}
order by n.look_at, n.flow limit (:limit + 0)`;

export const HELD_COUNT = /* sql */ `select count(*) as held from {flow_run} where held = :flow`;
export const PASS_TURNS = /* sql */ `delete from {flow_turn} where flow = :flow and at <= :before returning runs`;
export const USED = /* sql */ `select used from {flow} where id = :flow`;
export const SET_USED = /* sql */ `update {flow} set used = used + :runs where id = :flow`;
export const FIRST_TURN = /* sql */ `select min(at) as at from {flow_turn} where flow = :flow`;
export const TAKE_TURNS = /* sql */ `
insert into {flow_turn} (flow, at, runs) values (:flow, :now, :runs)
on conflict do update set runs = runs + excluded.runs`;

export const STANDING = /* sql */ `
select id, wake_at - priority * 60000 as sort_at, policy, ${COUNTERS} from {waiting}
where flow = :flow and lane = :lane and suspect = :suspect and gate = 'flow'
order by wake_at - priority * 60000, id limit (:limit + 0)`;

export const DELETE_STANDING = /* sql */ `
delete from {waiting} where id in (select value from json_each(:ids))`;
export const LET_THROUGH = /* sql */ `
insert into {flow_run} (run, flow, held) select value, :flow, :held from json_each(:ids)`;
export const SET_LOOK = /* sql */ `
update {flow_line} set look_at = :lookAt where flow = :flow and lane = :lane and suspect = :suspect`;
export const SET_OPEN = /* sql */ `update {flow} set open_at = :openAt where id = :flow`;

/** Whether a lane of these jobs has a line that is worth a look. */
export const HAS_LINE = (suspect: 0 | 1) => /* sql */ `
${HAS_LINES} and exists (
  select 1 from ${LANES_OF_JOBS} cross join {flow} r on r.job = l.job and r.key = '' and r.open_at <= :now
  where ${MAY_CLAIM} and exists (select 1 from {flow_line} n where n.lane = l.id and n.suspect = ${suspect} and n.look_at <= :now))`;

export const REOPEN_FLOWS = /* sql */ `update {flow} set open_at = 0 where job = :name`;
export const REOPEN_LINES = /* sql */ `
update {flow_line} set look_at = :now
where look_at is not null and flow in (select id from {flow} where job = :name)`;

/** Flows that nobody waits in and nobody counts in; whole jobs stay, there are few. */
export const IDLE_FLOWS = /* sql */ `
select f.id from {flow} f
where f.key <> ''
  and not exists (select 1 from {waiting} w where w.flow = f.id)
  and not exists (select 1 from {flow_run} r where r.flow = f.id)
  and not exists (
    select 1 from {flow_turn} t where t.flow = f.id
      and t.at > :now - coalesce((select j.rate_per_ms from {job} j where j.name = f.job), 0))
limit (:limit + 0)`;
export const PRUNE_FLOWS = [
  /* sql */ `delete from {flow_turn} where flow in (select value from json_each(:ids))`,
  /* sql */ `delete from {flow_line} where flow in (select value from json_each(:ids))`,
  /* sql */ `delete from {flow} where id in (select value from json_each(:ids))`,
] as const;

/** What keeps a pending run; nothing where it is not pending. */
export const WAITING_FOR = /* sql */ `
with pending as materialized (
  select r.id, r.lane, null as wake_at, null as gate, null as flow, 0 as priority from {ready} r where r.id = :id
  union all
  select w.id, w.lane, w.wake_at, w.gate, w.flow, w.priority from {waiting} w where w.id = :id
)
select :now as now, p.wake_at, p.gate, f.key, l.queue, q.paused_at, q.pause_note, ${LIMITS},
  (select json_array(z.at, z.note) from {pause} z where z.until_at is null) as paused,
  (select count(*) from {flow_run} h where h.held = iif(j.concurrency_key is null, root.id, f.id)) as held,
  (select coalesce(sum(y.runs), 0) from {flow_turn} y
    where y.flow = iif(j.rate_key is null, root.id, f.id) and y.at > :now - j.rate_per_ms) as used,
  (select min(y.at) from {flow_turn} y
    where y.flow = iif(j.rate_key is null, root.id, f.id) and y.at > :now - j.rate_per_ms) as first_at,
  (select count(*) from (
    select 1 from {waiting} w where w.flow = p.flow and w.gate = 'flow' and p.gate = 'flow'
      and (w.wake_at - w.priority * 60000, w.id) < (p.wake_at - p.priority * 60000, p.id) limit 1001)) as ahead,
  p.gate = 'schedule' and exists (
    select 1 from {run} own join {schedule} s on s.id = own.schedule
    cross join json_each(s.live) m cross join {run} r on r.id = m.value
    where own.id = p.id and r.id <> p.id and not exists (select 1 from {outcome} o where o.id = r.id)
      and (m.key < coalesce((select y.key from json_each(s.live) y where y.value = p.id), 2147483647)
        or (not exists (select 1 from {waiting} w where w.id = r.id and w.gate = 'schedule')
          and json_extract(s.definition, '$.overlap') <> 'allow'))) as is_kept,
  (select count(*) from {instance} i
    where i.retired_at is null and i.seen_at > :now - max(5 * i.poll_ms, 60000)
      and l.job in (select value from json_each(i.jobs))) as instances
from pending p
join {lane} l on l.id = p.lane
left join {queue} q on q.name = l.queue
left join {job} j on j.name = l.job
left join {flow} f on f.id = p.flow
left join {flow} root on root.job = l.job and root.key = ''`;

export const QUEUES = /* sql */ `
with counts as (
  select lane, count(*) as ready, 0 as waiting, 0 as running from {ready} group by lane
  union all
  select lane, 0, count(*), 0 from {waiting} group by lane
  union all
  select lane, 0, 0, sum(json_array_length(ids)) from {lease} group by lane
)
select n.name, q.paused_at, q.pause_note, coalesce(c.ready, 0) as ready, coalesce(c.waiting, 0) as waiting,
  coalesce(c.running, 0) as running
from (select l.queue as name from {lane} l union select x.name from {queue} x) n
left join {queue} q on q.name = n.name
left join (
  select l.queue, sum(x.ready) as ready, sum(x.waiting) as waiting, sum(x.running) as running
  from counts x join {lane} l on l.id = x.lane group by l.queue) c on c.queue = n.name
order by n.name`;

/** What is so already is not written, and a queue that nobody knows is not made by resuming it. */
export const PAUSE_QUEUE = /* sql */ `
insert into {queue} (name, paused_at, pause_note)
select :queue, iif(:isPaused, :now, null), iif(:isPaused, :note, null)
where :isPaused or exists (select 1 from {queue} x where x.name = :queue)
on conflict (name) do update set paused_at = iif(:isPaused, coalesce(paused_at, :now), null),
  pause_note = iif(:isPaused, coalesce(:note, pause_note), null)
where (paused_at is not null) <> :isPaused or (:isPaused and :note <> coalesce(pause_note, ''))`;
