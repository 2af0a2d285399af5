-- CALLS_FROM
select child from step where run = :id::uuid and no >= :no::int and child is not null
union
select child from wait where run = :id::uuid and child is not null;

-- END_CALLS
update wait as w set status = o.status, value = o.result, error = o.error, ended_at = o.finished_at
from outcome o where w.run = :id::uuid and w.kind = 3 and w.ended_at is null and o.id = w.child;

-- FAILED_CALLS
select s.name
from step s join outcome o on o.id = s.run
where s.run = :id::uuid and s.kind = 3 and s.error is not null and o.status <> 1 for update;

-- FAILED_CHILDREN
select w.child from wait w join outcome p on p.id = w.run join outcome o on o.id = w.child
where w.run = :id::uuid and w.kind = 3 and w.ended_at is null and p.status <> 1 and o.status <> 1;

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
