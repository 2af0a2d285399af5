// Claims and settles on PostgreSQL: ended runs and new ones in one statement, one round trip and one commit. Planner
// traps that shaped it (measured, see docs/decisions/0001-table-layout.md): a claim is `ctid = any(array(…))`,
// evaluated once, since `in (select … limit … skip locked)` may be evaluated again and over-claim; tables are reached
// through arrays or LATERAL … OFFSET 0, since plain joins turn quadratic when a table was analysed while empty. Rows
// are sent as columns, each one value: the row protocol was half of a client's work
// (docs/decisions/0010-columns-both-ways.md).

import { CONTINUED, endedChildren, endedWaits } from "./batches.js";
import {
  CLAIMING_LIMITED,
  CLAIMING_LIMITED_RUN,
  FLOW_CHANGES,
  LIMITED_ANSWER,
  NOT_PAUSED,
} from "./limits.js";
import { AFTER_END, RESCHEDULED } from "./schedules.js";

/**
 * The runs of all leases are read by one walk through the index between the first and the last of them, which also
 * names the days to read. Writing JSON is expensive, and JSON inside JSON is copied again and again: so the runs come
 * as columns beside the leases, without the values that most runs do not have. Runs that differ from the job of the
 * first lease are listed in `others`. Always one row.
 */
const found = (range: string) => /* sql */ `(
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join {lane} l on l.id = c.lane join {job} j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from {run} r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)]${range}
) f`;
const FOUND = found("");
/** Parameters let the server leave out days before it opens them; a claim in 30 days of history takes 248 instead of 330. */
const FOUND_IN_RANGE = found(" and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid");

/** The leases, with the runs of each unless these are all found runs in that order; and the found runs. */
const CLAIMS = /* sql */ `(
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join {lane} l on l.id = c.lane join {policy} p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority`;

/**
 * Beside a list it adds no row, but makes the planner expect a hundred of them. The planner takes a list of unknown
 * length for ten rows, and for one row if the table of leases was analysed with one in it; then it compares each
 * settlement with each run of the lease, a million times for a thousand.
 */
const LONG = "json_array_elements('[]')";

/** One value for each settlement, or one for all: most columns of a batch hold one value. */
const sentAs = (many: string, type: string, one: string, name: string) => ({
  unnest: `unnest(:${many}::${type}[])`,
  name,
  value: `coalesce(s.${name}, :${one}::${type}) as ${name}`,
});
const SENT = [
  sentAs("fences", "bigint", "fence", "fence"),
  sentAs("statuses", "smallint", "status", "status"),
  sentAs("modes", "smallint", "mode", "mode"),
  sentAs("ranMs", "bigint", "ranAllMs", '"ranMs"'),
  sentAs("results", "text", "result", "result"),
  sentAs("errors", "text", "error", "error"),
];
/** Columns of settlements that end an attempt and not the run. */
const SENT_RETURNS = [
  sentAs("ends", "smallint", "end", "ended"),
  sentAs("delayMs", "bigint", "delayAllMs", '"delayMs"'),
  sentAs("refunds", "smallint", "refund", "refund"),
];
/** Columns of runs that a schedule or a batch made. */
const SENT_ORIGINS = [
  sentAs("schedules", "int", "schedule", "schedule"),
  sentAs("batches", "int", "batch", "batch"),
];
/** Columns of the lease that a run keeps when it goes on. */
const LEASED = ["policy", "losses", "refunds", "laters", "limited"];

/**
 * Settlements are checked against the members of the locked lease, which is the fence; the remaining runs of a lease
 * keep its row. A requested cancel takes effect unless the run completed. Settlements that were not applied are
 * returned: whether one is stale or was applied before (its reply was lost) is read from history, in a separate
 * statement, so that history costs nothing here. Every column costs each run as much as a part of the statement does,
 * so only the needed ones are here, those that are counted first.
 */
