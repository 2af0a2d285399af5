-- CHECKS.0.sql
select 1 as what where false;

-- CHECKS.1.sql
select cast(r.id as text) as what, count(p.run) as places, min(p.place) as one, max(p.place) as another
from run r left join (
  select x.run, x.place from live_run x union all select o.id, 'outcome' from outcome o) p on p.run = r.id
group by r.id having count(p.run) <> 1 and not (false);

-- CHECKS.10.sql
select k.job || ' ' || k.key as what, cast(k.run as text) as run from key k
where not exists (
  select 1 from run r join lane l on l.id = r.lane where r.id = k.run and l.job = k.job);

-- CHECKS.11.sql
select cast(e.lane as text) as what, e.hour_at, e.status, e.runs as ended, coalesce(t.runs, 0) as counted
from (
  select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, o.status, count(*) as runs from outcome o
  where o.fence is not null and o.finished_at > :now - 2592000000 group by 1, 2, 3
) e left join (
  select x.hour_at, x.lane, x.status, sum(x.runs) as runs from rollup x group by 1, 2, 3
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.status = e.status
where e.runs > coalesce(t.runs, 0);

-- CHECKS.12.sql
select min(s.name) || ' ' || cast(r.nominal_at as text) as what, count(*) as runs
from run r join schedule s on s.id = r.schedule
where r.mode = 1 group by r.schedule, r.nominal_at having count(*) > 1;

-- CHECKS.13.sql
select s.name || ' ' || cast(t.at as text) as what, cast(t.run as text) as run
from tick t join schedule s on s.id = t.schedule left join run r on r.id = t.run
where (t.run is not null and t.outcome <> 0)
  or (r.id is not null and (r.mode <> 1 or r.schedule <> t.schedule or r.nominal_at <> t.at));

-- CHECKS.14.sql
select s.name || ' ' || cast(t.at as text) as what, t.outcome, t.reason from tick t join schedule s on s.id = t.schedule
where not ((t.outcome = 0 and t.reason in (0, 1, 2, 3)) or (t.outcome = 1 and t.reason in (4, 5, 6, 7)) or (t.outcome = 2 and t.reason in (8, 9, 10, 11, 12))) or t.count < 1 or t.last_at < t.at;

-- CHECKS.15.sql
select cast(r.id as text) as what, s.name as schedule, r.nominal_at from run r join schedule s on s.id = r.schedule
where r.mode = 1
  and not exists (select 1 from tick t where t.schedule = r.schedule and t.at = r.nominal_at and t.run = r.id)
  and not exists (
    select 1 from run x where x.schedule = r.schedule and x.nominal_at = r.nominal_at and x.mode = r.mode and x.id <> r.id)
  and (r.nominal_at > :now - 3600000 or exists (
    select 1 from tick t where t.schedule = r.schedule and t.outcome = 0
      and t.at < r.nominal_at and t.at >= r.nominal_at - r.nominal_at % 86400000));

-- CHECKS.16.sql
select x.name || ' ' || cast(x.at as text) as what, x.before
from (
  select s.name, t.at, lag(t.last_at) over (partition by t.schedule order by t.at) as before
  from tick t join schedule s on s.id = t.schedule
) x where x.before >= x.at;

-- CHECKS.17.sql
select s.name as what, s.cursor_at, max(t.last_at) as recorded_at
from schedule s join tick t on t.schedule = s.id group by s.id, s.name, s.cursor_at having max(t.last_at) > s.cursor_at;

-- CHECKS.18.sql
select s.name as what, s.cursor_at, s.next_at from schedule s where s.next_at <= s.cursor_at;

-- CHECKS.19.sql
select s.name as what from schedule s
where s.next_at is null and not s.is_ended and s.paused_at is null and s.broken_at is null and s.deleted_at is null;

-- CHECKS.2.sql
select cast(p.run as text) as what, p.place from (
  select x.run, x.place from live_run x union all select o.id, 'outcome' from outcome o) p
where not exists (select 1 from run r where r.id = p.run) and not (false);

-- CHECKS.20.sql
select s.name as what, s.next_at from schedule s
where s.next_at is not null and (s.is_ended or s.paused_at is not null or s.broken_at is not null or s.deleted_at is not null);

-- CHECKS.21.sql
select s.name as what, s.next_at from schedule s
where s.next_at < :now - 300000
  and exists (select 1 from instance i where i.retired_at is null and i.polled_at > :now - 60000)
  and not exists (select 1 from pause z where z.until_at is null or z.until_at > :now - 300000);

-- CHECKS.22.sql
select cast(p.run as text) as what, s.name as schedule
from live_run p join run r on r.id = p.run join schedule s on s.id = r.schedule
where not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run);

