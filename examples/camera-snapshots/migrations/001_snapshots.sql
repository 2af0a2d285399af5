-- The cameras, each with how often it is looked through; and a row for every snapshot. The run is the key: a
-- snapshot that was taken twice, as after a crash, is stored once.
create table if not exists cameras (
  id text primary key,
  every text not null
);

create table if not exists snapshots (
  run_id text primary key,
  execution_id text not null unique,
  camera text not null references cameras (id),
  fence bigint,
  instance text not null,
  file text not null
);