const settling = (kind: "ends" | "any") => {
  const isAny = kind === "any";
  const sent = [...SENT, ...(isAny ? [...SENT_RETURNS, ...SENT_ORIGINS] : [])];
  const members = (alias: string) =>
    isAny ? LEASED.map((name) => `, ${alias}.${name}`).join("") : "";
  return /* sql */ `
sent as materialized (
  select s.id, ${sent.map(({ value }) => value).join(", ")}
  from rows from (unnest(:ids::uuid[]), ${sent.map(({ unnest }) => unnest).join(", ")}, ${LONG})
    as s (id, ${sent.map(({ name }) => name).join(", ")})
),
locked as materialized (
  select *, cardinality(ids) as size from {lease} where fence = any(array(select distinct fence from sent)) for update
),
member as not materialized (
  select m.id, k.fence, k.size, k.lane, k.attempt, k.extra, k.holder, k.suspect, k.cancels${members("k")}
  from locked k, rows from (unnest(k.ids), ${LONG}) m (id) offset 0
),
valid as materialized (
  select s.fence, m.size, m.lane, s.mode,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status, s."ranMs",
    s.id, m.holder, m.attempt, m.extra, s.result, s.error${members("m")}
    ${isAny ? `, s.ended, s."delayMs", s.refund, m.suspect and s.ended = 4 as suspect, s.schedule, s.batch` : ""}
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
summed as materialized (
  select fence, size, lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid group by 1, 2, 3, 4, 5
),
tally as materialized (select fence, sum(runs) = size as is_whole from summed group by fence, size),
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
    select lane, mode, status, sum(runs) as runs, sum(ran_ms) as ran_ms from summed where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
)`;
};
const FINISHING = settling("ends");
const SETTLING = settling("any");

/**
 * A lease of which every run is completed: its own list names the runs, so that nothing has to be sent, joined or
 * compared, and differing values come in the order of the list. If a run was taken out of it meanwhile, its size
 * differs, nothing is changed, and `isSettled` says so: it has to be settled run by run. The holder of another lease's
 * fence knows neither its first run nor its last.
 */
const FINISHING_WHOLE = /* sql */ `
whole as (
  delete from {lease} where fence = :fence::bigint and cardinality(ids) = :size::int
    and ids[1] = :first::uuid and ids[:size::int] = :last::uuid
  returning fence, lane, holder, attempt, extra, ids
),
finished as (
  insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result)
  select u.id, k.fence, (select at from now) - coalesce(u.ran_ms, :ranAllMs::bigint), (select at from now), k.lane, k.holder,
    k.attempt, k.extra, 1, coalesce(u.result, :result::text)
  from whole k, rows from (unnest(k.ids), unnest(:ranMs::bigint[]), unnest(:results::text[])) u (id, ran_ms, result)
),
counted as (
  insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, k.lane, :mode::smallint, 1, :shard::int, :size::int, :ranSumMs::bigint
  from whole k cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
)`;
const IS_SETTLED = 'exists (select from whole) as "isSettled"';

/** Runs that go on, which no limit let through. */
const AGAIN = /* sql */ `
again as materialized (
  select v.*, r.priority, null::int as flow, false as is_rated from valid v,
    lateral (select x.priority from {run} x where x.id = v.id offset 0) r
  where v.status < 0
)`;

/** For settlements that may include limited runs: those with a rate join their line for every attempt. */
const LIMITED_AGAIN = /* sql */ `
again as materialized (
  select v.*, r.priority, p.flow, p.flow is not null and j.rate_limit is not null as is_rated
  from valid v
  left join lateral (select x.flow from {flow_run} x where v.limited and x.run = v.id offset 0) p on true
  left join lateral (
    select y.rate_limit from {lane} l join {job} y on y.name = l.job where v.limited and l.id = v.lane offset 0) j on true,
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

/** The lease says whether a limit let its runs through: nothing is looked up for others. */
const LEAVING = /* sql */ `
leaving as materialized (
  select v.id as run from valid v where v.limited and v.status >= 0
  union all
  select a.id from again a where a.limited and (a."delayMs" > 0 or a.is_rated)
),
lined as materialized (select distinct flow, lane, suspect from again where "delayMs" = 0 and is_rated),
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

