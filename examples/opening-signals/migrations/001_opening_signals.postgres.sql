-- Signals that a shop is about to open. `first_seen_at` is the database's: set when a signal is first
-- stored and kept by a trigger, whatever an UPDATE says.
create table if not exists opening_signals (
  id text primary key,
  title text not null,
  city text not null,
  score integer not null,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now()
);

create or replace function keep_first_seen_at() returns trigger language plpgsql as $$
begin
  new.first_seen_at := old.first_seen_at;
  return new;
end $$;

create or replace trigger opening_signals_keep_first_seen before update on opening_signals
  for each row execute function keep_first_seen_at();
