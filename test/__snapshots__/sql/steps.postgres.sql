-- ADD_AND_SHOW_WAITS
with held as materialized (
select k.fence, clock() as now from lease k
where k.fence = :fence::bigint and k.ids @> array[:id::uuid] for no key update),
added as (
insert into wait as t (run, name, kind, generation, fence, since, until, signal, key, signal_since, tries, error)
select :id::uuid, w.name, w.kind, :generation::int, :fence::bigint, clock(),
  coalesce(w.until, clock() + w.delay_ms), w.signal, w.key, w.signal_since, w.tries, w.error
from json_to_recordset(:waits::json) as w (name text, kind int, until bigint, delay_ms bigint, signal text, key text, signal_since bigint,
  tries int, error text) where exists (select from held)
on conflict (run, name) do update set fence = excluded.fence, until = excluded.until, tries = excluded.tries,
  error = excluded.error where t.kind = 0 and excluded.kind = 0 and t.tries < excluded.tries returning name, kind, since, until, signal, key, child, tries)
select h.now, w.* from held h left join (
  select * from added
  union all
  select name, kind, since, until, signal, key, child, tries from wait where run = :id::uuid and name <> all(array(select name from added))
) w on true order by w.since, w.name;

-- ADD_STEPS
insert into step (run, no, name, kind, generation, fence, tries, started_at, ended_at, signal, key, child, value, error)
select :id::uuid, s.no, s.name, s.kind, :generation::smallint, :fence::bigint, s.tries, s.started_at, s.ended_at, s.signal,
  s.key, s.child, s.value, s.error
from json_to_recordset(:steps::json) as s (no int, name text, kind int, tries int, started_at bigint, ended_at bigint, signal text, key text,
  child uuid, value text, error text)
returning no;

-- ADD_WAITS
insert into wait as t (run, name, kind, generation, fence, since, until, signal, key, signal_since, tries, error)
select :id::uuid, w.name, w.kind, :generation::int, :fence::bigint, clock(),
  coalesce(w.until, clock() + w.delay_ms), w.signal, w.key, w.signal_since, w.tries, w.error
from json_to_recordset(:waits::json) as w (name text, kind int, until bigint, delay_ms bigint, signal text, key text, signal_since bigint,
  tries int, error text) where true
on conflict (run, name) do update set fence = excluded.fence, until = excluded.until, tries = excluded.tries,
  error = excluded.error where t.kind = 0 and excluded.kind = 0 and t.tries < excluded.tries;

-- ASLEEP
select wake_at, clock() as now from waiting where id = :id::uuid and asleep_at is not null;

-- CLOCK
select clock() as now;

-- COUNT
select (select count(*) from step where run = :id::uuid) + (select count(*) from wait where run = :id::uuid) as steps;

-- DROP_RETRIES
delete from wait where run = :id::uuid and kind = 0 and not (name = any(:retries::text[]));

-- DROP_STEPS
delete from step where run = any(:ids::uuid[]) and not exists (select 1 from run r where r.id = step.run);

-- DROP_WAITS
delete from wait where run = :id::uuid and name = any(:names::text[]) returning name;

-- ENDED
select a.ended from attempt a where a.run = :id::uuid and a.fence = :fence::bigint
union all
select o.status + 10 from outcome o where o.id = :id::uuid and o.fence = :fence::bigint;

-- ENDED_WAIT
select 1 as has_ended from step where run = :id::uuid and fence = :fence::bigint and kind <> 0 limit 1;

-- FALL_ASLEEP
update waiting set wake_at = :wakeAt::bigint, asleep_at = case when :hasWaits::boolean then clock() end,
  laters = greatest(laters, 1) where id = :id::uuid;

-- FINISH_STEPS
with held as materialized (
select k.fence, clock() as now from lease k
where k.fence = :fence::bigint and k.ids @> array[:id::uuid] for no key update),
given as materialized (
  select * from unnest(:names::text[], :values::text[], :tries::int[], :ranMs::bigint[])
    with ordinality as g (name, value, tries, ran_ms, place)
),
known as materialized (select name, no from step where run = :id::uuid and name = any(:names::text[])),
last as materialized (select coalesce(max(no), 0) as no from step where run = :id::uuid),
fresh as (
  select g.*, row_number() over (order by g.place) as later from given g
  where not exists (select from known n where n.name = g.name)
),
stored as (
  insert into step (run, no, name, kind, generation, fence, tries, started_at, ended_at, value)
  select :id::uuid, l.no + f.later, f.name, 0, :generation::smallint, h.fence, f.tries, h.now - f.ran_ms, h.now, f.value
  from held h cross join last l cross join fresh f
  returning name, no
),
dropped as (
  delete from wait where run = :id::uuid and name = any(:names::text[]) and exists (select from held)
)
select exists (select from held) as is_held, (
  select json_agg(coalesce(n.no, s.no) order by g.place)
  from given g left join known n on n.name = g.name left join stored s on s.name = g.name
) as numbers;