/** The effects of settlements beyond their runs: ends set the next ticks of schedules, and count for batches. */
const ENDS = `${RETURNING},
ended_runs as materialized (
  select v.schedule, v.id, v.status, row_number() over () - 1 as place
  from valid v where v.status >= 0 and v.schedule is not null
),
${AFTER_END},
${endedChildren("select v.batch, v.status, v.id, v.result, v.error from valid v where v.status >= 0")}`;

/** For settlements that may include runs with open waits. */
const ENDING_WAITS = endedWaits("select v.id from valid v where v.status >= 0");

/** Runs that were taken from `ready` (`taken`) leave it. */
const GONE = /* sql */ `
gone as (delete from {ready} where ctid = any(array(select tid from taken)))`;

/** If runs were already claimed under the token that the caller repeats, nothing more is claimed. */
const IS_HELD = /* sql */ `(:isNamed::boolean and exists (
    select from {lease} k where k.holder = :holder::int and k.token = :token::uuid))`;

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
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not ${IS_HELD}
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

/**
 * Makes leases for the taken runs (`taken`). Runs of one lane, policy and attempt share a lease. Runs of the jobs in
 * `apart` have one each: remote workers renew and end them one by one.
 */
const GRANTING = /* sql */ `
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from {lane} l where l.job = any(:apart::text[]))) then id end
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

const NOW = "with now as materialized (select {now} as at)";
const UNAPPLIED = /* sql */ `case when coalesce((select sum(runs) from summed), 0) < cardinality(:ids::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied`;
const HEAD_AND_CLAIMS = `${IS_HELD} as "isHeld", (select min(sort_at)::text from head) as head, ${CLAIMS}`;

const CLAIM = `${CLAIMING}, ${GRANTING}`;

/*
 * Ten forms: these, and the four below them. One statement for all would work, but the server prepares every part of a
 * plan for every execution. A form of its own saves no buffers, only parts: measured as the shortest of 150 executions
 * of prepared statements on one server, for one run and for 200, in microseconds. A form that saves less than a tenth
 * is not kept: claims for remote workers (397 against 367 for one run, with the same buffers) and settlements of plain
 * runs and of runs of schedules (713 against 784) had one. A test compares the steps of their plans
 * (test/conformance/plans.test.ts).
 */
export const EXCHANGE = {
  // For an idle worker, and for callers without settlements. 397; without settlements `finishAndClaim` would take 552.
  claim: `${NOW}, ${CLAIM} select ${HEAD_AND_CLAIMS} from ${FOUND_IN_RANGE}`,
  // Runs that limits let through come from another place: from lines of waiting runs instead of `ready`.
  claimLimited: `${NOW}, ${CLAIMING_LIMITED}, ${GRANTING} select ${CLAIMS}, ${LIMITED_ANSWER} from ${FOUND_IN_RANGE}`,
  // For a worker whose whole lease is completed, as in a drain. 536 and 2,013; `finishAndClaim` takes 615 and 2,541.
  finishWholeAndClaim: `${NOW}, ${FINISHING_WHOLE}, ${CLAIM} select ${IS_SETTLED}, ${HEAD_AND_CLAIMS} from ${FOUND_IN_RANGE}`,
  // For plain runs that end. 615 and 2,541; `settleAndClaim` takes 784 and 3,016.
  finishAndClaim: `${NOW}, ${FINISHING}, ${CLAIM} select ${UNAPPLIED}, ${HEAD_AND_CLAIMS} from ${FOUND_IN_RANGE}`,
  // For runs without a limit that end or go on. 784 and 3,016; `settleLimitedAndClaim` takes 1,341 and 3,103.
  settleAndClaim: `${NOW}, ${SETTLING}, ${AGAIN}, ${ENDS}, ${CLAIM}
select ${CONTINUED}, ${UNAPPLIED}, ${HEAD_AND_CLAIMS} from ${FOUND_IN_RANGE}`,
  settleLimitedAndClaim: `${NOW}, ${SETTLING}, ${LIMITED_AGAIN}, ${ENDS}, ${ENDING_WAITS}, ${CLAIM}, ${LEAVING}
select ${CONTINUED}, ${RESCHEDULED}, ${UNAPPLIED}, ${HEAD_AND_CLAIMS} from ${FOUND_IN_RANGE}`,
} as const;

// The last statement before COMMIT of a transaction with a user's work. If the client falls silent between the two, it
// must not keep other transactions from the lease, which is locked: the server then ends the session.
const LAST_BEFORE_COMMIT = /* sql */ `set_config('idle_in_transaction_session_timeout', '5000', true)`;
/** The commit of a plain run. 340; `SETTLE` takes 626. */
export const FINISH = `${NOW}, ${FINISHING} select ${UNAPPLIED}, ${LAST_BEFORE_COMMIT} as patience`;
/**
 * Settles only, whatever the runs belong to: for SQL users, and for the commit of a run that belongs to a schedule or a
 * batch.
 */
export const SETTLE = `${NOW}, ${SETTLING}, ${LIMITED_AGAIN}, ${ENDS}, ${ENDING_WAITS}, ${LEAVING}
select ${UNAPPLIED}, ${CONTINUED}, ${RESCHEDULED},
  case when :isLastBeforeCommit::boolean then ${LAST_BEFORE_COMMIT} end as patience`;

/** Claims one run by its id, whatever else is ready. */
export const CLAIM_RUN = /* sql */ `${NOW},
taken as materialized (
  select r.ctid as tid, r.* from {ready} r where r.id = :run::uuid and ${NOT_PAUSED} for update skip locked
),
${GONE}, ${GRANTING}
select g.fence from granted g`;

/** The same for a run in the line of a limit: claims nothing unless the limit has room. */
export const CLAIM_LIMITED_RUN = `${NOW}, ${CLAIMING_LIMITED_RUN}, ${GRANTING} select g.fence from granted g`;

/** For the function `claim`: runs of these jobs, and those that limits let through. */
export const CLAIM_OF_JOBS = `${NOW}, ${CLAIM} select g.fence from granted g`;
export const CLAIM_LIMITED_OF_JOBS = `${NOW}, ${CLAIMING_LIMITED}, ${GRANTING} select g.fence from granted g`;

/** The ends of these grants in history. */
export const ENDINGS = /* sql */ `
select g.id, g.fence::text, e.ended, e.error, e.result
from json_to_recordset(:grants::json) as g (id uuid, fence bigint),
  lateral (
    (select o.status + 10 as ended, o.error, o.result from {outcome} o where o.id = g.id and o.fence = g.fence offset 0)
    union all
    (select a.ended, a.error, null from {attempt} a where a.run = g.id and a.fence = g.fence offset 0)
  ) e`;

export const CLAIMS_BY_TOKEN = /* sql */ `
with now as materialized (select {now} as at),
granted as materialized (select * from {lease} where holder = :holder::int and token = :token::uuid)
select ${CLAIMS} from ${FOUND}`;

/** The lease of a run by its fence: who holds it, for how long, and whether it is to be cancelled. */
export const HELD = /* sql */ `
with now as materialized (select {now} as at),
granted as materialized (select * from {lease} where fence = :fence::bigint and ids @> array[:id::uuid])
select ${CLAIMS}, g.holder, (now.at - g.claimed_at)::float8 as held_ms,
  coalesce(g.cancels ? :id::text, false) as is_cancel_requested,
  (select i.id from {instance} i where i.no = g.holder) as instance,
  (select i.remote_by from {instance} i where i.no = g.holder) as remote_by
from granted g cross join now, ${FOUND}`;
