-- COLUMNS
select name, pk from pragma_table_info(:table) order by cid;

-- DAYS
select (select min(id) from run) as first_run, (select max(id) from run) as last_run,
  (select min(at) from tick) as first_tick, (select max(at) from tick) as last_tick;

-- KNOWS_INSTANCE
select 1 from instance where id = :id;

-- LIVE
select id from instance
where retired_at is null and seen_at > unixepoch('subsec') * 1000 - max(60000, 3 * poll_ms) order by no;

-- SEQUENCE
select seq from sqlite_sequence where name = :table;

-- TABLES
select substr(name, 10) as name from sqlite_master where type = 'table' and name glob 'holdfast_*';