-- CHECKS.23.sql
select cast(w.id as text) as what, s.name as schedule
from waiting w join run r on r.id = w.id left join schedule s on s.id = r.schedule
where w.gate = 'schedule' and (s.id is null or not s.is_gated);

-- CHECKS.24.sql
select s.name as what, count(*) as runs
from live_run p join lease k on k.fence = p.fence join run r on r.id = p.run join schedule s on s.id = r.schedule
where k.until > :now and r.created_at > s.updated_at and (s.definition ->> 'overlap') in ('skip', 'queue')
group by s.id, s.name having count(*) > 1;

-- CHECKS.25.sql
select s.name as what, s.version from schedule s
where not exists (select 1 from schedule_version v where v.schedule = s.id and v.version = s.version);

-- CHECKS.26.sql
select cast(f.run as text) as what, f.flow from flow_run f
where not exists (select 1 from live_run p where p.run = f.run and p.place in ('ready', 'lease'));

-- CHECKS.27.sql
select cast(p.run as text) as what, p.place
from live_run p left join lease k on k.fence = p.fence left join ready y on y.id = p.run and p.place = 'ready'
where (k.limited or y.limited) and not exists (select 1 from flow_run f where f.run = p.run);

-- CHECKS.28.sql
select cast(w.id as text) as what, w.flow from waiting w
where w.gate = 'flow' and not exists (
  select 1 from flow_line n
  where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null);

-- CHECKS.29.sql
select f.job || ' ' || f.key as what, f.used, coalesce(sum(t.runs), 0) as counted
from flow f left join flow_turn t on t.flow = f.id
group by f.id, f.job, f.key, f.used having f.used <> coalesce(sum(t.runs), 0);

-- CHECKS.3.sql
select cast(r.id as text) as what, p.place from live_run p join run r on r.id = p.run
where p.lane <> r.lane or p.policy <> r.policy
union all
select cast(r.id as text), 'outcome' from outcome o join run r on r.id = o.id where o.lane <> r.lane;

-- CHECKS.30.sql
select cast(b.run as text) || ' ' || b.name as what, b.scheduled, b.unended, coalesce(c.live, 0) as live,
  b.completed + b.failed + b.cancelled as ended
from batch b left join (
  select r.batch, count(*) as live from live_run p join run r on r.id = p.run
  where r.batch is not null group by r.batch
) c on c.batch = b.id
where b.unended <> coalesce(c.live, 0) or b.scheduled <> b.unended + b.completed + b.failed + b.cancelled
  or (b.unended = 0 and b.ended_at is null);

-- CHECKS.31.sql
select cast(c.run as text) || ' ' || c.outcome as what, sum(c.counted) as counted, sum(c.there) as there
from (
  select x.run, x.outcome, x.items as counted, 0 as there from item_count x
  union all select i.run, i.outcome, 0, count(*) from item i group by i.run, i.outcome
) c join run r on r.id = c.run group by c.run, c.outcome having sum(c.counted) <> sum(c.there);

-- CHECKS.32.sql
select l.name as what, l.fence from held_lock l join lock_history h on h.fence = l.fence;

-- CHECKS.33.sql
select x.name as what, x.fence, x.acquired_at, x.before as ended_at
from (
  select g.name, g.fence, g.acquired_at, lag(g.ended_at) over (partition by g.name order by g.fence) as before
  from (
    select h.name, h.fence, h.acquired_at, h.ended_at from lock_history h
    union all select l.name, l.fence, l.acquired_at, null from held_lock l
  ) g
) x where x.before > x.acquired_at;

