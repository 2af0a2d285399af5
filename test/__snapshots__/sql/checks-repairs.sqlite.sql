-- END_SESSIONS
delete from session;

-- EXPOSE
select f.name from expose_functions(:into) f (name);

-- FREE_LEASES
update lease set until = :now, deadline_at = case when deadline_at <= :now then :now + 1 else deadline_at end
where until > :now and not exists (
  select 1 from instance i where i.no = lease.holder and i.retired_at is null
    and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms));

-- FREE_LOCKS
update lock set until = :now where true and until > :now and not exists (
  select 1 from instance i where i.id = lock.holder and i.retired_at is null
    and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms));

-- GONE
select
  (select count(*) from lease k where not exists (
  select 1 from instance i where i.no = k.holder and i.retired_at is null
    and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms))) as leases,
  (select count(*) from live_run p join lease k on k.fence = p.fence where not exists (
  select 1 from instance i where i.no = k.holder and i.retired_at is null
    and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms))) as runs,
  (select count(*) from held_lock l where not exists (
  select 1 from instance i where i.id = l.holder and i.retired_at is null
    and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms))) as locks,
  (select count(*) from instance i where i.retired_at is null
    and (i.seen_at > :now - 60000 or i.seen_at > :now - 3 * i.poll_ms)) as live_instances,
  (select count(*) from alert_delivery d where d.state = 'pending') as deliveries,
  (select count(*) from access_key) as keys;

-- RAISE_FENCES.0
insert into sqlite_sequence (name, seq) select 'lease', 0
     where not exists (select 1 from sqlite_sequence s where s.name = 'lease');

-- RAISE_FENCES.1
insert into sqlite_sequence (name, seq) select 'lock', 0
     where not exists (select 1 from sqlite_sequence s where s.name = 'lock');

-- RAISE_FENCES.2
update sqlite_sequence set seq = seq + :jump where name in ('lease', 'lock');

-- VITALS
select :now as now,
  (select count(*) from live_run p where p.place = 'lease') as running,
  (select count(*) from live_run p join lease k on k.fence = p.fence where k.until <= :now) as silent,
  (select count(*) from live_run p join lease k on k.fence = p.fence
    where k.renewed_at <= :now - :silentMs or k.claimed_at <= :now - :ranMs) as stale,
  (select max(i.polled_at) from instance i where i.retired_at is null) as polled_at,
  (select count(*) from schedule s where s.next_at is not null) as schedules,
  (select max(s.cursor_at) from schedule s where s.deleted_at is null and s.definition not like '%"monitor"%') as recorded_until,
  (select i.id from instance i where i.retired_at is null and i.seen_at > :now - 60000 and i.skew_ms is not null and i.skew_ms <> 0 order by abs(i.skew_ms) desc, i.no limit 1) as skewed,
  (select i.skew_ms from instance i where i.retired_at is null and i.seen_at > :now - 60000 and i.skew_ms is not null and i.skew_ms <> 0 order by abs(i.skew_ms) desc, i.no limit 1) as skew_ms;

-- WAITING_BY_JOB
select l.job, sum(case when p.place = 'ready' then 1 else 0 end) as ready,
  sum(case when p.place = 'waiting' then 1 else 0 end) as waiting,
  sum(case when p.place = 'lease' then 1 else 0 end) as held
from live_run p join lane l on l.id = p.lane group by l.job order by l.job;
