-- ADD_AUDIT
insert into audit (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values (clock(), :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change);

-- LIST
select a.id, a.at, a.via, a.who, a.scope, a.address, a.request_id, a.verb, a.noun, a.name, a.note, a.change
from audit a
where (:before::bigint is null or a.id < :before::bigint)
  and a.at >= coalesce(:at::bigint, clock() - :agoMs::bigint, 0)
  and (:noun::text is null or a.noun = :noun::text)
  and (:name::text is null or a.name = :name::text
    or a.noun = 'instance' and substr(a.name, 1, length(:name::text) + 1) = :name::text || ':'
    or a.noun in ('run', 'alert')
      and (replace(a.name, '-', '') like :digits::text || '%' or replace(a.name, '-', '') like '%' || :digits::text))
  and (:who::text is null or a.who = :who::text)
order by a.id desc limit :limit;

-- PRUNE
delete from audit where id in (
  select a.id from audit a where a.at < clock() - :keepMs::bigint order by a.at limit :limit) returning id;