-- CHECKS.34.sql
select cast(waiting.id as text) as what, waiting.asleep_at from waiting where asleep_at is not null and not exists (select 1 from wait x where x.run = waiting.id);

-- CHECKS.35.sql
select cast(w.id as text) as what, w.wake_at, min(x.until) as deadline_at from waiting w join wait x on x.run = w.id
where w.asleep_at is not null and w.gate is null and w.wake_at > :now group by w.id, w.wake_at having min(x.until) < w.wake_at;

-- CHECKS.36.sql
select cast(e.id as text) as what, e.name as wait from (
select w.id, x.name from waiting w join wait x on x.run = w.id
left join signal s on x.kind = 2 and s.name = x.signal and s.key = x.key
  and s.at >= coalesce(x.signal_since, 0) and s.at <= coalesce(x.until, s.at)
where w.asleep_at is not null and w.gate is null and w.wake_at > :now and not exists (select 1 from wake k where k.run = w.id)
  and (x.ended_at is not null or s.is_new = false
    or (x.kind = 3 and exists (select 1 from outcome o where o.id = x.child)))) e;

-- CHECKS.37.sql
select cast(x.run as text) as what, count(*) as waits from wait x where not exists (select 1 from live_run p where p.run = x.run)
  and not exists (select 1 from wake k where k.run = x.run)
  and not exists (select 1 from outcome o where o.id = x.run and x.kind = 3 and x.since >= o.finished_at) group by x.run;

-- CHECKS.38.sql
select cast(wait.run as text) as what, wait.name as wait from wait where exists (select 1 from step t where t.run = wait.run and t.name = wait.name);

-- CHECKS.39.sql
select cast(b.run as text) as what, b.name, count(*) as runs
from batch b join run r on r.batch = b.id
where substr(b.name, 1, 1) = char(1) group by b.id, b.run, b.name having count(*) > 1;

-- CHECKS.4.sql
select cast(k.fence as text) as what from lease k
where not exists (select 1 from live_run p where p.fence = k.fence);

-- CHECKS.40.sql
select cast(z.at as text) as what, z.until_at from pause z where z.until_at < z.at;

-- CHECKS.41.sql
select cast(d.alert as text) || ' ' || d.destination as what, d.event, d.state from alert_delivery d
where d.state not in ('pending', 'sent', 'failed') or d.event not in ('opened', 'resolved');

-- CHECKS.42.sql
select cast(a.id as text) as what, a.via, a.who, a.verb, a.noun from audit a
where a.who = '' or a.verb = '' or a.noun = '' or a.via not in ('code', 'cli', 'http');

-- CHECKS.43.sql
select substr(s.digest, 1, 8) as what, s.until_at from session s where s.secret = '' or length(s.digest) <> 64;

-- CHECKS.44.sql
select k.name as what, k.scopes, k.created_by from access_key k
where k.name = '' or length(k.digest) <> 64 or k.scopes not like '["%"]';

-- CHECKS.45.sql
select cast(h.fence as text) as what, h.name, h.state from lock_history h where h.state not in (1, 2, 3);

-- CHECKS.46.sql
select cast(x.run as text) as what, count(*) as "rows" from attempt x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (false)
group by x.run;

-- CHECKS.47.sql
select cast(x.run as text) as what, count(*) as "rows" from item x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (false)
group by x.run;

-- CHECKS.48.sql
select cast(x.run as text) as what, count(*) as "rows" from item_count x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (false)
group by x.run;

-- CHECKS.49.sql
select cast(x.run as text) as what, count(*) as "rows" from progress x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (false)
group by x.run;

-- CHECKS.5.sql
select cast(k.fence as text) as what, k.holder from lease k
where not exists (select 1 from instance i where i.no = k.holder);

-- CHECKS.50.sql
select cast(x.run as text) as what, count(*) as "rows" from log x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (false)
group by x.run;

