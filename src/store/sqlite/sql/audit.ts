// The audit trail on SQLite.

export const CREATE_AUDIT = /* sql */ `
create table {audit} (
  id integer primary key autoincrement,
  at integer not null,
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
create index {audit_at} on {audit} (at);
`;

export const ADD_AUDIT = /* sql */ `
insert into {audit} (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values (:now, :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change)`;

export const LIST_AUDIT = /* sql */ `
select * from {audit} a
where (:before is null or a.id < :before)
  and a.at >= coalesce(:at, :now - :agoMs, 0)
  and (:noun is null or a.noun = :noun)
  and (:name is null or a.name = :name)
  and (:who is null or a.who = :who)
order by a.id desc limit (:limit + 0)`;

export const PRUNE_AUDIT = /* sql */ `
delete from {audit} where id in (
  select a.id from {audit} a where a.at < :now - :keepMs order by a.at limit (:limit + 0))`;
