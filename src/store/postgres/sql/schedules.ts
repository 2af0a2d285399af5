// The statements about schedules on PostgreSQL. The ticker writes many schedules with one statement, ledger and runs
// included: one round trip and one commit. Every change is written only at the revision from which it was decided;
// locked rows are left to their transaction.

import { IS_LOST, MAY_NEED_LOOK, SCHEDULE_COLUMNS } from "../../schedules/state.js";
import { UNCOUNTING } from "./batches.js";
import { FLOW_KEY, NEW_FLOWS, NOT_PAUSED, PAUSES } from "./limits.js";

// Evaluated one by one: as joins, the planner would read whole days of history.
export const IS_LIVE = /* sql */ `(select 1 from {outcome} o where o.id = l.id) is null
  and (select 1 from {run} r where r.id = l.id) is not null`;
export const IS_GATED = /* sql */ `coalesce((select w.gate = 'schedule' from {waiting} w where w.id = l.id), false)`;

/** The first live run is gated, or no live run is left: then a decision is needed. */
const NEEDS_LOOK = /* sql */ `(s.is_replacing or s.backfill is not null or coalesce((
  select ${IS_GATED} from unnest(s.live) with ordinality l (id, place)
  where ${IS_LIVE} order by l.place limit 1), true))`;

/**
 * For the poll: whether the ticker has any work. The smallest value is one index entry, whatever the plan; "exists one
 * that is due" was planned as reading all schedules.
 */
export const HAS_DUE_SCHEDULE = /* sql */ `(
  coalesce((select min(s.next_at) from {schedule} s where s.next_at is not null) <= now.at, false)
  or exists (select from {schedule} s where ${MAY_NEED_LOOK} and ${NEEDS_LOOK})
  or exists (select from {schedule} s where ${IS_LOST}))`;
/** For the poll of an instance that fires nothing. */
export const HAS_FREE_GATE = /* sql */ `exists (select from {schedule} s where ${MAY_NEED_LOOK} and ${NEEDS_LOOK})`;
export const HAS_GATED = /* sql */ `exists (select from {schedule} s where ${MAY_NEED_LOOK})`;

// As rows: one JSON value for all of them took the server twice as long here. If there is no schedule, one row has the
// time alone.
const STATE = /* sql */ `
select now.at as now, y.* from now left join lateral (
    select ${SCHEDULE_COLUMNS},
      exists (select from {job} j where j.name = s.job) as is_job_known,
      case when cardinality(s.live) > 0 then (
        select json_agg(json_build_array(l.id, r.mode, r.nominal_at, ${IS_GATED}) order by l.place)
        from unnest(s.live) with ordinality l (id, place),
          lateral (select x.mode, x.nominal_at from {run} x where x.id = l.id offset 0) r
        where (select 1 from {outcome} o where o.id = l.id) is null) end as live_runs,
      case when s.backfill is not null then (
        select to_json(b) from {backfill} b where b.id = s.backfill) end as backfill_state,
      ${PAUSES} as pauses
    from chosen c, lateral (select * from {schedule} x where x.id = c.id offset 0) s
    order by c.place) y on true`;

export const DUE_SCHEDULES = /* sql */ `
with now as materialized (select {now} as at),
chosen as materialized (
  select id, min(place) as place from (
    (select s.id, row_number() over () as place from (
      select x.id from {schedule} x where x.next_at <= (select at from now) order by x.next_at limit :limit) s)
    union all
    (select s.id, 1000000 + s.id from {schedule} s where ${MAY_NEED_LOOK} and ${NEEDS_LOOK} limit :limit)
    union all
    (select s.id, 2000000000::bigint + s.id from {schedule} s where ${IS_LOST} limit :limit)
  ) x group by id order by 2 limit :limit
)
${STATE}`;

/** Only those that must be evaluated, whether or not a tick of them is due. */
export const GATED_SCHEDULES = /* sql */ `
with now as materialized (select {now} as at),
chosen as materialized (
  select s.id, row_number() over () as place from {schedule} s where ${MAY_NEED_LOOK} and ${NEEDS_LOOK} limit :limit
)
${STATE}`;

export const SCHEDULE_STATES = /* sql */ `
with now as materialized (select {now} as at),
chosen as materialized (
  select s.id, row_number() over () as place from {schedule} s where s.name = any(:names::text[])
)
${STATE}`;

/**
 * Looked up in a hash table, whatever row count the planner expects: a list would be searched from its beginning for
 * each.
 */
