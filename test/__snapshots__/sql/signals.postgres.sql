-- ADD
insert into signal as t (name, key, value, at, is_new)
select :name::text, :key::text, :value::text, clock(), true where true
on conflict (name, key) do update set value = excluded.value, at = excluded.at, is_new = true
  where t.at <= excluded.at - :keepMs::bigint
    and not exists (select 1 from wait w where w.signal = t.name and w.key = t.key)
returning name;

-- DROP_WAITS_OF_ENDED
delete from wait where run = :run::uuid and exists (select 1 from outcome o where o.id = :run::uuid);

-- DROP_WAKES
delete from wake where run = any(:ids::uuid[]) and not exists (
  select 1 from waiting w
  where w.id = wake.run and w.asleep_at is not null and w.gate is null and w.wake_at > clock());

-- DROP_WAKE_OF_ENDED
delete from wake where run = :run::uuid and exists (select 1 from outcome o where o.id = :run::uuid)
  and not exists (select 1 from wait w where w.run = :run::uuid);

-- ENDED
select k.run from wake k join outcome o on o.id = k.run order by k.run limit :limit;

-- FIND
select name, key, value, at from signal where name = :name::text and key = :key::text;

-- NEW_SIGNALS
select name, key from signal where is_new order by at limit :limit for update skip locked;

-- OPEN_CALLS
select w.child from wait w
where w.run = :run::uuid and w.child is not null and w.ended_at is null and w.is_left = false
  and not exists (select 1 from outcome o where o.id = w.child);

-- PRUNE
with gone as (
  delete from signal where ctid = any(array(
    select s.ctid from signal s where s.at <= clock() - :keepMs::bigint and not s.is_new
      and not exists (select from wait w where w.signal = s.name and w.key = s.key)
    order by s.at limit :limit for update skip locked)) returning 1)
select count(*)::int as pruned from gone;

-- SEEN
update signal t set is_new = false from json_to_recordset(:signals::json) as s (name text, key text)
where t.name = s.name and t.key = s.key;

-- SEND_SIGNAL.add
insert into signal as t (name, key, value, at, is_new)
select :name::text, :key::text, :value::text, clock(), true where true
on conflict (name, key) do update set value = excluded.value, at = excluded.at, is_new = true
  where t.at <= excluded.at - :keepMs::bigint
    and not exists (select 1 from wait w where w.signal = t.name and w.key = t.key)
returning name;

-- SEND_SIGNAL.find
select name, key, value, at from signal where name = :name::text and key = :key::text;

-- SLEEPERS
select w.id from waiting w
where w.id = any(:ids::uuid[]) and w.asleep_at is not null and w.gate is null and w.wake_at > clock()
order by w.id for update skip locked;

-- WAKES
select w.run from wake w
where not exists (select from lease k where k.ids @> array[w.run]) and not exists (select from outcome o where o.id = w.run)
order by w.run limit :limit for update skip locked;

-- WAKE_UP
update waiting set wake_at = clock() where id = any(:ids::uuid[]) and wake_at > clock();

-- WAKE_WAITERS
insert into wake as k (run, at)
select distinct w.run, clock() from json_to_recordset(:signals::json) as s (name text, key text) cross join lateral (select w.run from wait w where w.signal = s.name and w.key = s.key offset 0) w
order by 1
on conflict (run) do update set at = excluded.at;
