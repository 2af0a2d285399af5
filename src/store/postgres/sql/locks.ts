// The statements of named locks on PostgreSQL. One to acquire, one to release. No statement waits for
// another's row: a lock that somebody is taking at this moment is passed by, and asked for again.
// Every end of a grant is written to history by the statement that ends it.

import { WAITER_VOID_MS } from "../../../locks/rules/lock.js";

/** The one sequence that all fences of locks come from. */
export const LOCK_FENCE = "lock_fence";

const NOW = "with now as materialized (select {now} as at)";
const IS_LIVE = `w.seen_at > now.at - ${WAITER_VOID_MS}`;

// `known` is what the snapshot shows, for the answer; `free` is the row as it is now, locked, so that
// the fence is drawn after the lock is ours: fences of one name grow in the order of their grants. Its
// time is read with it: a release that commits in between must not end after this grant begins.
// The server makes every part of a plan ready for every execution, and an acquire is little else: so
// each part reads the clock itself, and the answer is one join.
const acquiring = (goesBefore: string) => /* sql */ `
with known as materialized (
  select l.fence, l.holder, l.until, l.until - {now} as left_ms, l.token = :token::uuid as is_own
  from {lock} l where l.name = :name::text and l.state = 0 and l.until > {now}
),
queue as materialized (
  select exists (
    select from {lock_waiter} w
    where w.name = :name::text and w.token <> :token::uuid and w.seen_at > {now} - ${WAITER_VOID_MS} ${goesBefore}
  ) as is_behind
),
free as materialized (
  select l.fence, l.holder, l.acquired_at, l.until, l.state, {now} as at from {lock} l
  where l.name = :name::text and (l.state <> 0 or l.until <= {now}) and not (select is_behind from queue)
  for update of l skip locked
),
regranted as (
  update {lock} l set fence = nextval('{lock_fence}'), token = :token::uuid, holder = :holder::text,
    acquired_at = f.at, renewed_at = f.at, until = f.at + :leaseMs::bigint, state = 0, ended_at = null
  from free f where l.name = :name::text
  returning l.fence, case when f.state = 0 then f.holder end as taken_from
),
first_granted as (
  insert into {lock} (name, fence, token, holder, acquired_at, renewed_at, until, state)
  select :name::text, nextval('{lock_fence}'), :token::uuid, :holder::text, now.at, now.at,
    now.at + :leaseMs::bigint, 0
  from (select {now} as at offset 0) now
  where not (select is_behind from queue) and not exists (select from {lock} l where l.name = :name::text)
  on conflict (name) do nothing
  returning fence
),
expired as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at)
  select f.fence, :name::text, f.holder, 2, f.acquired_at, f.until, f.until
  from free f where f.state = 0
)`;

const ANSWER = /* sql */ `
select coalesce(g.fence, n.fence, case when k.is_own then k.fence end) as fence,
  case when k.is_own then k.left_ms end as own_ms, g.taken_from, k.holder, k.until, q.is_behind
from queue q left join known k on true left join regranted g on true left join first_granted n on true`;

/** Any live waiter goes before a call that does not wait. */
export const ACQUIRE_LOCK = `${acquiring("")} ${ANSWER}`;

/** A statement of its own, for what it has more than the other. */
export const ACQUIRE_LOCK_OR_WAIT = /* sql */ `${acquiring(`
      and (w.priority > :priority::smallint or (w.priority = :priority::smallint and w.no < coalesce(
        (select m.no from {lock_waiter} m where m.token = :token::uuid), 9223372036854775807)))`)},
granted as materialized (select fence from regranted union all select fence from first_granted),
served as (
  delete from {lock_waiter} where token = :token::uuid and exists (select from granted)
),
queued as (
  insert into {lock_waiter} (token, name, holder, priority, seen_at)
  select :token::uuid, :name::text, :holder::text, :priority::smallint, {now}
  where not exists (select from granted) and not exists (select from known where is_own)
  on conflict (token) do update set seen_at = excluded.seen_at
) ${ANSWER}`;

/** For the function of that name. */
export const ACQUIRED_FENCE = `${acquiring("")} select fence from regranted union all select fence from first_granted`;

// What is no longer the current grant may have been released before, its answer lost: history knows.
export const RELEASE_LOCK = /* sql */ `
with gone as (
  update {lock} l set state = 1, ended_at = {now}
  where l.name = :name::text and l.fence = :fence::bigint and l.state = 0
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at
),
kept as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at)
  select fence, name, holder, 1, acquired_at, until, ended_at from gone
  returning fence
)
select case when exists (select from kept) then true else exists (
  select from {lock_history} h where h.fence = :fence::bigint and h.name = :name::text and h.state = 1) end as released`;

