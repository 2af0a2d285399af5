-- Addresses that are watched, and what a reconciliation found: one row for an address and a day.
create table if not exists monitored_addresses (
  address text primary key,
  balance integer not null default 0
);

create table if not exists reconciliations (
  address text not null,
  day text not null,
  mode text not null,
  corrections integer not null,
  primary key (address, day)
);
