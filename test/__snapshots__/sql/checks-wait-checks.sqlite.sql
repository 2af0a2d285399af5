-- ENDED_UNSEEN
select w.id, x.name from waiting w join wait x on x.run = w.id
left join signal s on x.kind = 2 and s.name = x.signal and s.key = x.key
  and s.at >= coalesce(x.signal_since, 0) and s.at <= coalesce(x.until, s.at)
where w.asleep_at is not null and w.gate is null and w.wake_at > :now and not exists (select 1 from wake k where k.run = w.id)
  and (x.ended_at is not null or s.is_new = false
    or (x.kind = 3 and exists (select 1 from outcome o where o.id = x.child)));

-- ENDS_OF_CALLS
update wait as x set
  ended_at = (select o.finished_at from outcome o where o.id = x.child),
  status = (select o.status from outcome o where o.id = x.child),
  value = (select o.result from outcome o where o.id = x.child),
  error = (select o.error from outcome o where o.id = x.child)
where x.kind = 3 and x.ended_at is null and exists (select 1 from outcome o where o.id = x.child)
  and exists (select 1 from waiting w where w.id = x.run and w.asleep_at is not null and w.gate is null and w.wake_at > :now);

-- WAIT_CHECKS.0.sql
select cast(waiting.id as text) as what, waiting.asleep_at from waiting where asleep_at is not null and not exists (select 1 from wait x where x.run = waiting.id);

-- WAIT_CHECKS.1.sql
select cast(w.id as text) as what, w.wake_at, min(x.until) as deadline_at from waiting w join wait x on x.run = w.id
where w.asleep_at is not null and w.gate is null and w.wake_at > :now group by w.id, w.wake_at having min(x.until) < w.wake_at;

-- WAIT_CHECKS.2.sql
select cast(e.id as text) as what, e.name as wait from (
select w.id, x.name from waiting w join wait x on x.run = w.id
left join signal s on x.kind = 2 and s.name = x.signal and s.key = x.key
  and s.at >= coalesce(x.signal_since, 0) and s.at <= coalesce(x.until, s.at)
where w.asleep_at is not null and w.gate is null and w.wake_at > :now and not exists (select 1 from wake k where k.run = w.id)
  and (x.ended_at is not null or s.is_new = false
    or (x.kind = 3 and exists (select 1 from outcome o where o.id = x.child)))) e;

-- WAIT_CHECKS.3.sql
select cast(x.run as text) as what, count(*) as waits from wait x where not exists (select 1 from live_run p where p.run = x.run)
  and not exists (select 1 from wake k where k.run = x.run)
  and not exists (select 1 from outcome o where o.id = x.run and x.kind = 3 and x.since >= o.finished_at) group by x.run;

-- WAIT_CHECKS.4.sql
select cast(wait.run as text) as what, wait.name as wait from wait where exists (select 1 from step t where t.run = wait.run and t.name = wait.name);

-- WAIT_CHECKS.5.sql
select cast(b.run as text) as what, b.name, count(*) as runs
from batch b join run r on r.batch = b.id
where substr(b.name, 1, 1) = char(1) group by b.id, b.run, b.name having count(*) > 1;

-- WAIT_REPAIRS.a run that sleeps has an open wait.sql.0
update waiting set wake_at = :now, asleep_at = null where asleep_at is not null and not exists (select 1 from wait x where x.run = waiting.id);

-- WAIT_REPAIRS.a run that sleeps wakes by its first deadline.sql.0
update waiting as w set wake_at = (select min(x.until) from wait x where x.run = w.id)
where w.asleep_at is not null and w.gate is null and w.wake_at > :now and w.wake_at > (select min(x.until) from wait x where x.run = w.id);

-- WAIT_REPAIRS.an open wait belongs to a live run.sql.0
delete from wait where not exists (select 1 from run r where r.id = wait.run);

-- WAIT_REPAIRS.an open wait belongs to a live run.sql.1
insert into wake (run, at) select distinct x.run, :now from wait x where not exists (select 1 from live_run p where p.run = x.run)
  and not exists (select 1 from wake k where k.run = x.run)
  and not exists (select 1 from outcome o where o.id = x.run and x.kind = 3 and x.since >= o.finished_at) on conflict do nothing;

-- WAIT_REPAIRS.an open wait has no end.sql.0
update waiting set wake_at = :now, asleep_at = null where asleep_at is not null and gate is null and exists (
  select 1 from wait x join step t on t.run = x.run and t.name = x.name where x.run = waiting.id);

-- WAIT_REPAIRS.an open wait has no end.sql.1
delete from wait where exists (select 1 from step t where t.run = wait.run and t.name = wait.name);

-- WAIT_REPAIRS.no run sleeps through the end of a wait.sql.0
insert into wake (run, at) select distinct e.id, :now from (
select w.id, x.name from waiting w join wait x on x.run = w.id
left join signal s on x.kind = 2 and s.name = x.signal and s.key = x.key
  and s.at >= coalesce(x.signal_since, 0) and s.at <= coalesce(x.until, s.at)
where w.asleep_at is not null and w.gate is null and w.wake_at > :now and not exists (select 1 from wake k where k.run = w.id)
  and (x.ended_at is not null or s.is_new = false
    or (x.kind = 3 and exists (select 1 from outcome o where o.id = x.child)))) e where true on conflict do nothing;

-- WAIT_REPAIRS.no run sleeps through the end of a wait.sql.1
update wait as x set
  ended_at = (select o.finished_at from outcome o where o.id = x.child),
  status = (select o.status from outcome o where o.id = x.child),
  value = (select o.result from outcome o where o.id = x.child),
  error = (select o.error from outcome o where o.id = x.child)
where x.kind = 3 and x.ended_at is null and exists (select 1 from outcome o where o.id = x.child)
  and exists (select 1 from waiting w where w.id = x.run and w.asleep_at is not null and w.gate is null and w.wake_at > :now);

-- WAKE_NOW
update waiting set wake_at = :now, asleep_at = null where;