-- CHECKS.51.sql
select cast(x.schedule as text) as what, count(*) as "rows" from run x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.52.sql
select cast(x.schedule as text) as what, count(*) as "rows" from tick x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.53.sql
select cast(x.schedule as text) as what, count(*) as "rows" from schedule_version x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.54.sql
select cast(x.schedule as text) as what, count(*) as "rows" from declared x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.55.sql
select cast(x.schedule as text) as what, count(*) as "rows" from delivery x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.56.sql
select cast(x.schedule as text) as what, count(*) as "rows" from backfill x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.57.sql
select cast(x.schedule as text) as what, count(*) as "rows" from backfill_run x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- CHECKS.58.sql
select cast(x.backfill as text) as what, count(*) as "rows" from schedule x
where x.backfill is not null and not exists (select 1 from backfill y where y.id = x.backfill)
  and not (false)
group by x.backfill;

-- CHECKS.59.sql
select cast(x.flow as text) as what, count(*) as "rows" from flow_line x
where x.flow is not null and not exists (select 1 from flow y where y.id = x.flow)
  and not (false)
group by x.flow;

-- CHECKS.6.sql
select cast(g.fence as text) as what, min(g.holder) as one, max(g.holder) as another
from (
  select k.fence, k.holder from lease k
  union all select a.fence, a.holder from attempt a
  union all select o.fence, o.holder from outcome o where o.fence is not null
) g group by g.fence having min(g.holder) <> max(g.holder);

-- CHECKS.60.sql
select cast(x.flow as text) as what, count(*) as "rows" from flow_turn x
where x.flow is not null and not exists (select 1 from flow y where y.id = x.flow)
  and not (false)
group by x.flow;

-- CHECKS.61.sql
select cast(x.flow as text) as what, count(*) as "rows" from flow_run x
where x.flow is not null and not exists (select 1 from flow y where y.id = x.flow)
  and not (false)
group by x.flow;

-- CHECKS.62.sql
select cast(x.alert as text) as what, count(*) as "rows" from alert_delivery x
where x.alert is not null and not exists (select 1 from alert y where y.id = x.alert)
  and not (false)
group by x.alert;

-- CHECKS.63.sql
select cast(x.lane as text) as what, count(*) as "rows" from run x
where x.lane is not null and not exists (select 1 from lane y where y.id = x.lane)
  and not (false)
group by x.lane;

-- CHECKS.64.sql
select cast(x.policy as text) as what, count(*) as "rows" from run x
where x.policy is not null and not exists (select 1 from policy y where y.id = x.policy)
  and not (false)
group by x.policy;

-- CHECKS.65.sql
select cast(x.policy as text) as what, count(*) as "rows" from job x
where x.policy is not null and not exists (select 1 from policy y where y.id = x.policy)
  and not (false)
group by x.policy;

-- CHECKS.7.sql
select cast(a.run as text) as what, a.fence, coalesce(o.fence, p.fence) as later
from attempt a
left join outcome o on o.id = a.run
left join live_run p on p.run = a.run and p.place = 'lease'
where a.fence >= coalesce(o.fence, p.fence);

-- CHECKS.8.sql
select x.kind as what, x.fence, x.drawn from (
  select 'run' as kind, max(g.fence) as fence, coalesce((select s.seq from sqlite_sequence s where s.name = 'lease'), 0) as drawn from (
    select k.fence from lease k union all select a.fence from attempt a union all select o.fence from outcome o
    union all select t.fence from step t) g
  union all
  select 'lock', max(g.fence), coalesce((select s.seq from sqlite_sequence s where s.name = 'lock'), 0) from (
    select l.fence from held_lock l union all select h.fence from lock_history h) g
) x where x.fence > x.drawn;

-- CHECKS.9.sql
select cast(p.run as text) as what, p.attempt, y.attempts + p.extra as attempts_max, p.place
from live_run p join policy y on y.id = p.policy
where p.attempt > y.attempts + p.extra or (p.place <> 'lease' and p.attempt = y.attempts + p.extra)
union all
select cast(o.id as text), o.attempt, y.attempts + o.extra, 'outcome'
from outcome o join run r on r.id = o.id join policy y on y.id = r.policy where o.attempt > y.attempts + o.extra;

-- LIMITS.0.sql
select cast(f.run as text) as what, f.flow from flow_run f
where not exists (select 1 from live_run p where p.run = f.run and p.place in ('ready', 'lease'));

