-- ACQUIRED_FENCE
with known as materialized (
  select l.fence, l.holder, l.until, l.until - clock() as left_ms, l.token = :token::uuid as is_own
  from lock l where l.name = :name::text and l.state = 0 and l.until > clock()
),
queue as materialized (
  select exists (
    select from lock_waiter w
    where w.name = :name::text and w.token <> :token::uuid and w.seen_at > clock() - 3000 
  ) as is_behind
),
free as materialized (
  select l.fence, l.holder, l.acquired_at, l.until, l.state, l.execution, clock() as at from lock l
  where l.name = :name::text and (l.state <> 0 or l.until <= clock()) and not (select is_behind from queue)
  for update of l skip locked
),
regranted as (
  update lock l set fence = nextval('lock_fence'), token = :token::uuid, holder = :holder::text,
    acquired_at = f.at, renewed_at = f.at, until = f.at + :leaseMs::bigint, state = 0, ended_at = null, execution = :execution::text
  from free f where l.name = :name::text
  returning l.fence, case when f.state = 0 then f.holder end as taken_from
),
first_granted as (
  insert into lock (name, fence, token, holder, acquired_at, renewed_at, until, state, execution)
  select :name::text, nextval('lock_fence'), :token::uuid, :holder::text, now.at, now.at,
    now.at + :leaseMs::bigint, 0, :execution::text
  from (select clock() as at offset 0) now
  where not (select is_behind from queue) and not exists (select from lock l where l.name = :name::text)
  on conflict (name) do nothing
  returning fence
),
expired as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select f.fence, :name::text, f.holder, 2, f.acquired_at, f.until, f.until, f.execution
  from free f where f.state = 0
) select fence from regranted union all select fence from first_granted;

-- ACQUIRE_LOCK
with known as materialized (
  select l.fence, l.holder, l.until, l.until - clock() as left_ms, l.token = :token::uuid as is_own
  from lock l where l.name = :name::text and l.state = 0 and l.until > clock()
),
queue as materialized (
  select exists (
    select from lock_waiter w
    where w.name = :name::text and w.token <> :token::uuid and w.seen_at > clock() - 3000 
  ) as is_behind
),
free as materialized (
  select l.fence, l.holder, l.acquired_at, l.until, l.state, l.execution, clock() as at from lock l
  where l.name = :name::text and (l.state <> 0 or l.until <= clock()) and not (select is_behind from queue)
  for update of l skip locked
),
regranted as (
  update lock l set fence = nextval('lock_fence'), token = :token::uuid, holder = :holder::text,
    acquired_at = f.at, renewed_at = f.at, until = f.at + :leaseMs::bigint, state = 0, ended_at = null, execution = :execution::text
  from free f where l.name = :name::text
  returning l.fence, case when f.state = 0 then f.holder end as taken_from
),
first_granted as (
  insert into lock (name, fence, token, holder, acquired_at, renewed_at, until, state, execution)
  select :name::text, nextval('lock_fence'), :token::uuid, :holder::text, now.at, now.at,
    now.at + :leaseMs::bigint, 0, :execution::text
  from (select clock() as at offset 0) now
  where not (select is_behind from queue) and not exists (select from lock l where l.name = :name::text)
  on conflict (name) do nothing
  returning fence
),
expired as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select f.fence, :name::text, f.holder, 2, f.acquired_at, f.until, f.until, f.execution
  from free f where f.state = 0
) 
select coalesce(g.fence, n.fence, case when k.is_own then k.fence end) as fence,
  case when k.is_own then k.left_ms end as own_ms, g.taken_from, k.holder, k.until, q.is_behind
from queue q left join known k on true left join regranted g on true left join first_granted n on true;

