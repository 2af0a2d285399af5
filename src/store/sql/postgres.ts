// The statements on PostgreSQL. Each verb is one statement, so it is one round trip and one commit.
// Planner traps that shaped them (measured, see docs/decisions/0001-table-layout.md): a claim is
// `ctid = any(array(…))`, evaluated once, since `in (select … limit … skip locked)` may be evaluated
// again and over-claim; tables are reached through arrays or LATERAL … OFFSET 0, since plain joins
// turn quadratic when a table was analysed while empty. Rows travel as one JSON value each way:
// half of a client's work was the row protocol.

import { CANCEL_ERROR, LOST_ERROR, TIMEOUT_ERROR } from "../record.js";
import { CONTINUED, endedChildren, FAILED_CHILDREN } from "./postgres-batches.js";
import {
  CLAIMING_LIMITED,
  CLAIMING_LIMITED_RUN,
  FLOW_CHANGES,
  FLOW_KEY,
  FLOW_UNKNOWN,
  HAS_LINE,
  HAS_NEWCOMERS,
  LIMITED_ANSWER,
  NEW_FLOWS,
  NOBODY_LINED,
} from "./postgres-flow.js";
import { NOT_PAUSED } from "./postgres-pause.js";
import {
  AFTER_END,
  HAS_DUE_SCHEDULE,
  HAS_GATED,
  REVIVING,
  reviving,
} from "./postgres-schedules.js";

const RUN_PLAIN = "r.id, r.input, r.mode, r.version, r.priority, r.created_at, r.due_at";

/**
 * The runs of a lease are read by one walk through the index between the first and the last of them,
 * which also names the days to look into; they come in the order of their ids, with `order` where that is
 * not the order of the claim. Most have nothing but the plain members, and writing JSON is dear.
 */
const CLAIMS_JSON = /* sql */ `
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'order', case when c.ids <> o.ids then c.ids end,
    'runs', (
      select json_agg(case when r.nominal_at is null and r.schedule is null and r.batch is null and r.tags is null
        then json_build_array(${RUN_PLAIN})
        else json_build_array(${RUN_PLAIN}, r.nominal_at, r.schedule, r.batch, r.tags) end)
      from {run} r where r.id = any(c.ids) and r.id >= o.ids[1] and r.id <= o.ids[cardinality(o.ids)])
  ))
  from granted c join {lane} l on l.id = c.lane join {policy} p on p.id = c.policy cross join now,
    lateral (select array(select m.id from unnest(c.ids) m (id) order by m.id) as ids offset 0) o`;

/**
 * Beside a list it adds no row, and makes the planner expect a hundred of them. It takes a list of unknown
 * length for ten rows, and for one where the table of leases was analysed with one in it; then it compares
 * each settlement with each run of the lease, a million times for a thousand.
 */
const LONG = "json_array_elements('[]')";

/**
 * Settlements are checked against the members of the locked lease, which is the fence; what is left
 * of a lease keeps its row. Whoever asked for a cancel gets it unless the run completed. What was
 * not applied is answered: whether it is stale or was applied before (its answer was lost) is asked
 * of history, apart from this, so that history costs nothing here.
 */
