-- CALLS_FROM
select child from step where run = :id and no >= :no and child is not null
union
select child from wait where run = :id and child is not null;

-- END_CALLS
update wait as w set status = o.status, value = o.result, error = o.error, ended_at = o.finished_at
from outcome o where w.run = :id and w.kind = 3 and w.ended_at is null and o.id = w.child;

-- FAILED_CALLS
select s.name
from step s join outcome o on o.id = s.run
where s.run = :id and s.kind = 3 and s.error is not null and o.status <> 1;

-- FAILED_CHILDREN
select w.child from wait w join outcome p on p.id = w.run join outcome o on o.id = w.child
where w.run = :id and w.kind = 3 and w.ended_at is null and p.status <> 1 and o.status <> 1;

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
