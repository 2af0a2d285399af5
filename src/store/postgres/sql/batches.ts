// The statements about batches on PostgreSQL: the runs that a run fans out into. A batch and its children are one
// transaction under the fence of the making run; a statement that ends or revives a child also counts it.

import { FLOW_UNKNOWN, IS_LIMITED_LANE } from "./limits.js";

/** The number of the mode `enqueued`. */
const ENQUEUED = 0;

/**
 * Applies ends and revivals of children to their batches, for the changes in `child_changes` (batch, unended,
 * completed, failed, cancelled). The rows are locked in the order of their numbers, so that two settlements cannot
 * deadlock, and the locked state is the newest one: of two transactions that end the last two children at once, the
 * second sees the count of the first. The statement that ends a batch for the first time makes the run that follows it.
 */
const COUNTING = /* sql */ `
batch_change as materialized (
  select batch, sum(unended)::int as unended, sum(completed)::int as completed, sum(failed)::int as failed,
    sum(cancelled)::int as cancelled
  from child_changes group by batch
),
batch_locked as materialized (
  select b.* from {batch} b where b.id = any(array(select batch from batch_change)) order by b.id for update
),
batch_after as materialized (
  select l.id, l.run, l.scheduled, l.refused, l.then_run, l.then_lane, l.then_policy, l.then_version, l.then_priority,
    l.unended + c.unended as unended, l.completed + c.completed as completed, l.failed + c.failed as failed,
    l.cancelled + c.cancelled as cancelled, l.ended_at is null and l.unended + c.unended = 0 as is_over
  from batch_locked l join batch_change c on c.batch = l.id
),
batch_counted as (
  update {batch} b set unended = a.unended, completed = a.completed, failed = a.failed, cancelled = a.cancelled,
    ended_at = case when a.is_over then now.at else b.ended_at end
  from batch_after a, now where b.id = a.id
),
continued as (
  insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
  select a.then_run, now.at, now.at, a.then_lane, a.then_policy, a.then_version, a.then_priority, ${ENQUEUED}, a.run,
    format('{"scheduled":%s,"errors":%s,"completed":%s,"failed":%s,"cancelled":%s}',
      a.scheduled, a.refused, a.completed, a.failed, a.cancelled)
  from batch_after a cross join now where a.is_over and a.then_run is not null
  returning id, due_at, lane, policy, priority
),
continuation as materialized (select c.*, ${IS_LIMITED_LANE("c.lane")} as limited from continued c),
continuing as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select c.id, c.due_at - c.priority * 60000, c.lane, c.policy, 0, 0, 0, 0, 0, false from continuation c where not c.limited
),
continuing_limited as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select c.id, c.due_at, c.lane, c.policy, c.priority, 0, 0, 0, 0, 0, false, ${FLOW_UNKNOWN} from continuation c where c.limited
)`;

/**
 * How many runs that follow batches were made. Every statement that counts selects it: so, in every statement, the
 * batches are locked before the rows that are written last, statistics and schedules.
 */
export const CONTINUED = /* sql */ `(select count(*)::int from continued) as continued`;

/**
 * Ended children, from a list with their batch, status, id, result and error. A call is a batch of one child: its end
 * is stored with the wait of the parent, which gets a row in `wake`. An existing row is locked too, so that a
 * concurrent pass leaves it.
 */
export const endedChildren = (source: string) => /* sql */ `
child_ends as materialized (select e.* from (${source}) e where e.batch is not null),
child_changes as materialized (
  select e.batch, -1 as unended, (e.status = 1)::int as completed, (e.status = 2)::int as failed,
    (e.status = 3)::int as cancelled
  from child_ends e
),
answered as (
  update {wait} w set status = e.status, value = e.result, error = e.error, ended_at = now.at
  from child_ends e, now where w.batch = e.batch and w.child = e.id and w.ended_at is null
  returning w.run
),
woken_parents as (
  insert into {wake} as k (run, at) select distinct a.run, now.at from answered a cross join now order by 1
  on conflict (run) do update set at = excluded.at
),
${COUNTING}`;

/** Ended runs with open waits, from a list of ids: a pass ends the calls and removes the waits. */
export const endedWaits = (source: string) => /* sql */ `
ended_waits as (
  insert into {wake} as k (run, at)
  select distinct w.run, now.at from (${source}) e join {wait} w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
)`;

/** Children in `reopened` (id, status) that an operator retries: they count as not ended again. */
export const UNCOUNTING = /* sql */ `
child_changes as materialized (
  select r.batch, 1 as unended, 0 as completed, -(o.status = 2)::int as failed, -(o.status = 3)::int as cancelled
  from reopened o, lateral (select x.batch from {run} x where x.id = o.id offset 0) r where r.batch is not null
),
${COUNTING}`;

/** The lease that entitles its holder to write for a run; no row if it is no longer current. */
export const HELD = /* sql */ `
select k.fence from {lease} k where k.fence = :fence::bigint and k.ids @> array[:parent::uuid] for share`;

export const COUNT_BATCH = /* sql */ `
with now as materialized (select {now} as at),
child_changes as materialized (
  select :batch::int as batch, :unended::int as unended, :completed::int as completed, :failed::int as failed,
    :cancelled::int as cancelled
),
${COUNTING}
select ${CONTINUED}`;

/** A batch lasts as long as the run that made it: a later attempt may read it. */
export const PRUNE_BATCHES = /* sql */ `
with now as materialized (select {now} as at),
gone as (
  delete from {batch} where id = any(array(
    select b.id from {batch} b, now where b.ended_at < now.at - :keepMs::bigint
      and not exists (select from {run} r where r.id = b.run) limit :limit)) returning 1
)
select count(*)::int as pruned from gone`;