const SETTLING = /* sql */ `
sent as materialized (
  select * from rows from (unnest(:ids::uuid[]), unnest(:fences::bigint[]), unnest(:statuses::smallint[]),
    unnest(:ends::smallint[]), unnest(:modes::smallint[]), unnest(:ranMs::bigint[]), unnest(:delayMs::bigint[]),
    unnest(:refunds::smallint[]), unnest(:results::text[]), unnest(:errors::text[]), unnest(:schedules::int[]),
    unnest(:batches::int[]), ${LONG})
    as s (id, fence, status, ended, mode, "ranMs", "delayMs", refund, result, error, schedule, batch)
),
locked as materialized (
  select *, cardinality(ids) as size from {lease} where fence = any(array(select distinct fence from sent)) for update
),
member as materialized (
  select m.id, k.fence, k.lane, k.policy, k.attempt, k.losses, k.refunds, k.laters, k.extra, k.holder, k.suspect,
    k.cancels, k.size
  from locked k, rows from (unnest(k.ids), ${LONG}) m (id)
),
valid as materialized (
  select s.id, s.fence, s.ended, s.mode, s."ranMs", s."delayMs", s.refund, s.result, s.error, s.schedule, s.batch,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status,
    m.lane, m.policy, m.attempt, m.losses, m.refunds, m.laters, m.extra, m.holder, m.size,
    m.suspect and s.ended = 4 as suspect
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
tally as materialized (select fence, count(*) = size as is_whole from valid group by fence, size),
ended as (delete from {lease} where fence = any(array(select fence from tally where is_whole))),
shrunk as (
  update {lease} k set ids = array(select unnest(k.ids) except select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select fence from tally where not is_whole))
),
finished as (
  insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
  select v.id, v.fence, (select at from now) - v."ranMs", (select at from now), v.lane, v.holder, v.attempt, v.extra,
    v.status, v.result, v.error
  from valid v where v.status >= 0
),
counted as (
  insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, :shard::int, v.runs, v.ran_ms
  from (
    select lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
)`;

const AGAIN = /* sql */ `
again as materialized (
  select v.*, r.priority, null::int as flow, false as is_rated from valid v,
    lateral (select x.priority from {run} x where x.id = v.id offset 0) r
  where v.status < 0
)`;

/** For settlements among which are limited runs: those with a rate stand in line for every attempt. */
const LIMITED_AGAIN = /* sql */ `
again as materialized (
  select v.*, r.priority, p.flow, p.flow is not null and j.rate_limit is not null as is_rated
  from valid v
  left join lateral (select x.flow from {flow_run} x where x.run = v.id offset 0) p on true
  left join lateral (
    select y.rate_limit from {lane} l join {job} y on y.name = l.job where l.id = v.lane offset 0) j on true,
    lateral (select x.priority from {run} x where x.id = v.id offset 0) r
  where v.status < 0
),
stood as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select v.id, now.at, v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, 'flow', v.flow
  from again v cross join now where v."delayMs" = 0 and v.is_rated
)`;

const LIMITED_LEAVING = /* sql */ `
leaving as materialized (
  select v.id as run from valid v where v.status >= 0
  union all
  select a.id from again a where a."delayMs" > 0 or a.is_rated
),
lined as materialized (select distinct flow, lane, suspect from again where "delayMs" = 0 and is_rated),
${FLOW_CHANGES}`;

/** For settlements that all end their runs. */
const ENDED_LEAVING = /* sql */ `
leaving as materialized (select v.id as run from valid v),
${NOBODY_LINED},
${FLOW_CHANGES}`;

/** For settlements that end an attempt and not the run. */
const RETURNING = /* sql */ `
noted as (
  insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select v.id, v.fence, v.attempt, v.ended, v.holder, now.at - v."ranMs", now.at, v.error
  from again v cross join now
),
postponed as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select v.id, now.at + v."delayMs", v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow
  from again v cross join now where v."delayMs" > 0
),
returned as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select v.id, now.at - v.priority * 60000, v.lane, v.policy, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow is not null
  from again v cross join now where v."delayMs" = 0 and not v.is_rated
)`;

/** For settlements among which are runs of schedules. */
const RESCHEDULING = /* sql */ `
ended_runs as materialized (
  select v.schedule, v.id, v.status, row_number() over () - 1 as place
  from valid v where v.status >= 0 and v.schedule is not null
),
${AFTER_END}`;

/** For settlements among which are children of batches. */
const COUNTING_DOWN = /* sql */ `
${endedChildren("select v.batch, v.status from valid v where v.status >= 0")}`;

/** What was taken from `ready` (`taken`) leaves it. */
const GONE = /* sql */ `
gone as (delete from {ready} where ctid = any(array(select tid from taken)))`;