export const EXTEND_LOCK = /* sql */ `${NOW}
update {lock} l set until = now.at + :leaseMs::bigint, renewed_at = now.at from now
where l.name = :name::text and l.fence = :fence::bigint and l.state = 0
returning l.fence`;

export const REVOKE_LOCK = /* sql */ `${NOW},
gone as (
  update {lock} l set state = 3, ended_at = {now} from now
  where l.name = :name::text and l.state = 0 and l.until > now.at
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at
),
kept as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, note)
  select fence, name, holder, 3, acquired_at, until, ended_at, :note::text from gone
)
select fence, holder from gone`;

export const LEAVE_LOCK_QUEUE = /* sql */ `delete from {lock_waiter} where token = :token::uuid`;

export const LIST_LOCKS = /* sql */ `${NOW}
select l.name, l.fence, l.holder, l.acquired_at, l.renewed_at, l.until,
  (select count(*) from {lock_waiter} w where w.name = l.name and ${IS_LIVE}) as waiting
from {lock} l cross join now
where l.state = 0 and l.until > now.at and (:name::text is null or l.name = :name::text)
  and (:after::text is null or l.name > :after::text)
order by l.name limit :limit`;

const HELD = /* sql */ `
select l.fence, l.name, l.holder, case when l.until > now.at then 0 else 2 end as state, l.acquired_at, l.until,
  case when l.until > now.at then null else l.until end as ended_at, null as note
from {lock} l cross join now where l.state = 0`;

// One name goes by its own index, all of them by their fences.
const lockHistory = (ofName: string) => /* sql */ `${NOW},
page as (
  (${HELD} ${ofName.replaceAll("$", "l")} and l.fence < coalesce(:before::bigint, 9223372036854775807))
  union all
  (select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note from {lock_history} h
    where h.fence < coalesce(:before::bigint, 9223372036854775807) ${ofName.replaceAll("$", "h")}
    order by h.fence desc limit :limit)
)
select fence, name, holder, state, acquired_at, until, ended_at, note from page order by fence desc limit :limit`;
export const LOCK_HISTORY = lockHistory("");
export const LOCK_HISTORY_OF = lockHistory("and $.name = :name::text");

export const LOCK_STATS = /* sql */ `${NOW},
held as materialized (select l.until > now.at as is_held from {lock} l cross join now where l.state = 0),
ended as materialized (select state, count(*) as grants from {lock_history} group by state)
select (select count(*) from held where is_held) as acquired,
  coalesce((select grants from ended where state = 1), 0) as released,
  (select count(*) from held where not is_held) + coalesce((select grants from ended where state = 2), 0) as expired,
  coalesce((select grants from ended where state = 3), 0) as revoked,
  (select count(*) from {lock_waiter} w cross join now where ${IS_LIVE}) as waiting`;

export const EXPIRE_LOCKS = /* sql */ `${NOW},
due as materialized (
  select l.ctid as tid from {lock} l cross join now
  where l.state = 0 and l.until <= now.at order by l.until limit :limit for update of l skip locked
),
gone as (
  update {lock} l set state = 2, ended_at = l.until where l.ctid = any(array(select tid from due))
  returning l.fence, l.name, l.holder, l.acquired_at, l.until
),
kept as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at)
  select fence, name, holder, 2, acquired_at, until, until from gone
)
select fence, name, holder from gone`;

/** A name rests for a day at least: no statement takes so long between drawing a fence and its commit. */
const IDLE_MS = 86_400_000;

export const PRUNE_LOCKS = /* sql */ `${NOW},
old as (
  delete from {lock_history} where fence = any(array(
    select h.fence from {lock_history} h cross join now
    where h.ended_at < now.at - :keepMs::bigint order by h.ended_at limit :limit))
  returning fence
),
idle as (
  delete from {lock} where name = any(array(
    select l.name from {lock} l cross join now
    where l.state <> 0 and l.ended_at < now.at - ${IDLE_MS} order by l.ended_at limit :limit
    for update of l skip locked))
  and state <> 0
  returning name
),
void as (
  delete from {lock_waiter} where token = any(array(
    select w.token from {lock_waiter} w cross join now where not ${IS_LIVE} limit :limit for update of w skip locked))
  returning token
)
select (select count(*) from old) + (select count(*) from idle) + (select count(*) from void) as removed,
  (select count(*) from {lock} where state = 0) as held`;

/** For transactions of the caller's own, whose end releases it. A number is the key itself. */
export const TRY_ADVISORY_LOCK = {
  number: "select pg_try_advisory_xact_lock($1::bigint) as acquired",
  name: "select pg_try_advisory_xact_lock(hashtextextended($1::text, 0)) as acquired",
} as const;
export const ADVISORY_LOCK = {
  number: "select pg_advisory_xact_lock($1::bigint)",
  name: "select pg_advisory_xact_lock(hashtextextended($1::text, 0))",
} as const;
