-- CALLS_FROM
select child from step where run = :id and no >= :no and child is not null
union
select child from wait where run = :id and child is not null;

-- FAILED_CALLS
select s.name, s.child, exists (select 1 from outcome x where x.id = s.child) as is_known
from step s join outcome o on o.id = s.run
where s.run = :id and s.kind = 3 and s.error is not null and o.status <> 1;

-- FIRST_OF
select (select s.no from step s where s.run = o.id and s.name = :name) as no
from outcome o where o.id = :id and o.status <> 1;

-- FORGET_CALLS
delete from step where run = :id and name in (select value from json_each(:names));

-- FORGET_FROM
delete from step where run = :id and no >= :no;

-- FORGET_WAITS
delete from wait where run = :id;

-- REOPEN_CALLS
insert into wait (run, name, kind, generation, fence, since, key, child, batch)
select s.run, s.name, 3, s.generation, s.fence, :now, s.key, s.child, r.batch
from step s join run r on r.id = s.child
where s.run = :id and s.name in (select value from json_each(:names)) on conflict do nothing;
