-- Signals that a shop is about to open. `first_seen_at` is the database's: set when a signal is first
-- stored and kept by a trigger, whatever an UPDATE says.
create table if not exists opening_signals (
  id text primary key,
  title text not null,
  city text not null,
  score integer not null,
  first_seen_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  last_seen_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create trigger if not exists opening_signals_keep_first_seen after update of first_seen_at on opening_signals
  when new.first_seen_at is not old.first_seen_at
begin
  update opening_signals set first_seen_at = old.first_seen_at where id = new.id;
end;