const isWon = (schedule: string) => `(${schedule} in (select id from won)) is true`;

/**
 * Advances many schedules with their ledger rows, their runs and the gates that open. If a ledger row already exists,
 * the statement fails and nothing of it is written.
 */
export const ADVANCE_SCHEDULES = /* sql */ `
with now as materialized (select {now} as at),
sent as materialized (
  select * from unnest(:ids::int[], :revisions::bigint[], :cursors::bigint[], :nexts::bigint[], :ends::boolean[],
    :holds::bigint[], :holdRuns::uuid[], :lastRuns::uuid[], :lastTicks::bigint[], :lives::text[], :gates::boolean[],
    :replacings::boolean[], :tzdatas::text[])
    as x (id, revision, cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated,
      is_replacing, tzdata)
),
locked as materialized (
  select k.tid, x.* from sent x, lateral (
    select s.ctid as tid from {schedule} s where s.id = x.id and s.revision = x.revision
    for update skip locked) k
  -- Nothing fires while everything is paused: such changes are decided again later.
  where ${NOT_PAUSED} or x.id <> all(:cadenced::int[])
),
-- A join of the applied changes with the sent ones would be a nested loop, because the planner does not
-- know how many there are: both are reached by their keys instead.
won as (
  update {schedule} s set revision = s.revision + 1, cursor_at = k.cursor_at, next_at = k.next_at,
    is_ended = k.is_ended, hold_until = k.hold_until, hold_run = k.hold_run, last_run = k.last_run,
    last_tick_at = k.last_tick_at, live = k.live::uuid[], is_gated = k.is_gated, is_replacing = k.is_replacing,
    tzdata = k.tzdata
  from locked k where s.ctid = k.tid
  returning s.id
),
ledger as (
  insert into {tick} (schedule, at, last_at, count, outcome, reason, recorded_at, holder, version, run, evidence)
  select t.schedule, t.at, t.last_at, t.count, t.outcome, t.reason, now.at, :holder::int, w.version, t.run, t.evidence
  from unnest(:tickSchedules::int[], :tickFirsts::bigint[], :tickLasts::bigint[], :tickCounts::int[],
    :tickOutcomes::smallint[], :tickReasons::smallint[], :tickRuns::uuid[], :tickEvidence::text[])
    as t (schedule, at, last_at, count, outcome, reason, run, evidence)
  cross join now,
  lateral (select x.version from {schedule} x where x.id = t.schedule offset 0) w
  where ${isWon("t.schedule")}
),
made as materialized (
  select r.id, r.mode, r.nominal_at, r.gated, coalesce(r.input, w.input) as input, w.id as schedule,
    case when r.trace is null then w.tags else w.tags || r.trace end as tags,
    l.id as lane, j.policy, j.version, coalesce(w.priority, j.priority) as priority, w.job,
    ${FLOW_KEY("coalesce(r.input, w.input)")} as flow_key
  from unnest(:runSchedules::int[], :runIds::uuid[], :runModes::smallint[], :runNominals::bigint[], :runGates::boolean[],
    :runInputs::text[], :runTraces::text[]) as r (schedule, id, mode, nominal_at, gated, input, trace),
  lateral (
    select x.id, x.job, x.queue, x.priority, x.tags, x.input from {schedule} x where x.id = r.schedule offset 0) w
  -- Left joins: a run without its job has no lane and is refused; it must not silently be left out.
  left join lateral (
    select x.* from {job} x where x.name = w.job offset 0) j on true
  left join lateral (
    select x.id from {lane} x where x.job = w.job and x.queue = coalesce(w.queue, j.queue) offset 0) l on true
  where ${isWon("r.schedule")}
),
stored as (
  insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
  select m.id, now.at, now.at, m.lane, m.policy, m.version, m.priority, m.mode, m.schedule, m.nominal_at, m.tags, m.input
  from made m cross join now
),
opening as materialized (
  select w.id, w.lane, w.flow from {waiting} w where w.gate = 'schedule' and w.id = any(array(
    select o.run from unnest(:openSchedules::int[], :openRuns::uuid[]) as o (schedule, run)
    where ${isWon("o.schedule")})) for update
),
newcomers as materialized (
  select m.job, m.flow_key as key, m.lane, not m.gated as lined from made m where m.flow_key is not null
  union all
  select f.job, f.key, o.lane, true from opening o join {flow} f on f.id = o.flow
),
${NEW_FLOWS},
held as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select m.id, now.at, m.lane, m.policy, m.priority, 0, 0, 0, 0, 0, false,
    case when m.gated then 'schedule' else 'flow' end, f.id
  from made m left join flows f on f.job = m.job and f.key = m.flow_key cross join now
  where m.gated or m.flow_key is not null
),
stood as (
  update {waiting} set gate = 'flow', wake_at = now.at from now
  where id = any(array(select id from opening where flow is not null))
),
opened as (
  delete from {waiting} where id = any(array(select id from opening where flow is null)) returning *
),
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select m.id, now.at - m.priority * 60000, m.lane, m.policy, 0, 0, 0, 0, 0, false
  from made m cross join now where not m.gated and m.flow_key is null
  union all
  select o.id, now.at - o.priority * 60000, o.lane, o.policy, o.attempt, o.losses, o.refunds, o.laters, o.extra, o.suspect
  from opened o cross join now
)
select (select json_agg(w.id) from won w) as won,
  case when :channel::text is not null then pg_notify(:channel::text, '') end as told`;

