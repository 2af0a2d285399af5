// The statements of named locks on SQLite, each run inside of one short write transaction.

import { WAITER_VOID_MS } from "../../../locks/rules/lock.js";

const IS_LIVE = `w.seen_at > :now - ${WAITER_VOID_MS}`;

/** Who holds it, and whether a live waiter goes before this call. */
export const LOOK_AT_LOCK = /* sql */ `
select l.fence, l.token, l.holder, l.acquired_at, l.until,
  exists (
    select 1 from {lock_waiter} w
    where w.name = :name and w.token <> :token and ${IS_LIVE}
      and (not :isWaiting or w.priority > :priority
        or (w.priority = :priority and w.no < coalesce(
          (select m.no from {lock_waiter} m where m.token = :token), 9223372036854775807)))
  ) as is_behind
from (select 1) left join {lock} l on l.name = :name`;

export const GRANT_LOCK = /* sql */ `
insert into {lock} (name, token, holder, acquired_at, renewed_at, until)
values (:name, :token, :holder, :now, :now, :now + :leaseMs) returning fence`;

export const QUEUE_FOR_LOCK = /* sql */ `
insert into {lock_waiter} (token, name, holder, priority, seen_at)
values (:token, :name, :holder, :priority, :now) on conflict (token) do update set seen_at = excluded.seen_at`;

export const LEAVE_LOCK_QUEUE = /* sql */ `delete from {lock_waiter} where token = :token`;

export const END_LOCK = /* sql */ `
delete from {lock} where name = :name and fence = :fence
returning fence, name, holder, acquired_at, until`;

export const KEEP_LOCK = /* sql */ `
insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, note)
values (:fence, :name, :holder, :state, :acquiredAt, :until, :endedAt, :note)`;

export const WAS_RELEASED = /* sql */ `
select 1 from {lock_history} where fence = :fence and name = :name and state = 1`;

export const EXTEND_LOCK = /* sql */ `
update {lock} set until = :now + :leaseMs, renewed_at = :now where name = :name and fence = :fence`;

export const HELD_LOCK = /* sql */ `select fence from {lock} where name = :name and until > :now`;

export const LIST_LOCKS = /* sql */ `
select l.name, l.fence, l.holder, l.acquired_at, l.renewed_at, l.until,
  (select count(*) from {lock_waiter} w where w.name = l.name and ${IS_LIVE}) as waiting
from {lock} l
where l.until > :now and (:name is null or l.name = :name) and (:after is null or l.name > :after)
order by l.name limit (:limit + 0)`;

// One name goes by its own index, all of them by their fences.
const lockHistory = (ofName: string) => /* sql */ `
select * from (
  select l.fence, l.name, l.holder, case when l.until > :now then 0 else 2 end as state, l.acquired_at, l.until,
    case when l.until > :now then null else l.until end as ended_at, null as note
  from {lock} l where (:before is null or l.fence < :before) ${ofName.replaceAll("$", "l")}
  union all
  select * from (
    select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note
    from {lock_history} h where h.fence < coalesce(:before, 9223372036854775807) ${ofName.replaceAll("$", "h")}
    order by h.fence desc limit (:limit + 0))
) order by fence desc limit (:limit + 0)`;
export const LOCK_HISTORY = lockHistory("");
export const LOCK_HISTORY_OF = lockHistory("and $.name = :name");

export const LOCK_STATS = /* sql */ `
select (select count(*) from {lock} where until > :now) as acquired,
  coalesce(sum(state = 1), 0) as released,
  (select count(*) from {lock} where until <= :now) + coalesce(sum(state = 2), 0) as expired,
  coalesce(sum(state = 3), 0) as revoked,
  (select count(*) from {lock_waiter} w where ${IS_LIVE}) as waiting
from {lock_history}`;

export const EXPIRED_LOCKS = /* sql */ `
select fence, name, holder from {lock} where until <= :now order by until limit (:limit + 0)`;

export const COUNT_LOCKS = /* sql */ `select count(*) as held from {lock}`;

export const PRUNE_LOCK_HISTORY = /* sql */ `
delete from {lock_history} where fence in (
  select fence from {lock_history} where ended_at < :now - :keepMs order by ended_at limit (:limit + 0))`;

export const PRUNE_LOCK_WAITERS = /* sql */ `
delete from {lock_waiter} where no in (
  select w.no from {lock_waiter} w where not (${IS_LIVE}) limit (:limit + 0))`;
