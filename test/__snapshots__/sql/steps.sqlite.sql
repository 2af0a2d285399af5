-- ADD_STEPS
insert into step (run, no, name, kind, generation, fence, tries, started_at, ended_at, signal, key, child, value, error)
select :id, s.no, s.name, s.kind, :generation, :fence, s.tries, s.started_at, s.ended_at, s.signal,
  s.key, s.child, s.value, s.error
from (select value ->> 'no' as no, value ->> 'name' as name, value ->> 'kind' as kind, value ->> 'tries' as tries, value ->> 'started_at' as started_at, value ->> 'ended_at' as ended_at, value ->> 'signal' as signal, value ->> 'key' as key, value ->> 'child' as child, value ->> 'value' as value, value ->> 'error' as error from json_each(:steps)) as s
returning no;

-- ADD_WAITS
insert into wait as t (run, name, kind, generation, fence, since, until, signal, key, signal_since, tries, error)
select :id, w.name, w.kind, :generation, :fence, :now,
  coalesce(w.until, :now + w.delay_ms), w.signal, w.key, w.signal_since, w.tries, w.error
from (select value ->> 'name' as name, value ->> 'kind' as kind, value ->> 'until' as until, value ->> 'delay_ms' as delay_ms, value ->> 'signal' as signal, value ->> 'key' as key, value ->> 'signal_since' as signal_since, value ->> 'tries' as tries, value ->> 'error' as error from json_each(:waits)) as w where true
on conflict (run, name) do update set fence = excluded.fence, until = excluded.until, tries = excluded.tries,
  error = excluded.error where t.kind = 0 and excluded.kind = 0 and t.tries < excluded.tries;

-- ASLEEP
select wake_at, :now as now from waiting where id = :id and asleep_at is not null;

-- CLOCK
select :now as now;

-- COUNT
select (select count(*) from step where run = :id) + (select count(*) from wait where run = :id) as steps;

-- DROP_RETRIES
delete from wait where run = :id and kind = 0 and not (name in (select value from json_each(:retries)));

-- DROP_STEPS
delete from step where run in (select value from json_each(:ids)) and not exists (select 1 from run r where r.id = step.run);

-- DROP_WAITS
delete from wait where run = :id and name in (select value from json_each(:names)) returning name;

-- ENDED
select a.ended from attempt a where a.run = :id and a.fence = :fence
union all
select o.status + 10 from outcome o where o.id = :id and o.fence = :fence;

-- ENDED_WAIT
select 1 as has_ended from step where run = :id and fence = :fence and kind <> 0 limit 1;

-- FALL_ASLEEP
update waiting set wake_at = :wakeAt, asleep_at = case when :hasWaits then :now end,
  laters = max(laters, 1) where id = :id;

-- FIRST_DEADLINE
select min(w.until) as until, count(*) as waits, :now as now from wait w where w.run = :id;

-- HELD
select k.fence, :now as now from lease k
where k.fence = :fence and exists (select 1 from json_each(k.ids) m where m.value = :id);

-- HELD_LAST
select k.fence, :now as now from lease k
where k.fence = :fence and exists (select 1 from json_each(k.ids) m where m.value = :id);

-- IS_OVER
select 1 as is_over 
from wait w
left join signal s on w.kind = 2 and s.name = w.signal and s.key = w.key
  and s.at >= coalesce(w.signal_since, 0) and s.at <= coalesce(w.until, s.at)
where w.run = :id and (w.ended_at is not null or s.at is not null or w.until <= :now) limit 1;

-- KNOWN_STEPS
select name, no from step where run = :id and name in (select value from json_each(:names));

-- LAST_NO
select coalesce(max(no), 0) as no from step where run = :id;

-- NAMED
select name, no, kind, fence, tries, started_at, ended_at, signal, key, child, value, error
from step where run = :id and name in (select value from json_each(:names)) order by no;

-- OVER_PAGE
with ended as materialized (
  select w.name, s.at as signal_at, coalesce(w.ended_at, s.at, w.until) as over_at,
    coalesce(octet_length(w.value), 0) + coalesce(octet_length(s.value), 0) + coalesce(octet_length(w.error), 0) as weight
  
from wait w
left join signal s on w.kind = 2 and s.name = w.signal and s.key = w.key
  and s.at >= coalesce(w.signal_since, 0) and s.at <= coalesce(w.until, s.at)
where w.run = :id and (w.ended_at is not null or s.at is not null or w.until <= :now) and w.kind <> 0
), page as (
  select e.*, sum(e.weight) over (order by e.over_at, e.name) - e.weight as weight_before, count(*) over () as found_count
  from ended e
)
select w.name, w.kind, w.since, w.until, w.signal, w.key, w.child, w.tries, w.status,
  case when w.kind = 3 then w.value else s.value end as value, w.error, p.signal_at, p.over_at, p.found_count
from page p
join wait w on w.run = :id and w.name = p.name
left join signal s on p.signal_at is not null and s.name = w.signal and s.key = w.key
where p.weight_before < 4194304 order by p.over_at, p.name;

-- RECEIVED
select 1 as received from step
where run = :id and kind = 2 and signal = :signal and key = :key and value is not null limit 1;

-- STEPS
with weighed as (
  select s.no, coalesce(octet_length(s.value), 0) + coalesce(octet_length(s.error), 0) as weight
  from step s where s.run = :id and s.no > :after order by s.no limit (:limit + 0)
), page as (
  select w.no, sum(w.weight) over (order by w.no) - w.weight as weight_before, count(*) over () as found_count from weighed w
)
select s.name, s.no, s.kind, s.fence, s.tries, s.started_at, s.ended_at, s.signal, s.key, s.child, s.value, s.error, p.found_count
from page p join step s on s.run = :id and s.no = p.no
where p.weight_before < 4194304 order by s.no;

-- VISIT
select s.run, s.no, exists (select 1 from run r where r.id = s.run) as is_kept from step s
where (s.run, s.no) > (:run, :no) order by s.run, s.no limit (:limit + 0);

-- WAITS
select name, kind, since, until, signal, key, child, tries from wait where run = :id order by since, name;