/** Lanes are drained in the order of their oldest run. */
const CLAIMING = /* sql */ `
head as materialized (
  select l.id as lane, h.sort_at
  from {lane} l
  left join {queue} q on q.name = l.queue,
    lateral (
      select r.sort_at from {ready} r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and ${NOT_PAUSED} and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from {ready} r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),
${GONE}`;

/** Leases for what was taken (`taken`), one for each group that can share one. */
const grantingBy = (grouping: string) => /* sql */ `
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken ${grouping}
),
granted as (
  insert into {lease} (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join {policy} p on p.id = g.policy cross join now
  returning *
)`;
/** Runs of one lane, policy and attempt share a lease. */
const TOGETHER = "group by 1, 2, 3, 4, 5, 6, 7, 8, 9";
/** Runs of these jobs have one each: others than their holder renew and end them, one by one. */
const APART = /* sql */ `${TOGETHER},
    case when lane = any(array(select l.id from {lane} l where l.job = any(:apart::text[]))) then id end`;
const GRANTING = grantingBy(TOGETHER);
const GRANTING_APART = grantingBy(APART);

const NOW = "with now as materialized (select {now} as at)";
const UNAPPLIED = /* sql */ `case when (select count(*) from valid) < (select count(*) from sent) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied`;
const CLAIMS = /* sql */ `(select min(sort_at)::text from head) as head, (${CLAIMS_JSON}) as claims`;

// One statement for all would do, but the server prepares every part of a plan for every execution:
// a claim of one run takes a quarter less without the parts that it does not need.
const exchanges = (granting: string) => ({
  claim: `${NOW}, ${CLAIMING}, ${granting} select ${CLAIMS}`,
  finishAndClaim: `${NOW}, ${SETTLING}, ${CLAIMING}, ${granting} select ${UNAPPLIED}, ${CLAIMS}`,
  settleAndClaim: `${NOW}, ${SETTLING}, ${AGAIN}, ${RETURNING}, ${CLAIMING}, ${granting}
select ${UNAPPLIED}, ${CLAIMS}`,
  settleScheduledAndClaim: `${NOW}, ${SETTLING}, ${AGAIN}, ${RETURNING}, ${RESCHEDULING},
${CLAIMING}, ${granting} select ${UNAPPLIED}, ${CLAIMS}`,
  settleChildrenAndClaim: `${NOW}, ${SETTLING}, ${AGAIN}, ${RETURNING}, ${RESCHEDULING}, ${COUNTING_DOWN},
${CLAIMING}, ${granting} select ${CONTINUED}, ${UNAPPLIED}, ${CLAIMS}`,
  settleLimitedAndClaim: `${NOW}, ${SETTLING}, ${LIMITED_AGAIN}, ${RETURNING}, ${RESCHEDULING},
${CLAIMING}, ${granting}, ${LIMITED_LEAVING} select ${UNAPPLIED}, ${CLAIMS}`,
  settleLimitedChildrenAndClaim: `${NOW}, ${SETTLING}, ${LIMITED_AGAIN}, ${RETURNING}, ${RESCHEDULING},
${COUNTING_DOWN}, ${CLAIMING}, ${granting}, ${LIMITED_LEAVING} select ${CONTINUED}, ${UNAPPLIED}, ${CLAIMS}`,
  claimLimited: `${NOW}, ${CLAIMING_LIMITED}, ${granting}
select (${CLAIMS_JSON}) as claims, ${LIMITED_ANSWER}`,
});
export const EXCHANGE = exchanges(GRANTING);
/** Texts of their own, so that leases that are shared cost nothing more. */
export const EXCHANGE_APART = exchanges(GRANTING_APART);