-- ACQUIRE_LOCK_OR_WAIT
with known as materialized (
  select l.fence, l.holder, l.until, l.until - clock() as left_ms, l.token = :token::uuid as is_own
  from lock l where l.name = :name::text and l.state = 0 and l.until > clock()
),
queue as materialized (
  select exists (
    select from lock_waiter w
    where w.name = :name::text and w.token <> :token::uuid and w.seen_at > clock() - 3000 
      and (w.priority > :priority::smallint or (w.priority = :priority::smallint and w.no < coalesce(
        (select m.no from lock_waiter m where m.token = :token::uuid), 9223372036854775807)))
  ) as is_behind
),
free as materialized (
  select l.fence, l.holder, l.acquired_at, l.until, l.state, l.execution, clock() as at from lock l
  where l.name = :name::text and (l.state <> 0 or l.until <= clock()) and not (select is_behind from queue)
  for update of l skip locked
),
regranted as (
  update lock l set fence = nextval('lock_fence'), token = :token::uuid, holder = :holder::text,
    acquired_at = f.at, renewed_at = f.at, until = f.at + :leaseMs::bigint, state = 0, ended_at = null, execution = :execution::text
  from free f where l.name = :name::text
  returning l.fence, case when f.state = 0 then f.holder end as taken_from
),
first_granted as (
  insert into lock (name, fence, token, holder, acquired_at, renewed_at, until, state, execution)
  select :name::text, nextval('lock_fence'), :token::uuid, :holder::text, now.at, now.at,
    now.at + :leaseMs::bigint, 0, :execution::text
  from (select clock() as at offset 0) now
  where not (select is_behind from queue) and not exists (select from lock l where l.name = :name::text)
  on conflict (name) do nothing
  returning fence
),
expired as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select f.fence, :name::text, f.holder, 2, f.acquired_at, f.until, f.until, f.execution
  from free f where f.state = 0
),
granted as materialized (select fence from regranted union all select fence from first_granted),
served as (
  delete from lock_waiter where token = :token::uuid and exists (select from granted)
),
queued as (
  insert into lock_waiter (token, name, holder, priority, seen_at)
  select :token::uuid, :name::text, :holder::text, :priority::smallint, clock()
  where not exists (select from granted) and not exists (select from known where is_own)
  on conflict (token) do update set seen_at = excluded.seen_at
) 
select coalesce(g.fence, n.fence, case when k.is_own then k.fence end) as fence,
  case when k.is_own then k.left_ms end as own_ms, g.taken_from, k.holder, k.until, q.is_behind
from queue q left join known k on true left join regranted g on true left join first_granted n on true;

-- ADVISORY_LOCK.name
select pg_advisory_xact_lock(hashtextextended($1::text, 0));

-- ADVISORY_LOCK.number
select pg_advisory_xact_lock($1::bigint);

-- ANSWER
select coalesce(g.fence, n.fence, case when k.is_own then k.fence end) as fence,
  case when k.is_own then k.left_ms end as own_ms, g.taken_from, k.holder, k.until, q.is_behind
from queue q left join known k on true left join regranted g on true left join first_granted n on true;

-- EXPIRE_LOCKS
with now as materialized (select clock() as at),
due as materialized (
  select l.ctid as tid from lock l cross join now
  where l.state = 0 and l.until <= now.at order by l.until limit :limit for update of l skip locked
),
gone as (
  update lock l set state = 2, ended_at = l.until where l.ctid = any(array(select tid from due))
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.execution
),
kept as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select fence, name, holder, 2, acquired_at, until, until, execution from gone
)
select fence, name, holder from gone;

-- EXTEND_LOCK
with now as materialized (select clock() as at)
update lock l set until = now.at + :leaseMs::bigint, renewed_at = now.at from now
where l.name = :name::text and l.fence = :fence::bigint and l.state = 0
returning l.fence;

-- HISTORY
with now as materialized (select clock() as at)
select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution from (
  select l.fence, l.name, l.holder, case when l.until > now.at then 0 else 2 end as state, l.acquired_at, l.until,
    case when l.until > now.at then null else l.until end as ended_at, null::text as note, l.execution
  from held_lock l cross join now
  where l.fence < coalesce(:before::bigint, 9223372036854775807) 
  union all
  select e.fence, e.name, e.holder, e.state, e.acquired_at, e.until, e.ended_at, e.note, e.execution from (
    select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note, h.execution
    from lock_history h
    where h.fence < coalesce(:before::bigint, 9223372036854775807) 
    order by h.fence desc limit :limit) e
) x order by x.fence desc limit :limit;

