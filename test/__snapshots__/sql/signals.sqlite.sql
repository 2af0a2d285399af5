-- ADD
insert into signal as t (name, key, value, at, is_new)
select :name, :key, :value, :now, true where true
on conflict (name, key) do update set value = excluded.value, at = excluded.at, is_new = true
  where t.at <= excluded.at - :keepMs
    and not exists (select 1 from wait w where w.signal = t.name and w.key = t.key)
returning name;

-- DROP_WAITS_OF_ENDED
delete from wait where run = :run and exists (select 1 from outcome o where o.id = :run);

-- DROP_WAKES
delete from wake where run in (select value from json_each(:ids)) and not exists (
  select 1 from waiting w
  where w.id = wake.run and w.asleep_at is not null and w.gate is null and w.wake_at > :now);

-- DROP_WAKE_OF_ENDED
delete from wake where run = :run and exists (select 1 from outcome o where o.id = :run)
  and not exists (select 1 from wait w where w.run = :run);

-- ENDED
select k.run from wake k join outcome o on o.id = k.run order by k.run limit (:limit + 0);

-- FIND
select name, key, value, at from signal where name = :name and key = :key;

-- NEW_SIGNALS
select name, key from signal where is_new order by at limit (:limit + 0);

-- OPEN_CALLS
select w.child from wait w
where w.run = :run and w.child is not null and w.ended_at is null and w.is_left = false
  and not exists (select 1 from outcome o where o.id = w.child);

-- PRUNE
delete from signal where (name, key) in (
  select s.name, s.key from signal s where s.at <= :now - :keepMs and not s.is_new
    and not exists (select 1 from wait w where w.signal = s.name and w.key = s.key)
  order by s.at limit (:limit + 0)) returning 1 as pruned;

-- SEEN
update signal set is_new = 0
where (name, key) in (select value ->> 'name', value ->> 'key' from json_each(:signals));

-- SEND_SIGNAL.add
insert into signal as t (name, key, value, at, is_new)
select :name, :key, :value, :now, true where true
on conflict (name, key) do update set value = excluded.value, at = excluded.at, is_new = true
  where t.at <= excluded.at - :keepMs
    and not exists (select 1 from wait w where w.signal = t.name and w.key = t.key)
returning name;

-- SEND_SIGNAL.find
select name, key, value, at from signal where name = :name and key = :key;

-- SLEEPERS
select w.id from waiting w
where w.id in (select value from json_each(:ids)) and w.asleep_at is not null and w.gate is null and w.wake_at > :now
order by w.id;

-- WAKES
select w.run from wake w
where not exists (select 1 from lease k, json_each(k.ids) m where m.value = w.run)
  and not exists (select 1 from outcome o where o.id = w.run)
order by w.run limit (:limit + 0);

-- WAKE_UP
update waiting set wake_at = :now where id in (select value from json_each(:ids)) and wake_at > :now;

-- WAKE_WAITERS
insert into wake as k (run, at)
select distinct w.run, :now from (select value ->> 'name' as name, value ->> 'key' as key from json_each(:signals)) as s join wait w on w.signal = s.name and w.key = s.key where true
order by 1
on conflict (run) do update set at = excluded.at;
