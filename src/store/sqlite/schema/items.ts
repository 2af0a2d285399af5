// The tables of items on SQLite: the same as on PostgreSQL, see items.ts.

export const CREATE_ITEMS = /* sql */ `
create table {item} (
  run text not null,
  key text not null,
  fence integer not null,
  attempt integer not null,
  outcome text not null,
  started_at integer not null,
  duration_ms integer not null,
  value text,
  error text,
  primary key (run, key)
);

create table {item_count} (
  run text not null,
  outcome text not null,
  items integer not null,
  primary key (run, outcome)
) without rowid;
`;
