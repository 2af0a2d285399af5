// The tables of items on PostgreSQL: one row for each item of a run, and how many there are of each
// outcome, so that nobody has to count them. An item without an error is done and never changes.

export const CREATE_ITEMS = /* sql */ `
create table {item} (
  run uuid not null,
  key text collate "C" not null,
  fence bigint not null,
  attempt smallint not null,
  tries int not null,
  outcome text collate "C" not null,
  started_at bigint not null,
  duration_ms bigint not null,
  value text,
  error text,
  primary key (run, key)
) partition by range (run);
create table {item_rest} partition of {item} default;

create table {item_count} (
  run uuid not null,
  outcome text collate "C" not null,
  items int not null,
  primary key (run, outcome)
) partition by range (run);
create table {item_count_rest} partition of {item_count} default;
`;
