-- BY_DIGEST
select name, digest, scopes, jobs, queues, created_at, created_by, expires_at, used_at, 'key:' || name || ':' || substr(digest, 1, 16) as session,
  expires_at <= :now as is_expired, used_at is null or used_at <= :now - 3600000 as is_use_due
from access_key where digest = :digest;

-- BY_NAME
select name, digest, scopes, jobs, queues, created_at, created_by, expires_at, used_at, 'key:' || name || ':' || substr(digest, 1, 16) as session,
  expires_at <= :now as is_expired, used_at is null or used_at <= :now - 3600000 as is_use_due
from access_key where name = :name;

-- CREATE
insert into access_key (name, digest, scopes, jobs, queues, created_at, created_by, expires_at)
values (:name, :digest, :scopes, :jobs, :queues, :now, :by, :now + :lifeMs)
on conflict (name) do nothing returning name;

-- HAS_UNLIMITED
select 1 as found from access_key
where jobs is null and queues is null and (expires_at is null or expires_at > :now) limit 1;

-- LIST
select name, digest, scopes, jobs, queues, created_at, created_by, expires_at, used_at, 'key:' || name || ':' || substr(digest, 1, 16) as session,
  expires_at <= :now as is_expired, used_at is null or used_at <= :now - 3600000 as is_use_due
from access_key order by name;

-- PRUNE
delete from access_key where expires_at <= :now - 2592000000 returning name;

-- REVOKE
delete from access_key where name = :name returning 'key:' || name || ':' || substr(digest, 1, 16) as session;

-- SELECT
select name, digest, scopes, jobs, queues, created_at, created_by, expires_at, used_at, 'key:' || name || ':' || substr(digest, 1, 16) as session,
  expires_at <= :now as is_expired, used_at is null or used_at <= :now - 3600000 as is_use_due
from access_key;

-- TOUCH
update access_key set used_at = :now
where name = :name and (used_at is null or used_at <= :now - 3600000);
