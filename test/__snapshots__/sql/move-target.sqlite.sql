-- BEGIN_MOVE
insert into move (source, began_at, state) values (:source, :now, :state);

-- COLUMNS
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attidentity <> '' as is_identity,
  a.attnotnull and not a.atthasdef and a.attidentity = '' as is_needed
from pg_catalog.pg_attribute a
where a.attrelid = to_regclass(:table) and a.attnum > 0 and not a.attisdropped order by a.attnum;

-- CREATE_MOVE
create table if not exists move (source text not null, began_at bigint not null, ended_at bigint, state text not null);

-- END_MOVE
update move set ended_at = :now, state = :state;

-- FIND_MOVE
select source, ended_at, state from move;

-- KEEP_MOVE
update move set state = :state;

-- LIVE
select id from instance where retired_at is null and seen_at > :now - greatest(60000, 3 * poll_ms) order by no;