-- LIMITS.1.sql
select cast(p.run as text) as what, p.place
from live_run p left join lease k on k.fence = p.fence left join ready y on y.id = p.run and p.place = 'ready'
where (k.limited or y.limited) and not exists (select 1 from flow_run f where f.run = p.run);

-- LIMITS.2.sql
select cast(w.id as text) as what, w.flow from waiting w
where w.gate = 'flow' and not exists (
  select 1 from flow_line n
  where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null);

-- LIMITS.3.sql
select f.job || ' ' || f.key as what, f.used, coalesce(sum(t.runs), 0) as counted
from flow f left join flow_turn t on t.flow = f.id
group by f.id, f.job, f.key, f.used having f.used <> coalesce(sum(t.runs), 0);

-- OWNERS.0.sql
select 1 as what where false;

-- PEOPLE.0.sql
select cast(z.at as text) as what, z.until_at from pause z where z.until_at < z.at;

-- PEOPLE.1.sql
select cast(d.alert as text) || ' ' || d.destination as what, d.event, d.state from alert_delivery d
where d.state not in ('pending', 'sent', 'failed') or d.event not in ('opened', 'resolved');

-- PEOPLE.2.sql
select cast(a.id as text) as what, a.via, a.who, a.verb, a.noun from audit a
where a.who = '' or a.verb = '' or a.noun = '' or a.via not in ('code', 'cli', 'http');

-- PEOPLE.3.sql
select substr(s.digest, 1, 8) as what, s.until_at from session s where s.secret = '' or length(s.digest) <> 64;

-- PEOPLE.4.sql
select k.name as what, k.scopes, k.created_by from access_key k
where k.name = '' or length(k.digest) <> 64 or k.scopes not like '["%"]';

-- PEOPLE.5.sql
select cast(h.fence as text) as what, h.name, h.state from lock_history h where h.state not in (1, 2, 3);

-- RUNS.0.sql
select cast(r.id as text) as what, count(p.run) as places, min(p.place) as one, max(p.place) as another
from run r left join (
  select x.run, x.place from live_run x union all select o.id, 'outcome' from outcome o) p on p.run = r.id
group by r.id having count(p.run) <> 1 and not (false);

-- RUNS.1.sql
select cast(p.run as text) as what, p.place from (
  select x.run, x.place from live_run x union all select o.id, 'outcome' from outcome o) p
where not exists (select 1 from run r where r.id = p.run) and not (false);

