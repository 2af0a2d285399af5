// The audit trail on PostgreSQL.

export const CREATE_AUDIT = /* sql */ `
create table {audit} (
  id bigint generated always as identity primary key,
  at bigint not null,
  via text not null,
  who text not null,
  scope text,
  address text,
  request_id text,
  verb text not null,
  noun text not null,
  name text,
  note text,
  change text
);
create index audit_at on {audit} (at);
`;

export const ADD_AUDIT = /* sql */ `
insert into {audit} (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values ({now}, :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change)`;

export const LIST_AUDIT = /* sql */ `
select a.id, a.at, a.via, a.who, a.scope, a.address, a.request_id, a.verb, a.noun, a.name, a.note, a.change
from {audit} a
where (:before::bigint is null or a.id < :before::bigint)
  and a.at >= coalesce(:at::bigint, {now} - :agoMs::bigint, 0)
  and (:noun::text is null or a.noun = :noun::text)
  and (:name::text is null or a.name = :name::text)
  and (:who::text is null or a.who = :who::text)
order by a.id desc limit :limit`;

export const PRUNE_AUDIT = /* sql */ `
delete from {audit} where id = any(array(
  select a.id from {audit} a where a.at < {now} - :keepMs::bigint order by a.at limit :limit)) returning id`;
