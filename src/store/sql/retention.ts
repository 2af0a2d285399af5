// What one job keeps for a shorter time than all others. Ids begin with the time of creation, so history is
// read in its order from where the last call came to: no index by job is needed for it.

import { RETENTION_COUNT_MAX } from "../../operations/rules/retention.js";

/** So many of the newest ticks of each schedule are kept for as long as runs. */
export const TICKS_KEPT = 200;

const LANES = "(select l.id from {lane} l where l.job = :job)";

/** The newest run of the job that is one too many, among the newest of all. */
export const ONE_TOO_MANY = {
  postgres: /* sql */ `
select x.id from (select o.id, o.lane from {outcome} o order by o.id desc limit ${RETENTION_COUNT_MAX}) x
where x.lane in ${LANES} order by x.id desc limit 1 offset :count`,
  sqlite: /* sql */ `
select x.id from (select o.id, o.lane from {outcome} o order by o.id desc limit ${RETENTION_COUNT_MAX}) x
where x.lane in ${LANES} order by x.id desc limit 1 offset (:count + 0)`,
} as const;

export const VISIT = {
  postgres: /* sql */ `
select o.id, o.lane in ${LANES} as is_mine, o.finished_at < :until::bigint or o.id <= :edge::uuid as is_old
from {outcome} o
where o.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
  and o.id <= greatest(:before::uuid, :edge::uuid)
order by o.id limit :limit`,
  sqlite: /* sql */ `
select o.id, o.lane in ${LANES} as is_mine, coalesce(o.finished_at < :until, 0) or coalesce(o.id <= :edge, 0) as is_old
from {outcome} o
where o.id > coalesce(:after, '') and o.id <= max(coalesce(:before, ''), coalesce(:edge, ''))
order by o.id limit (:limit + 0)`,
} as const;

/** Lines that are older than lines are kept, of runs that are still there. */
export const PRUNE_OLD_LOGS = {
  postgres: /* sql */ `
with old as (
  delete from {log_rest} where ctid = any(array(
    select g.ctid from {log_rest} g where g.at < {now} - :keepLogsMs::bigint limit :limit)) returning 1)
select count(*)::int as pruned from old`,
  sqlite: /* sql */ `
delete from {log} where (run, fence, no) in (
  select g.run, g.fence, g.no from {log} g where g.run < :before and g.at < :now - :keepLogsMs
  order by g.run, g.fence, g.no limit (:limit + 0))`,
} as const;