// The last statement before COMMIT of a transaction that users' work is in. Whoever falls silent between
// the two must not keep others from the lease, which is locked: the server ends the session then.
const LAST_BEFORE_COMMIT = /* sql */ `set_config('idle_in_transaction_session_timeout', '5000', true) as patience`;
export const FINISH = `${NOW}, ${SETTLING} select ${UNAPPLIED}, ${LAST_BEFORE_COMMIT}`;
export const FINISH_SCHEDULED = `${NOW}, ${SETTLING}, ${RESCHEDULING} select ${UNAPPLIED}, ${LAST_BEFORE_COMMIT}`;
export const FINISH_CHILD = `${NOW}, ${SETTLING}, ${RESCHEDULING}, ${COUNTING_DOWN}
select ${CONTINUED}, ${UNAPPLIED}, ${LAST_BEFORE_COMMIT}`;
/** Whatever else a limited run belongs to. */
export const FINISH_LIMITED = `${NOW}, ${SETTLING}, ${RESCHEDULING}, ${COUNTING_DOWN}, ${ENDED_LEAVING}
select ${CONTINUED}, ${UNAPPLIED}, ${LAST_BEFORE_COMMIT}`;

/** Settles alone, whatever the runs belong to. */
export const SETTLE = `${NOW}, ${SETTLING}, ${LIMITED_AGAIN}, ${RETURNING}, ${RESCHEDULING}, ${COUNTING_DOWN}, ${LIMITED_LEAVING}
select ${UNAPPLIED}, ${CONTINUED}`;

/** Claims one run by its id, whatever else is ready. */
export const CLAIM_RUN = /* sql */ `${NOW},
taken as materialized (
  select r.ctid as tid, r.* from {ready} r where r.id = :run::uuid and ${NOT_PAUSED} for update skip locked
),
${GONE}, ${GRANTING}
select g.fence from granted g`;

/** The same for a run that stands in the line of a limit: nothing unless the limit has room. */
export const CLAIM_LIMITED_RUN = `${NOW}, ${CLAIMING_LIMITED_RUN}, ${GRANTING} select g.fence from granted g`;

/** What history knows of the end of these grants. */
export const ENDINGS = /* sql */ `
select g.id, g.fence::text, e.ended, e.error
from json_to_recordset(:grants::json) as g (id uuid, fence bigint),
  lateral (
    (select o.status + 10 as ended, o.error from {outcome} o where o.id = g.id and o.fence = g.fence offset 0)
    union all
    (select a.ended, a.error from {attempt} a where a.run = g.id and a.fence = g.fence offset 0)
  ) e`;

export const CLAIMS_BY_TOKEN = /* sql */ `
with now as materialized (select {now} as at),
granted as materialized (select * from {lease} where holder = :holder::int and token = :token::uuid)
select (${CLAIMS_JSON}) as claims`;

/** The lease of a run by its fence: who holds it, for how long, and whether it is to be cancelled. */
export const HELD = /* sql */ `
with now as materialized (select {now} as at),
granted as materialized (select * from {lease} where fence = :fence::bigint and ids @> array[:id::uuid])
select (${CLAIMS_JSON}) as claims, g.holder, (now.at - g.claimed_at)::float8 as held_ms,
  coalesce(g.cancels ? :id::text, false) as is_cancel_requested
from granted g cross join now`;

/**
 * Rows that somebody holds locked are left out here and asked about in the second column. The lock is
 * the one of the update itself: a stronger one would be kept out by every item that is being written.
 */
export const RENEW = /* sql */ `
with now as materialized (select {now} as at),
mine as materialized (
  select fence from {lease} where fence = any(:fences::bigint[]) and holder = :holder::int
  for no key update skip locked
),
renewed as (
  update {lease} k
  set renewed_at = now.at, until = least(now.at + p.lease_ms, k.deadline_at + 5000)
  from now, {policy} p
  where k.fence = any(array(select fence from mine)) and p.id = k.policy
  returning k.fence, greatest(k.until - now.at, 0) as lease_ms, k.ids
)
select
  (select json_agg(json_build_array(r.fence, r.lease_ms, r.ids)) from renewed r) as held,
  (select json_agg(k.fence) from {lease} k where k.fence = any(:fences::bigint[]) and k.holder = :holder::int
    and k.fence <> all(array(select fence from mine))) as unknown`;

