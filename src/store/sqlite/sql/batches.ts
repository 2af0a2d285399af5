// The statements about batches on SQLite, inside of a write transaction: nobody else counts meanwhile.

import { sqlitePage } from "../../sql/list-page.js";

/** The number of the mode `enqueued`. */
const ENQUEUED = 0;

export const HELD = /* sql */ `
select 1 from {lease} k where k.fence = :fence and exists (select 1 from json_each(k.ids) m where m.value = :parent)`;

export const ADD_BATCH = /* sql */ `
insert into {batch} (run, name, created_at, scheduled, refused, errors, unended, completed, failed, cancelled,
  then_run, then_lane, then_policy, then_version, then_priority)
values (:parent, :name, :now, 0, 0, '[]', 0, 0, 0, 0, :thenRun, :thenLane, :thenPolicy, :thenVersion, :thenPriority)
on conflict do nothing returning id`;

export const FILL_BATCH = /* sql */ `
update {batch} set scheduled = :scheduled, refused = :refused, errors = :errors where id = :batch`;

export const MADE_BATCH = /* sql */ `select scheduled, errors from {batch} where run = :parent and name = :name`;

export const OUTCOMES = /* sql */ `
select id, status from {outcome} where id in (select value from json_each(:ids))`;

export const COUNT_BATCH = /* sql */ `
update {batch} set unended = unended + :unended, completed = completed + :completed, failed = failed + :failed,
  cancelled = cancelled + :cancelled
where id = :batch returning unended, ended_at`;

export const END_BATCH = /* sql */ `
update {batch} set ended_at = :now where id = :batch returning then_run`;

/** The run that comes after. */
export const CONTINUE_BATCH = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select then_run, :now, :now, then_lane, then_policy, then_version, then_priority, ${ENQUEUED}, run,
  json_object('scheduled', scheduled, 'errors', refused, 'completed', completed, 'failed', failed,
    'cancelled', cancelled)
from {batch} where id = :batch`;

/** Of runs that go on by an operator's will. */
export const BATCH_OF = /* sql */ `select batch from {run} where id = :id`;

export const BATCHES = /* sql */ `
select name, scheduled, errors, completed, failed, cancelled, iif(ended_at is null, null, then_run) as then_run
from {batch} where run = :run order by id`;

const CHILDREN_OF = /* sql */ `
select r.id from {run} r
where r.parent = :parent
  and (:batch is null or r.batch = (select b.id from {batch} b where b.run = :parent and b.name = :batch))
  and r.id not in (select b.then_run from {batch} b where b.run = :parent and b.then_run is not null)`;

/** Runs that come after a batch are no children: they are named by their batch. */
export const CHILDREN = /* sql */ `
with page as materialized (
  ${CHILDREN_OF}
    and r.id < coalesce(:before, 'g')
    and (:status is null or :status = coalesce(
      (select o.status from {outcome} o where o.id = r.id),
      iif(exists (select 1 from {ready} y where y.id = r.id) or exists (select 1 from {waiting} w where w.id = r.id),
        -1, 0)))
  order by r.id desc limit (:limit + 0)
)
${sqlitePage("select * from {run_state} where id in (select id from page)")}`;

export const FAILED_CHILDREN = /* sql */ `
${CHILDREN_OF} and r.id > coalesce(:after, '') and (select o.status from {outcome} o where o.id = r.id) = 2
order by r.id limit (:limit + 0)`;

/** A batch lasts for as long as the run that made it: a later attempt may ask for it. */
export const PRUNE_BATCHES = /* sql */ `
delete from {batch} where id in (
  select b.id from {batch} b
  where b.ended_at < :now - :keepMs and not exists (select 1 from {run} r where r.id = b.run) limit (:limit + 0))`;