-- HISTORY_OF
with now as materialized (select clock() as at)
select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution from (
  select l.fence, l.name, l.holder, case when l.until > now.at then 0 else 2 end as state, l.acquired_at, l.until,
    case when l.until > now.at then null else l.until end as ended_at, null::text as note, l.execution
  from held_lock l cross join now
  where l.fence < coalesce(:before::bigint, 9223372036854775807) and l.name = :name::text
  union all
  select e.fence, e.name, e.holder, e.state, e.acquired_at, e.until, e.ended_at, e.note, e.execution from (
    select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note, h.execution
    from lock_history h
    where h.fence < coalesce(:before::bigint, 9223372036854775807) and h.name = :name::text
    order by h.fence desc limit :limit) e
) x order by x.fence desc limit :limit;

-- LEAVE_QUEUE
delete from lock_waiter where token = :token::uuid;

-- LIST
with now as materialized (select clock() as at)
select l.name, l.fence, l.holder, l.acquired_at, l.renewed_at, l.until, l.execution,
  (select count(*) from lock_waiter w where w.name = l.name and w.seen_at > now.at - 3000) as waiting
from held_lock l cross join now
where l.until > now.at and (:name::text is null or l.name = :name::text) and (:after::text is null or l.name > :after::text)
order by l.name limit :limit;

-- NOW
with now as materialized (select clock() as at);

-- NOW
with now as materialized (select clock() as at);

-- PRUNE_LOCKS
with now as materialized (select clock() as at),
old as (
  delete from lock_history where fence = any(array(
    select h.fence from lock_history h cross join now
    where h.ended_at < now.at - :keepMs::bigint order by h.ended_at limit :limit))
  returning fence
),
idle as (
  delete from lock where name = any(array(
    select l.name from lock l cross join now
    where l.state <> 0 and l.ended_at < now.at - 86400000 order by l.ended_at limit :limit
    for update of l skip locked))
  and state <> 0
  returning name
),
void as (
  delete from lock_waiter where token = any(array(
    select w.token from lock_waiter w cross join now where not w.seen_at > now.at - 3000 limit :limit for update of w skip locked))
  returning token
)
select (select count(*) from old) + (select count(*) from idle) + (select count(*) from void) as removed,
  (select count(*) from lock where state = 0) as held;

-- RELEASE_LOCK
with gone as (
  update lock l set state = 1, ended_at = clock()
  where l.name = :name::text and l.fence = :fence::bigint and l.state = 0
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at, l.execution
),
kept as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select fence, name, holder, 1, acquired_at, until, ended_at, execution from gone
  returning fence
)
select case when exists (select from kept) then true else exists (
  select from lock_history h where h.fence = :fence::bigint and h.name = :name::text and h.state = 1) end as released;

-- REVOKE_LOCK
with now as materialized (select clock() as at),
gone as (
  update lock l set state = 3, ended_at = clock() from now
  where l.name = :name::text and l.state = 0 and l.until > now.at
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at, l.execution
),
kept as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, note, execution)
  select fence, name, holder, 3, acquired_at, until, ended_at, :note::text, execution from gone
)
select fence, holder from gone;

-- STATS
with now as materialized (select clock() as at)
select (select count(*) from held_lock l cross join now where l.until > now.at) as acquired,
  count(*) filter (where h.state = 1) as released,
  (select count(*) from held_lock l cross join now where l.until <= now.at) + count(*) filter (where h.state = 2) as expired,
  count(*) filter (where h.state = 3) as revoked,
  (select count(*) from lock_waiter w cross join now where w.seen_at > now.at - 3000) as waiting
from lock_history h;

-- TRY_ADVISORY_LOCK.name
select pg_try_advisory_xact_lock(hashtextextended($1::text, 0)) as acquired;

-- TRY_ADVISORY_LOCK.number
select pg_try_advisory_xact_lock($1::bigint) as acquired;
