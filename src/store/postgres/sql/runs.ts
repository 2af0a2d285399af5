// What operators do to one run on PostgreSQL: cancel it, give it another attempt.

import { CONTINUED, endedChildren, FAILED_CHILDREN } from "./batches.js";
import { FLOW_CHANGES, NOBODY_LINED } from "./flow.js";
import { AFTER_END, RESCHEDULED, REVIVING, reviving } from "./schedules.js";

/** Whichever of the three a pending or running run is in, its row is locked and changed here. */
export const CANCEL = /* sql */ `
with now as materialized (select {now} as at),
from_ready as (delete from {ready} where id = :id::uuid returning id, lane, attempt, extra),
from_waiting as (delete from {waiting} where id = :id::uuid returning id, lane, attempt, extra),
pending as materialized (select * from from_ready union all select * from from_waiting),
finished as (
  insert into {outcome} (id, finished_at, lane, attempt, extra, status)
  select p.id, now.at, p.lane, p.attempt, p.extra, 3 from pending p cross join now
),
requested as (
  update {lease} k
  set cancels = jsonb_build_object(:id::text, now.at) || coalesce(k.cancels, '{}')
  from now where k.ids @> array[:id::uuid] returning k.fence
),
ended_runs as materialized (
  select r.schedule, p.id, 3 as status, 0 as place
  from pending p, lateral (select x.schedule from {run} x where x.id = p.id offset 0) r where r.schedule is not null
),
${AFTER_END},
${endedChildren("select r.batch, 3 as status from pending p, lateral (select x.batch from {run} x where x.id = p.id offset 0) r")},
leaving as materialized (select id as run from pending),
${NOBODY_LINED},
${FLOW_CHANGES}
select
  ${CONTINUED},
  ${RESCHEDULED},
  exists (select from pending) as cancelled,
  exists (select from requested) as requested,
  exists (select from {outcome} where id = :id::uuid) as terminal,
  exists (select from {run} where id = :id::uuid) as known`;

export const RETRY = /* sql */ `${REVIVING}
select
  ${CONTINUED},
  exists (select from reopened) as reopened,
  (select status from {outcome} where id = :id::uuid) as status,
  exists (select from {run} where id = :id::uuid) as known`;

/** Children that failed, together. */
export const RETRY_CHILDREN = /* sql */ `${reviving(`id = any(array(${FAILED_CHILDREN})) and status = 2`)}
select ${CONTINUED}, (select json_agg(id order by id) from reopened) as revived`;
