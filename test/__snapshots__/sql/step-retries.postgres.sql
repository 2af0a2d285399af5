-- CALLS_FROM
select child from step where run = :id::uuid and no >= :no::int and child is not null
union
select child from wait where run = :id::uuid and child is not null;

-- FAILED_CALLS
select s.name, s.child, exists (select 1 from outcome x where x.id = s.child) as is_known
from step s join outcome o on o.id = s.run
where s.run = :id::uuid and s.kind = 3 and s.error is not null and o.status <> 1 for update;

-- FIRST_OF
select (select s.no from step s where s.run = o.id and s.name = :name::text) as no
from outcome o where o.id = :id::uuid and o.status <> 1 for update;

-- FORGET_CALLS
delete from step where run = :id::uuid and name = any(:names::text[]);

-- FORGET_FROM
delete from step where run = :id::uuid and no >= :no::int;

-- FORGET_WAITS
delete from wait where run = :id::uuid;

-- REOPEN_CALLS
insert into wait (run, name, kind, generation, fence, since, key, child, batch)
select s.run, s.name, 3, s.generation, s.fence, clock(), s.key, s.child, r.batch
from step s join run r on r.id = s.child
where s.run = :id::uuid and s.name = any(:names::text[]) on conflict do nothing;