-- FIRST_DEADLINE
select min(w.until) as until, count(*) as waits, clock() as now from wait w where w.run = :id::uuid;

-- HELD
select k.fence, clock() as now from lease k
where k.fence = :fence::bigint and k.ids @> array[:id::uuid] for no key update;

-- HELD_LAST
select h.*, set_config('idle_in_transaction_session_timeout', '5000', true) as patience from (
select k.fence, clock() as now from lease k
where k.fence = :fence::bigint and k.ids @> array[:id::uuid] for no key update) h;

-- IS_OVER
select 1 as is_over 
from wait w
left join signal s on w.kind = 2 and s.name = w.signal and s.key = w.key
  and s.at >= coalesce(w.signal_since, 0) and s.at <= coalesce(w.until, s.at)
where w.run = :id::uuid and (w.ended_at is not null or s.at is not null or w.until <= clock()) limit 1;

-- KNOWN_STEPS
select name, no from step where run = :id::uuid and name = any(:names::text[]);

-- LAST_NO
select coalesce(max(no), 0) as no from step where run = :id::uuid;

-- NAMED
select name, no, kind, fence, tries, started_at, ended_at, signal, key, child, value, error
from step where run = :id::uuid and name = any(:names::text[]) order by no;

-- NOTIFY
select pg_notify(:channel, '')::text as told;

-- OVER_PAGE
with ended as materialized (
  select w.name, s.at as signal_at, coalesce(w.ended_at, s.at, w.until) as over_at,
    coalesce(octet_length(w.value), 0) + coalesce(octet_length(s.value), 0) + coalesce(octet_length(w.error), 0) as weight
  
from wait w
left join signal s on w.kind = 2 and s.name = w.signal and s.key = w.key
  and s.at >= coalesce(w.signal_since, 0) and s.at <= coalesce(w.until, s.at)
where w.run = :id::uuid and (w.ended_at is not null or s.at is not null or w.until <= clock()) and w.kind <> 0
), page as (
  select e.*, sum(e.weight) over (order by e.over_at, e.name) - e.weight as weight_before, count(*) over () as found_count
  from ended e
)
select w.name, w.kind, w.since, w.until, w.signal, w.key, w.child, w.tries, w.status,
  case when w.kind = 3 then w.value else s.value end as value, w.error, p.signal_at, p.over_at, p.found_count
from page p
join wait w on w.run = :id::uuid and w.name = p.name
left join signal s on p.signal_at is not null and s.name = w.signal and s.key = w.key
where p.weight_before < 4194304 order by p.over_at, p.name;

-- RECEIVED
select 1 as received from step
where run = :id::uuid and kind = 2 and signal = :signal::text and key = :key::text and value is not null limit 1;

-- STEPS
with weighed as (
  select s.no, coalesce(octet_length(s.value), 0) + coalesce(octet_length(s.error), 0) as weight
  from step s where s.run = :id::uuid and s.no > :after::int order by s.no limit :limit
), page as (
  select w.no, sum(w.weight) over (order by w.no) - w.weight as weight_before, count(*) over () as found_count from weighed w
)
select s.name, s.no, s.kind, s.fence, s.tries, s.started_at, s.ended_at, s.signal, s.key, s.child, s.value, s.error, p.found_count
from page p join step s on s.run = :id::uuid and s.no = p.no
where p.weight_before < 4194304 order by s.no;

-- VISIT
select s.run, s.no, exists (select 1 from run r where r.id = s.run) as is_kept from step s
where (s.run, s.no) > (:run::uuid, :no::int) order by s.run, s.no limit :limit;

-- WAITS
select name, kind, since, until, signal, key, child, tries from wait where run = :id::uuid order by since, name;