export const MARK_STARTED = /* sql */ `
with given as materialized (
  select * from json_to_recordset(:grants::json) as g (id uuid, fence bigint)
),
locked as materialized (
  select fence, ids from {lease} where fence = any(array(select distinct fence from given)) for update
),
valid as materialized (
  select g.id, g.fence from given g join locked k on k.fence = g.fence where g.id = any(k.ids)
),
marked as (
  update {lease} k set started = k.started || array(select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select distinct fence from valid))
)
select id, fence from valid`;

export const POLL = /* sql */ `
with now as materialized (select {now} as at),
seen as (
  update {instance} set seen_at = now.at,
    polled_at = case when :isScheduler::boolean then now.at else polled_at end
  from now where no = :holder::int
  returning quiet_at, quiet_note
),
lanes as materialized (
  select l.id, l.job from {lane} l left join {queue} q on q.name = l.queue
  where l.job = any(:jobs::text[]) and (:queues::text[] is null or l.queue = any(:queues::text[]))
    and q.paused_at is null
)
select now.at as now,
  exists (select from lanes l, lateral (
    select 1 from {ready} r where r.lane = l.id and r.suspect = false limit 1) x) as "hasReady",
  exists (select from lanes l, lateral (
    select 1 from {ready} r where r.lane = l.id and r.suspect = true limit 1) x)
    or ${HAS_LINE(true)} as "hasSuspect",
  ${HAS_LINE(false)} as "hasLimited",
  exists (select from {waiting} w where w.gate is null and w.wake_at <= now.at) as "hasDue",
  exists (select from {lease} k where k.until <= now.at) as "hasExpired",
  :isScheduler::boolean and ${HAS_DUE_SCHEDULE} as "hasDueSchedule",
  ${HAS_GATED} as "hasGated",
  (select max(i.polled_at) from {instance} i) as "lastPolledAt",
  (select json_agg(c.id) from {lease} k, jsonb_object_keys(k.cancels) c (id)
    where k.holder = :holder::int and k.cancels is not null and c.id::uuid = any(k.ids)) as "cancelRequested",
  exists (select from {lease} k, jsonb_each_text(k.cancels) c (id, at)
    where k.cancels is not null and c.at::bigint + :cancelGraceMs::bigint <= now.at
      and c.id::uuid = any(k.ids)) as "hasOverdueCancel",
  least(
    (select min(w.wake_at) from {waiting} w where w.gate is null and w.wake_at > now.at),
    (select min(s.next_at) from {schedule} s where s.next_at > now.at and :isScheduler::boolean)) as "nextWakeAt",
  (select json_build_array(z.at, z.note) from {pause} z where z.until_at is null) as paused,
  (select json_build_array(x.quiet_at, x.quiet_note) from seen x where x.quiet_at is not null) as quiet
from now`;

export const PROMOTE = /* sql */ `
with now as materialized (select {now} as at),
due as materialized (
  select w.ctid as tid, w.* from {waiting} w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from ${FLOW_UNKNOWN}
  order by w.wake_at limit :limit for update of w skip locked
),
gone as (delete from {waiting} where ctid = any(array(select tid from due where flow is null))),
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect
  from due where flow is null
),
stood as (
  update {waiting} set gate = 'flow' where ctid = any(array(select tid from due where flow is not null))
),
leaving as materialized (select null::uuid as run where false),
lined as materialized (select distinct flow, lane, suspect from due where flow is not null),
${FLOW_CHANGES}
select (select count(*) from due)::int as promoted, ${HAS_NEWCOMERS} as newcomers`;