-- RUNS.10.sql
select cast(e.lane as text) as what, e.hour_at, e.status, e.runs as ended, coalesce(t.runs, 0) as counted
from (
  select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, o.status, count(*) as runs from outcome o
  where o.fence is not null and o.finished_at > :now - 2592000000 group by 1, 2, 3
) e left join (
  select x.hour_at, x.lane, x.status, sum(x.runs) as runs from rollup x group by 1, 2, 3
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.status = e.status
where e.runs > coalesce(t.runs, 0);

-- RUNS.2.sql
select cast(r.id as text) as what, p.place from live_run p join run r on r.id = p.run
where p.lane <> r.lane or p.policy <> r.policy
union all
select cast(r.id as text), 'outcome' from outcome o join run r on r.id = o.id where o.lane <> r.lane;

-- RUNS.3.sql
select cast(k.fence as text) as what from lease k
where not exists (select 1 from live_run p where p.fence = k.fence);

-- RUNS.4.sql
select cast(k.fence as text) as what, k.holder from lease k
where not exists (select 1 from instance i where i.no = k.holder);

-- RUNS.5.sql
select cast(g.fence as text) as what, min(g.holder) as one, max(g.holder) as another
from (
  select k.fence, k.holder from lease k
  union all select a.fence, a.holder from attempt a
  union all select o.fence, o.holder from outcome o where o.fence is not null
) g group by g.fence having min(g.holder) <> max(g.holder);

-- RUNS.6.sql
select cast(a.run as text) as what, a.fence, coalesce(o.fence, p.fence) as later
from attempt a
left join outcome o on o.id = a.run
left join live_run p on p.run = a.run and p.place = 'lease'
where a.fence >= coalesce(o.fence, p.fence);

-- RUNS.7.sql
select x.kind as what, x.fence, x.drawn from (
  select 'run' as kind, max(g.fence) as fence, coalesce((select s.seq from sqlite_sequence s where s.name = 'lease'), 0) as drawn from (
    select k.fence from lease k union all select a.fence from attempt a union all select o.fence from outcome o
    union all select t.fence from step t) g
  union all
  select 'lock', max(g.fence), coalesce((select s.seq from sqlite_sequence s where s.name = 'lock'), 0) from (
    select l.fence from held_lock l union all select h.fence from lock_history h) g
) x where x.fence > x.drawn;

-- RUNS.8.sql
select cast(p.run as text) as what, p.attempt, y.attempts + p.extra as attempts_max, p.place
from live_run p join policy y on y.id = p.policy
where p.attempt > y.attempts + p.extra or (p.place <> 'lease' and p.attempt = y.attempts + p.extra)
union all
select cast(o.id as text), o.attempt, y.attempts + o.extra, 'outcome'
from outcome o join run r on r.id = o.id join policy y on y.id = r.policy where o.attempt > y.attempts + o.extra;

-- RUNS.9.sql
select k.job || ' ' || k.key as what, cast(k.run as text) as run from key k
where not exists (
  select 1 from run r join lane l on l.id = r.lane where r.id = k.run and l.job = k.job);

-- SCHEDULES.0.sql
select min(s.name) || ' ' || cast(r.nominal_at as text) as what, count(*) as runs
from run r join schedule s on s.id = r.schedule
where r.mode = 1 group by r.schedule, r.nominal_at having count(*) > 1;

-- SCHEDULES.1.sql
select s.name || ' ' || cast(t.at as text) as what, cast(t.run as text) as run
from tick t join schedule s on s.id = t.schedule left join run r on r.id = t.run
where (t.run is not null and t.outcome <> 0)
  or (r.id is not null and (r.mode <> 1 or r.schedule <> t.schedule or r.nominal_at <> t.at));

-- SCHEDULES.10.sql
select cast(p.run as text) as what, s.name as schedule
from live_run p join run r on r.id = p.run join schedule s on s.id = r.schedule
where not exists (select 1 from schedule_live v where v.schedule = s.id and v.run = p.run);

-- SCHEDULES.11.sql
select cast(w.id as text) as what, s.name as schedule
from waiting w join run r on r.id = w.id left join schedule s on s.id = r.schedule
where w.gate = 'schedule' and (s.id is null or not s.is_gated);

-- SCHEDULES.12.sql
select s.name as what, count(*) as runs
from live_run p join lease k on k.fence = p.fence join run r on r.id = p.run join schedule s on s.id = r.schedule
where k.until > :now and r.created_at > s.updated_at and (s.definition ->> 'overlap') in ('skip', 'queue')
group by s.id, s.name having count(*) > 1;

-- SCHEDULES.13.sql
select s.name as what, s.version from schedule s
where not exists (select 1 from schedule_version v where v.schedule = s.id and v.version = s.version);

-- SCHEDULES.2.sql
select s.name || ' ' || cast(t.at as text) as what, t.outcome, t.reason from tick t join schedule s on s.id = t.schedule
where not ((t.outcome = 0 and t.reason in (0, 1, 2, 3)) or (t.outcome = 1 and t.reason in (4, 5, 6, 7)) or (t.outcome = 2 and t.reason in (8, 9, 10, 11, 12))) or t.count < 1 or t.last_at < t.at;

-- SCHEDULES.3.sql
select cast(r.id as text) as what, s.name as schedule, r.nominal_at from run r join schedule s on s.id = r.schedule
where r.mode = 1
  and not exists (select 1 from tick t where t.schedule = r.schedule and t.at = r.nominal_at and t.run = r.id)
  and not exists (
    select 1 from run x where x.schedule = r.schedule and x.nominal_at = r.nominal_at and x.mode = r.mode and x.id <> r.id)
  and (r.nominal_at > :now - 3600000 or exists (
    select 1 from tick t where t.schedule = r.schedule and t.outcome = 0
      and t.at < r.nominal_at and t.at >= r.nominal_at - r.nominal_at % 86400000));

-- SCHEDULES.4.sql
select x.name || ' ' || cast(x.at as text) as what, x.before
from (
  select s.name, t.at, lag(t.last_at) over (partition by t.schedule order by t.at) as before
  from tick t join schedule s on s.id = t.schedule
) x where x.before >= x.at;

-- SCHEDULES.5.sql
select s.name as what, s.cursor_at, max(t.last_at) as recorded_at
from schedule s join tick t on t.schedule = s.id group by s.id, s.name, s.cursor_at having max(t.last_at) > s.cursor_at;

-- SCHEDULES.6.sql
select s.name as what, s.cursor_at, s.next_at from schedule s where s.next_at <= s.cursor_at;

-- SCHEDULES.7.sql
select s.name as what from schedule s
where s.next_at is null and not s.is_ended and s.paused_at is null and s.broken_at is null and s.deleted_at is null;

-- SCHEDULES.8.sql
select s.name as what, s.next_at from schedule s
where s.next_at is not null and (s.is_ended or s.paused_at is not null or s.broken_at is not null or s.deleted_at is not null);

-- SCHEDULES.9.sql
select s.name as what, s.next_at from schedule s
where s.next_at < :now - 300000
  and exists (select 1 from instance i where i.retired_at is null and i.polled_at > :now - 60000)
  and not exists (select 1 from pause z where z.until_at is null or z.until_at > :now - 300000);

-- STRANGERS
select 1 as what where false;

-- STRANGERS_OF_SCHEMA
select r.rolname as what, count(*) as owned, min(o.owned) as first_of_them
from (select x.relnamespace as schema from pg_class x where x.oid = to_regclass('schema_version')) home
cross join lateral (
  select n.nspowner as owner, 'schema ' || n.nspname as owned from pg_namespace n where n.oid = home.schema
  union all select c.relowner, 'table ' || c.relname from pg_class c where c.relnamespace = home.schema
  union all select p.proowner, 'function ' || p.proname from pg_proc p where p.pronamespace = home.schema
) o
join pg_roles r on r.oid = o.owner
join pg_roles me on me.rolname = current_user
where r.oid <> me.oid and not r.rolsuper
  and r.oid <> (select d.datdba from pg_database d where d.datname = current_database())
  and not (not me.rolsuper and pg_has_role(me.oid, r.oid, 'member'))
group by r.rolname;

-- THE_REST.0.sql
select cast(b.run as text) || ' ' || b.name as what, b.scheduled, b.unended, coalesce(c.live, 0) as live,
  b.completed + b.failed + b.cancelled as ended
from batch b left join (
  select r.batch, count(*) as live from live_run p join run r on r.id = p.run
  where r.batch is not null group by r.batch
) c on c.batch = b.id
where b.unended <> coalesce(c.live, 0) or b.scheduled <> b.unended + b.completed + b.failed + b.cancelled
  or (b.unended = 0 and b.ended_at is null);

-- THE_REST.1.sql
select cast(c.run as text) || ' ' || c.outcome as what, sum(c.counted) as counted, sum(c.there) as there
from (
  select x.run, x.outcome, x.items as counted, 0 as there from item_count x
  union all select i.run, i.outcome, 0, count(*) from item i group by i.run, i.outcome
) c join run r on r.id = c.run group by c.run, c.outcome having sum(c.counted) <> sum(c.there);

-- THE_REST.2.sql
select l.name as what, l.fence from held_lock l join lock_history h on h.fence = l.fence;

-- THE_REST.3.sql
select x.name as what, x.fence, x.acquired_at, x.before as ended_at
from (
  select g.name, g.fence, g.acquired_at, lag(g.ended_at) over (partition by g.name order by g.fence) as before
  from (
    select h.name, h.fence, h.acquired_at, h.ended_at from lock_history h
    union all select l.name, l.fence, l.acquired_at, null from held_lock l
  ) g
) x where x.before > x.acquired_at;
