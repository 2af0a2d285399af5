-- LIST
select name, rules, version, updated_at, updated_by from calendar order by name;

-- PUT
insert into calendar as c (name, rules, version, updated_at, updated_by)
values (:name, :rules, 1, clock(), :by)
on conflict (name) do update set rules = excluded.rules, version = c.version + 1,
  updated_at = excluded.updated_at, updated_by = excluded.updated_by;

-- REMOVE
delete from calendar where name = :name returning name;