/** Limited runs that are due and whose flow nobody has looked up yet: they come to stand in its line. */
export const LINE_UP = /* sql */ `
with now as materialized (select {now} as at),
gone as (
  delete from {waiting} where ctid = any(array(
    select w.ctid from {waiting} w, now where w.flow = ${FLOW_UNKNOWN} and w.gate is null and w.wake_at <= now.at
    order by w.wake_at limit :limit for update of w skip locked))
  returning id, wake_at, lane, policy, priority
),
due as materialized (
  select g.*, l.job, ${FLOW_KEY("r.input")} as flow_key
  from gone g,
    lateral (select x.input from {run} x where x.id = g.id offset 0) r,
    lateral (select x.job from {lane} x where x.id = g.lane offset 0) l
    left join {job} j on j.name = l.job
),
newcomers as materialized (
  select d.job, d.flow_key as key, d.lane, true as lined from due d where d.flow_key is not null
),
${NEW_FLOWS},
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select d.id, d.wake_at - d.priority * 60000, d.lane, d.policy, 0, 0, 0, 0, 0, false from due d where d.flow_key is null
),
stood as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select d.id, d.wake_at, d.lane, d.policy, d.priority, 0, 0, 0, 0, 0, false, 'flow', f.id
  from due d join flows f on f.job = d.job and f.key = d.flow_key
)
select count(*)::int as promoted from due`;

/**
 * Ends expired leases by the policy stored with each run. Whether a run was lost or ran for too long
 * is read from its lease, not from when this happens to look: a living holder renews up to the
 * deadline and beyond, so a lease that ended before the deadline belonged to a dead one. A loss that would be final but whose run
 * never began is given back. The first loss is due again at once, later ones after the retry delay.
 */
const reclaiming = (which: string) => /* sql */ `
with now as materialized (select {now} as at),
expired as materialized (
  select k.* from {lease} k, now where k.until <= now.at ${which}
  order by k.until limit :limit for update of k skip locked
),
gone as (delete from {lease} where fence = any(array(select fence from expired))),
lost as materialized (
  select x.fence, u.id, x.lane, x.policy, x.attempt, x.losses, x.refunds, x.laters, x.extra, x.holder,
    x.claimed_at, r.priority, r.mode, r.schedule, r.batch, f.flow, f.is_rated, p.delay_ms, p.factor, p.max_ms, p.jitter,
    x.deadline_at <= x.until as over_time,
    coalesce(x.cancels ? u.id::text, false) as cancelled,
    x.attempt >= p.attempts + x.extra or (p.on_lost = 1 and x.deadline_at > x.until) as is_final,
    u.id = any(x.started) as has_begun,
    row_number() over (order by x.until, u.id) as place
  from expired x cross join now
  join {policy} p on p.id = x.policy
  cross join unnest(x.ids) u (id)
  left join lateral (
    select y.flow, exists (
      select from {lane} l join {job} j on j.name = l.job where l.id = x.lane and j.rate_limit is not null) as is_rated
    from {flow_run} y where x.limited and y.run = u.id offset 0) f on true,
  lateral (select y.priority, y.mode, y.schedule, y.batch from {run} y where y.id = u.id offset 0) r
),
judged as materialized (
  select l.*,
    case
      when cancelled then 3
      when is_final and not over_time and not has_begun and refunds < 100 then -2
      when is_final then 2
      else -1
    end as verdict,
    case when over_time then 2 else 1 end as ended,
    coalesce(is_rated, false) as stands,
    floor(least(max_ms, delay_ms * exp(least((attempt - 1) * ln(factor), 50)))
      * (1 - jitter * ((:chance::float8 + place * 0.618034) - floor(:chance::float8 + place * 0.618034))))::bigint as backoff_ms,
    case when over_time then '${TIMEOUT_ERROR}' else '${LOST_ERROR}' end as error
  from lost l
),
finished as (
  insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, verdict, error
  from judged cross join now where verdict > 0
),
counted as (
  insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, verdict, 0, count(*), sum(now.at - claimed_at)
  from judged cross join now where verdict > 0 group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
noted as (
  insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, ended, holder, claimed_at, now.at, error from judged cross join now where verdict < 0
),
-- Those that go straight back; under a rate every attempt stands in line.
back as materialized (
  select id, lane, policy, priority, flow, stands, laters, extra, verdict = -1 as suspect,
    case when verdict = -2 then attempt - 1 else attempt end as attempt,
    case when verdict = -2 then losses else losses + 1 end as losses,
    case when verdict = -2 then refunds + 1 else refunds end as refunds
  from judged where verdict = -2 or (verdict = -1 and not over_time and losses = 0)
),
returned as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select id, now.at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect, flow is not null
  from back cross join now where not stands
),
stood as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select id, now.at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, 'flow', flow
  from back cross join now where stands
),
postponed as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select id, now.at + backoff_ms, lane, policy, priority, attempt,
    case when over_time then losses else losses + 1 end, refunds, laters, extra, not over_time, flow
  from judged cross join now where verdict = -1 and (over_time or losses > 0)
),
ended_runs as materialized (
  select schedule, id, verdict as status, row_number() over (order by place) - 1 as place
  from judged where verdict > 0 and schedule is not null
),
${AFTER_END},
${endedChildren("select batch, verdict as status from judged where verdict > 0")},
leaving as materialized (
  select j.id as run from judged j
  where j.flow is not null and j.id <> all(array(select b.id from back b where not b.stands))
),
lined as materialized (select distinct flow, lane, suspect from back where stands),
${FLOW_CHANGES}
select j.id, j.fence::text, l.job, j.attempt, i.id as holder, j.ended, j.verdict, ${CONTINUED}
from judged j join {lane} l on l.id = j.lane left join {instance} i on i.no = j.holder order by j.place`;

