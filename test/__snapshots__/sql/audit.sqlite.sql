-- ADD_AUDIT
insert into audit (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values (:now, :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change);

-- LIST
select a.id, a.at, a.via, a.who, a.scope, a.address, a.request_id, a.verb, a.noun, a.name, a.note, a.change
from audit a
where (:before is null or a.id < :before)
  and a.at >= coalesce(:at, :now - :agoMs, 0)
  and (:noun is null or a.noun = :noun)
  and (:name is null or a.name = :name
    or a.noun = 'instance' and substr(a.name, 1, length(:name) + 1) = :name || ':'
    or a.noun in ('run', 'alert')
      and (replace(a.name, '-', '') like :digits || '%' or replace(a.name, '-', '') like '%' || :digits))
  and (:who is null or a.who = :who)
order by a.id desc limit (:limit + 0);

-- PRUNE
delete from audit where id in (
  select a.id from audit a where a.at < :now - :keepMs order by a.at limit (:limit + 0)) returning id;
