-- COUNT_LOCKS
select count(*) as held from lock;

-- END_LOCK
delete from lock where name = :name and fence = :fence
returning fence, name, holder, acquired_at, until, execution;

-- EXPIRED_LOCKS
select fence, name, holder from lock where until <= :now order by until limit (:limit + 0);

-- EXTEND_LOCK
update lock set until = :now + :leaseMs, renewed_at = :now where name = :name and fence = :fence;

-- GRANT_LOCK
insert into lock (name, token, holder, acquired_at, renewed_at, until, execution)
values (:name, :token, :holder, :now, :now, :now + :leaseMs, :execution) returning fence;

-- HELD_LOCK
select fence from lock where name = :name and until > :now;

-- HISTORY
with now as materialized (select :now as at)
select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution from (
  select l.fence, l.name, l.holder, case when l.until > now.at then 0 else 2 end as state, l.acquired_at, l.until,
    case when l.until > now.at then null else l.until end as ended_at, null as note, l.execution
  from held_lock l cross join now
  where l.fence < coalesce(:before, 9223372036854775807) 
  union all
  select e.fence, e.name, e.holder, e.state, e.acquired_at, e.until, e.ended_at, e.note, e.execution from (
    select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note, h.execution
    from lock_history h
    where h.fence < coalesce(:before, 9223372036854775807) 
    order by h.fence desc limit (:limit + 0)) e
) x order by x.fence desc limit (:limit + 0);

-- HISTORY_OF
with now as materialized (select :now as at)
select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution from (
  select l.fence, l.name, l.holder, case when l.until > now.at then 0 else 2 end as state, l.acquired_at, l.until,
    case when l.until > now.at then null else l.until end as ended_at, null as note, l.execution
  from held_lock l cross join now
  where l.fence < coalesce(:before, 9223372036854775807) and l.name = :name
  union all
  select e.fence, e.name, e.holder, e.state, e.acquired_at, e.until, e.ended_at, e.note, e.execution from (
    select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note, h.execution
    from lock_history h
    where h.fence < coalesce(:before, 9223372036854775807) and h.name = :name
    order by h.fence desc limit (:limit + 0)) e
) x order by x.fence desc limit (:limit + 0);

-- KEEP_LOCK
insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, note, execution)
values (:fence, :name, :holder, :state, :acquiredAt, :until, :endedAt, :note, :execution);

-- LEAVE_LOCK_QUEUE
delete from lock_waiter where token = :token;

-- LEAVE_QUEUE
delete from lock_waiter where token = :token;

-- LIST
with now as materialized (select :now as at)
select l.name, l.fence, l.holder, l.acquired_at, l.renewed_at, l.until, l.execution,
  (select count(*) from lock_waiter w where w.name = l.name and w.seen_at > now.at - 3000) as waiting
from held_lock l cross join now
where l.until > now.at and (:name is null or l.name = :name) and (:after is null or l.name > :after)
order by l.name limit (:limit + 0);

-- LOOK_AT_LOCK
select l.fence, l.token, l.holder, l.acquired_at, l.until,
  exists (
    select 1 from lock_waiter w
    where w.name = :name and w.token <> :token and w.seen_at > :now - 3000
      and (not :isWaiting or w.priority > :priority
        or (w.priority = :priority and w.no < coalesce(
          (select m.no from lock_waiter m where m.token = :token), 9223372036854775807)))
  ) as is_behind
from (select 1) left join lock l on l.name = :name;

-- NOW
with now as materialized (select :now as at);

-- PRUNE_LOCK_HISTORY
delete from lock_history where fence in (
  select fence from lock_history where ended_at < :now - :keepMs order by ended_at limit (:limit + 0));

-- PRUNE_LOCK_WAITERS
delete from lock_waiter where no in (
  select w.no from lock_waiter w where not (w.seen_at > :now - 3000) limit (:limit + 0));

-- QUEUE_FOR_LOCK
insert into lock_waiter (token, name, holder, priority, seen_at)
values (:token, :name, :holder, :priority, :now) on conflict (token) do update set seen_at = excluded.seen_at;

-- STATS
with now as materialized (select :now as at)
select (select count(*) from held_lock l cross join now where l.until > now.at) as acquired,
  count(*) filter (where h.state = 1) as released,
  (select count(*) from held_lock l cross join now where l.until <= now.at) + count(*) filter (where h.state = 2) as expired,
  count(*) filter (where h.state = 3) as revoked,
  (select count(*) from lock_waiter w cross join now where w.seen_at > now.at - 3000) as waiting
from lock_history h;

-- WAS_RELEASED
select 1 from lock_history where fence = :fence and name = :name and state = 1;