export const RECLAIM = reclaiming("");
/** Only leases with one of these runs. */
export const RECLAIM_RUNS = reclaiming("and k.ids && :ids::uuid[]");

/** A cancel that was not obeyed in time raises the fence: the run leaves its lease. */
export const ENFORCE_CANCELS = /* sql */ `
with now as materialized (select {now} as at),
locked as materialized (
  select k.* from {lease} k where k.cancels is not null for update skip locked
),
overdue as materialized (
  select k.fence, u.id, k.claimed_at, k.lane, k.holder, k.attempt, k.extra, r.mode, r.schedule, r.batch
  from locked k cross join now cross join unnest(k.ids) u (id),
    lateral (select x.mode, x.schedule, x.batch from {run} x where x.id = u.id offset 0) r
  where (k.cancels ->> u.id::text)::bigint + :graceMs::bigint <= now.at
),
emptied as (
  delete from {lease} where fence = any(array(
    select k.fence from locked k join (select fence, count(*) as n from overdue group by fence) o on o.fence = k.fence
    where o.n = cardinality(k.ids)))
  returning fence
),
shrunk as (
  update {lease} k set ids = array(select unnest(k.ids) except select o.id from overdue o)
  where k.fence = any(array(select fence from overdue except select fence from emptied))
),
finished as (
  insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, 3, '${CANCEL_ERROR}' from overdue cross join now
),
counted as (
  insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, 3, 0, count(*), sum(now.at - claimed_at)
  from overdue cross join now group by 1, 2, 3 order by 1, 2, 3
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
ended_runs as materialized (
  select schedule, id, 3 as status, row_number() over () - 1 as place from overdue where schedule is not null
),
${AFTER_END},
${endedChildren("select batch, 3 as status from overdue")},
leaving as materialized (select id as run from overdue),
${NOBODY_LINED},
${FLOW_CHANGES}
select id, fence::text, ${CONTINUED} from overdue`;

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

export const REMOVE = /* sql */ `
with ended as (delete from {outcome} where id = :id::uuid returning id),
run as (delete from {run} where id = any(array(select id from ended))),
attempts as (delete from {attempt} where run = any(array(select id from ended))),
items as (delete from {item} where run = any(array(select id from ended))),
item_counts as (delete from {item_count} where run = any(array(select id from ended))),
progress as (delete from {progress} where run = any(array(select id from ended))),
lines as (delete from {log} where run = any(array(select id from ended))),
keys as (delete from {key} where run = any(array(select id from ended)))
select exists (select from ended) as removed, exists (select from {run} where id = :id::uuid) as known`;