/** An operator grants an ended run one more attempt; it is gated if its schedule has a live run. */
export const reviving = (which: string) => /* sql */ `
with now as materialized (select {now} as at),
reopened as (
  delete from {outcome} where ${which}
  returning id, fence, started_at, finished_at, holder, attempt, extra, status, error
),
noted as (
  insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, case when status = 3 then 5 else 0 end, holder, started_at, finished_at, error
  from reopened where fence is not null
),
revived as materialized (
  select o.id, o.attempt, o.extra + 1 as extra, r.lane, r.policy, r.priority, l.job, ${FLOW_KEY("r.input")} as flow_key
  from reopened o
  join {run} r on r.id = o.id
  join {lane} l on l.id = r.lane
  left join {job} j on j.name = l.job
),
newcomers as materialized (
  select job, flow_key as key, lane, not :isGated::boolean as lined from revived where flow_key is not null
),
${NEW_FLOWS},
returned as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select r.id, now.at - r.priority * 60000, r.lane, r.policy, r.attempt, 0, 0, 0, r.extra, false
  from revived r cross join now where not :isGated::boolean and r.flow_key is null
),
held as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select r.id, now.at, r.lane, r.policy, r.priority, r.attempt, 0, 0, 0, r.extra, false,
    case when :isGated::boolean then 'schedule' else 'flow' end, f.id
  from revived r left join flows f on f.job = r.job and f.key = r.flow_key cross join now
  where :isGated::boolean or r.flow_key is not null
),
${UNCOUNTING}`;
/** While its day is being dropped, an outcome exists for a little longer than its run. */
export const REVIVING = reviving(
  "id = :id::uuid and status in (2, 3) and exists (select from {run} r where r.id = :id::uuid)",
);

/** For a run that a schedule made: runs in the transaction that has locked that schedule's row. */
export const REVIVE = `${REVIVING} select id, (select count(*) from continued) as continued from reopened`;

/** The share of a random draw that belongs to one of several runs that end together. */
const SHARE = /* sql */ `((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034))`;

/**
 * Applies the end of a run to its schedule, for the ends in `ended_runs` (schedule, id, status, place): only the run of
 * the newest fired tick, and only if bounds to draw from are stored.
 */
export const AFTER_END = /* sql */ `
rescheduled as (
  update {schedule} s set revision = s.revision + 1,
    next_at = case
      when s.next_at is null or s.range_min is null then s.next_at
      when e.status = 2 and s.fail_min is not null
        then now.at + s.fail_min + floor(${SHARE} * (s.fail_max - s.fail_min + 1))::bigint
      else now.at + s.range_min + floor(${SHARE} * (s.range_max - s.range_min + 1))::bigint end,
    hold_until = case when s.range_min is null
      then now.at + s.fail_min + floor(${SHARE} * (s.fail_max - s.fail_min + 1))::bigint else s.hold_until end,
    hold_run = case when s.range_min is null then e.id else s.hold_run end
  from ended_runs e, now
  where s.id = any(array(select schedule from ended_runs)) and s.id = e.schedule and s.last_run = e.id
    and (s.range_min is not null or (e.status = 2 and s.fail_min is not null))
  returning s.id
)`;

/**
 * How many of them were changed. Parts that no part selects run from the last to the first, so a statement that ends
 * limited runs selects this: schedules are locked before limits, as in the statement that fires runs under a limit.
 */
export const RESCHEDULED = /* sql */ `(select count(*)::int from rescheduled) as rescheduled`;
