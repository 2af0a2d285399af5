-- A role of few rights for instances on PostgreSQL: it reads and writes rows, and makes, alters and drops nothing.
--
-- 1. As the owner of the database: holdfast migrate          (makes the schema "holdfast")
-- 2. As a role that may create roles: create role holdfast_app login password '…';
-- 3. As the owner of the database: psql "$OWNER_URL" -f postgres-role.sql
-- 4. Instances: HOLDFAST_DATABASE_URL=postgres://holdfast_app:…@host/database, and `migrate: "check"`
--
-- Days of history are made and dropped by functions that run with the owner's rights. After an upgrade `holdfast migrate`
-- as the owner is enough: what it adds is granted by the default privileges below. `holdfast move` and restores are for the
-- owner, too. Run this file again whenever you like.

-- Nobody else makes functions or tables where names are looked for.
revoke create on schema public from public;

revoke all on schema holdfast from public;
grant usage on schema holdfast to holdfast_app;

grant select, insert, update, delete on all tables in schema holdfast to holdfast_app;
alter default privileges in schema holdfast grant select, insert, update, delete on tables to holdfast_app;

-- The sequences of fences: `holdfast repair` and `holdfast recover` raise them.
grant usage, select, update on all sequences in schema holdfast to holdfast_app;
alter default privileges in schema holdfast grant usage, select, update on sequences to holdfast_app;

grant execute on all functions in schema holdfast to holdfast_app;
alter default privileges in schema holdfast grant execute on functions to holdfast_app;

-- Which version the tables have is the owner's to say, and what operators did stays as it was written.
revoke insert, update, delete on holdfast.schema_version from holdfast_app;
revoke update on holdfast.audit from holdfast_app;