export const ANNOUNCE_INSTANCE = /* sql */ `
insert into {instance} as i (id, app, release, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at,
  seen_at)
select :instanceId, :app, :release, :jobs::json, :schedules::json, :isScheduler::boolean, :works::json, :queues::json,
  :pollMs::bigint, n.at, n.at
from (select {now} as at) n
on conflict (id) do update set jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = excluded.is_scheduler, works = excluded.works, queues = excluded.queues, seen_at = excluded.seen_at,
  retired_at = null
returning no`;

export const RETIRE_INSTANCE = /* sql */ `
update {instance} set retired_at = {now}, seen_at = {now} where no = :holder`;

export const ANNOUNCE_JOB = /* sql */ `
insert into {job} as j (name, queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit,
  rate_per_ms, rate_key, input_schema, announced_at)
select :name, :queue, :priority, :version, :policy, :concurrencyLimit::int, :concurrencyKey::text, :rateLimit::int,
  :ratePerMs::bigint, :rateKey::text, :inputSchema::text, {now}
on conflict (name) do update
set queue = excluded.queue, priority = excluded.priority, version = excluded.version,
  policy = excluded.policy, concurrency_limit = excluded.concurrency_limit, concurrency_key = excluded.concurrency_key,
  rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, rate_key = excluded.rate_key,
  input_schema = excluded.input_schema, announced_at = excluded.announced_at
where (j.queue, j.priority, j.version, j.policy, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
    j.rate_key, j.input_schema) is distinct from
  (excluded.queue, excluded.priority, excluded.version, excluded.policy, excluded.concurrency_limit,
    excluded.concurrency_key, excluded.rate_limit, excluded.rate_per_ms, excluded.rate_key,
    excluded.input_schema)
returning 1`;

export const ANNOUNCED_JOBS = /* sql */ `
select j.name, j.queue, j.priority, j.version, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
  j.rate_key, j.input_schema, json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost) as policy
from {job} j join {policy} p on p.id = j.policy order by j.name`;

/**
 * What is removed row by row: expired keys, what is left of old days, silent instances, statistics.
 * A run goes only with its outcome: an operator's retry may take that away while this waits for it.
 */
export const PRUNE = /* sql */ `
with now as materialized (select {now} as at),
keys as (
  delete from {key} where ctid = any(array(
    select k.ctid from {key} k, now where k.expires_at <= now.at limit :limit)) returning 1
),
old as materialized (
  select o.id from {outcome_rest} o, now where o.finished_at < now.at - :keepMs::bigint
  order by o.finished_at limit :limit
),
outcomes as (delete from {outcome_rest} where id = any(array(select id from old)) returning id),
runs as (delete from {run} where id = any(array(select id from outcomes))),
attempts as (delete from {attempt} where run = any(array(select id from outcomes))),
items as (delete from {item} where run = any(array(select id from outcomes))),
item_counts as (delete from {item_count} where run = any(array(select id from outcomes))),
progress as (delete from {progress} where run = any(array(select id from outcomes))),
lines as (delete from {log} where run = any(array(select id from outcomes))),
old_keys as (delete from {key} where run = any(array(select id from outcomes))),
instances as (
  delete from {instance} where no = any(array(
    select i.no from {instance} i, now
    where i.seen_at < now.at - :keepMs::bigint - 86400000
      and not exists (select from {lease} k where k.holder = i.no) limit :limit)) returning 1
),
rollups as (
  delete from {rollup} where ctid = any(array(
    select r.ctid from {rollup} r, now where r.hour_at < now.at - greatest(:keepMs::bigint, 2678400000) limit :limit)) returning 1
)
select (select count(*) from keys) + (select count(*) from outcomes) + (select count(*) from instances)
  + (select count(*) from rollups) as pruned`;
