// The statements about schedules on PostgreSQL. What the ticker writes for many schedules, ledger and
// runs included, is one statement: one round trip and one commit. Everything is written only at the
// revision that it was decided from; rows that somebody holds locked are left to them.

import { UNCOUNTING } from "./batches.js";
import { FLOW_KEY, NEW_FLOWS } from "./flow.js";
import { NOT_PAUSED, PAUSES } from "./pause.js";

// Asked one by one: as joins the planner turns these into reading whole days of history.
export const IS_LIVE = /* sql */ `(select 1 from {outcome} o where o.id = l.id) is null
  and (select 1 from {run} r where r.id = l.id) is not null`;
export const IS_GATED = /* sql */ `coalesce((select w.gate = 'schedule' from {waiting} w where w.id = l.id), false)`;

/** The first live run is gated, or none is left: then there is something to decide. */
const NEEDS_LOOK = /* sql */ `(s.is_replacing or s.backfill is not null or coalesce((
  select ${IS_GATED} from unnest(s.live) with ordinality l (id, place)
  where ${IS_LIVE} order by l.place limit 1), true))`;
const LOOKS = "(s.is_gated or s.is_replacing or s.backfill is not null)";
/** Active, and yet without a next tick: nobody should have made such a row. */
const LOST = /* sql */ `s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null`;

/**
 * For the poll: whether the ticker has anything to do. The smallest is one entry of the index,
 * whatever the plan; "exists one that is due" was planned as reading all schedules.
 */
export const HAS_DUE_SCHEDULE = /* sql */ `(
  coalesce((select min(s.next_at) from {schedule} s where s.next_at is not null) <= now.at, false)
  or exists (select from {schedule} s where ${LOOKS} and ${NEEDS_LOOK})
  or exists (select from {schedule} s where ${LOST}))`;
/** For the poll of an instance that fires nothing. */
export const HAS_FREE_GATE = /* sql */ `exists (select from {schedule} s where ${LOOKS} and ${NEEDS_LOOK})`;
export const HAS_GATED = /* sql */ `exists (select from {schedule} s where ${LOOKS})`;

const COLUMNS = /* sql */ `
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at`;

// As rows: one JSON value for all of them took the server twice as long here. Without a schedule
// there is one row that has the time alone.
const STATE = /* sql */ `
select now.at as now, y.* from now left join lateral (
    select ${COLUMNS},
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
    (select s.id, 1000000 + s.id from {schedule} s where ${LOOKS} and ${NEEDS_LOOK} limit :limit)
    union all
    (select s.id, 2000000000::bigint + s.id from {schedule} s where ${LOST} limit :limit)
  ) x group by id order by 2 limit :limit
)
${STATE}`;

/** Only those that need a look, whether or not a tick of them is due. */
export const GATED_SCHEDULES = /* sql */ `
with now as materialized (select {now} as at),
chosen as materialized (
  select s.id, row_number() over () as place from {schedule} s where ${LOOKS} and ${NEEDS_LOOK} limit :limit
)
${STATE}`;

export const SCHEDULE_STATES = /* sql */ `
with now as materialized (select {now} as at),
chosen as materialized (
  select s.id, row_number() over () as place from {schedule} s where s.name = any(:names::text[])
)
${STATE}`;

/** Looked up in a hash table, whatever is expected of it: a list would be gone through from its beginning for each. */
const isWon = (schedule: string) => `(${schedule} in (select id from won)) is true`;

/**
 * The advance of many schedules with their ledger rows, their runs and the gates that open.
 * A ledger row that exists already fails the statement: nothing of it is written then.
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
  -- Nothing is fired while everything is paused: what would have been is decided anew.
  where ${NOT_PAUSED} or x.id <> all(:cadenced::int[])
),
-- Joining what was won with what was sent would be a nested loop, as nobody can tell the planner how
-- many there are: both are reached by their keys instead.
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
  -- Left joins: without its job a run has no lane, which is refused; it must not silently be none.
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

export const SET_STANDING = /* sql */ `
update {schedule} set paused_at = :pausedAt::bigint, paused_by = :pausedBy, pause_note = :pauseNote,
  broken_at = :brokenAt::bigint, broken_error = :brokenError, updated_at = {now}
where id = :id`;

export const SET_RELEASE = /* sql */ `update {schedule} set release = :release where id = :id`;

const EDITED = /* sql */ `
job = :job, queue = :queue, priority = :priority::smallint, tags = :tags::text[], input = :input,
  definition = :definition, anchor_at = :anchorAt::bigint, range_min = :rangeMin::bigint, range_max = :rangeMax::bigint,
  fail_min = :failMin::bigint, fail_max = :failMax::bigint, app = :app, source = :source::smallint, release = :release,
  code_hash = :codeHash, began_at = null, deleted_at = case when :isDeleted::boolean then {now} end, updated_at = {now}`;

export const EDIT_SCHEDULE = /* sql */ `
update {schedule} set version = version + 1, ${EDITED} where id = :id returning version`;

export const CREATE_SCHEDULE = /* sql */ `
insert into {schedule} (name, revision, version, job, queue, priority, tags, input, definition, anchor_at,
  cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated, is_replacing,
  range_min, range_max, fail_min, fail_max, tzdata, app, source, release, code_hash, created_at, updated_at)
select :name, 1, 1, :job, :queue, :priority::smallint, :tags::text[], :input, :definition, :anchorAt::bigint,
  :cursorAt::bigint, :nextAt::bigint, :isEnded::boolean, :holdUntil::bigint, :holdRun::uuid, :lastRun::uuid,
  :lastTickAt::bigint, :live::uuid[], :isGated::boolean, :isReplacing::boolean,
  :rangeMin::bigint, :rangeMax::bigint, :failMin::bigint, :failMax::bigint, :tzdata, :app, :source::smallint,
  :release, :codeHash, n.at, n.at
from (select {now} as at) n
on conflict (name) do nothing returning id`;

export const ADD_VERSION = /* sql */ `
insert into {schedule_version} (schedule, version, kind, at, by, job, definition, input, anchor_at)
values (:id, :version, :kind::smallint, {now}, :by, :job, :definition, :input, :anchorAt::bigint)`;

export const SEE_DEFINITION = /* sql */ `
insert into {declared} as d (schedule, hash, release, first_seen_at) values (:id, :codeHash, :release, {now})
on conflict (schedule, hash) do update set
  first_seen_at = case when :isForced::boolean then excluded.first_seen_at else d.first_seen_at end,
  release = coalesce(excluded.release, d.release)`;

/** An ended run gets one more attempt, by an operator's will; gated where its schedule has a live run. */
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
/** While its day is being dropped, an outcome is there for a little longer than its run. */
export const REVIVING = reviving(
  "id = :id::uuid and status in (2, 3) and exists (select from {run} r where r.id = :id::uuid)",
);

/** Of a run that a schedule made: under that schedule's row, in its transaction. */
export const REVIVE = `${REVIVING} select id, (select count(*) from continued) as continued from reopened`;

export const SET_BEGAN = /* sql */ `update {schedule} set began_at = :beganAt::bigint where id = :id`;

export const JOB_OF_SCHEDULE = /* sql */ `select job from {schedule} where id = :id`;

/** A run that ended elsewhere: it is never pending nor held, so it goes straight to its outcome. */
export const ADD_CHECK_IN = /* sql */ `
with now as materialized (select {now} as at),
made as (
  insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
  select :id::uuid, now.at, coalesce(:nominalAt::bigint, now.at), :lane::int, :policy::int, 1, 0, :mode::smallint, s.id,
    :nominalAt::bigint, s.tags, s.input
  from {schedule} s cross join now where s.id = :schedule and not :isAgain::boolean
),
before as materialized (
  delete from {outcome} where id = :id::uuid and :isAgain::boolean returning started_at
),
ended as (
  insert into {outcome} (id, started_at, finished_at, lane, attempt, extra, status, error)
  select :id::uuid, coalesce(now.at - :ranMs::bigint, b.started_at), now.at, :lane::int, 1, 0, :status::smallint, :error
  from now left join before b on true
)
insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
select now.at - now.at % 3600000, :lane::int, :mode::smallint, :status::smallint, 0, 1, coalesce(:ranMs::bigint, 0) from now
on conflict (hour_at, lane, mode, status, shard) do update set runs = t.runs + 1, ran_ms = t.ran_ms + excluded.ran_ms`;

export const ADD_DELIVERY = /* sql */ `
insert into {delivery} (schedule, id, run, input_hash) values (:schedule, :id, :run::uuid, :inputHash)`;

export const DELIVERY = /* sql */ `
select run, input_hash from {delivery} where schedule = :schedule and id = :id`;

export const PUT_BACKFILL = /* sql */ `
insert into {backfill} as b (id, schedule, from_at, to_at, cursor_at, total, made, passed, is_all, created_at, created_by,
  ended_at, is_cancelled)
select :id::uuid, :schedule, :fromAt::bigint, :toAt::bigint, :cursorAt::bigint, :total::int, :made::int, :passed::int,
  :isAll::boolean, n.at, :by, case when :isEnded::boolean then n.at end, :isCancelled::boolean
from (select {now} as at) n
on conflict (id) do update set cursor_at = excluded.cursor_at, made = excluded.made, passed = excluded.passed,
  ended_at = excluded.ended_at, is_cancelled = excluded.is_cancelled`;

export const SET_BACKFILL = /* sql */ `
update {schedule} set backfill = case when :isEnded::boolean then null else :backfill::uuid end where id = :id`;

export const ADD_BACKFILL_RUN = /* sql */ `
insert into {backfill_run} (schedule, at, backfill, run) values (:schedule, :at::bigint, :backfill::uuid, :run::uuid)`;

export const BACKFILLS = /* sql */ `
select b.* from {backfill} b join {schedule} s on s.id = b.schedule where s.name = :name
order by b.created_at desc, b.id limit 100`;

export const COMPLETED_TICKS = /* sql */ `
select a.at from unnest(:ticks::bigint[]) a (at)
where exists (
    select from {tick} t where t.schedule = :schedule and t.at = a.at and t.run is not null
      and exists (select from {outcome} o where o.id = t.run and o.status = 1))
  or exists (
    select from {backfill_run} b where b.schedule = :schedule and b.at = a.at
      and exists (select from {outcome} o where o.id = b.run and o.status = 1))`;

export const LIST_SCHEDULES = /* sql */ `
select ${COLUMNS}, exists (select from {job} j where j.name = s.job) as is_job_known, to_json(s.live) as live,
  r.status as last_status, coalesce(r.started_at, r.created_at) as last_run_at
from {schedule} s
left join lateral (select x.status, x.started_at, x.created_at from {run_state} x where x.id = s.last_run offset 0) r on true
where s.deleted_at is null
  and (:name::text is null or s.name = :name::text)
  and (:after::text is null or s.name > :after::text collate "C")
  and (:job::text is null or s.job = :job::text)
  and (:app::text is null or s.app = :app::text)
  and (:state::text is null or :state::text = case
    when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end)
order by s.name limit :limit`;

/** Few ticks have a run that has not ended, so that looking for those among the leases costs little. */
const TICK_COLUMNS = /* sql */ `
t.at, t.last_at, t.count, t.reason, t.recorded_at, t.version, t.run, t.evidence, s.name as schedule, i.id as recorded_by,
coalesce((select o.status from {outcome} o where o.id = t.run),
  case when t.run is null then null
    when exists (select from {lease} k where t.run = any(k.ids)) then 0
    when exists (select from {run} r where r.id = t.run) then -1 end) as run_status`;

export const LIST_TICKS = /* sql */ `
select ${TICK_COLUMNS}
from {tick} t join {schedule} s on s.id = t.schedule left join {instance} i on i.no = t.holder
where (:schedule::text is null or s.name = :schedule::text)
  and (:fromAt::bigint is null or t.last_at >= :fromAt::bigint)
  and (:toAt::bigint is null or t.at <= :toAt::bigint)
  and (:outcome::smallint is null or t.outcome = :outcome::smallint)
  and (:beforeAt::bigint is null or (t.at, s.name) < (:beforeAt::bigint, :beforeSchedule::text collate "C"))
order by t.at desc, s.name desc limit :limit`;

export const SCHEDULE_TICKS = /* sql */ `
select ${TICK_COLUMNS}
from (select x.id, x.name from {schedule} x where x.name = :schedule::text) s,
  lateral (
    select x.* from {tick} x
    where x.schedule = s.id
      and (:fromAt::bigint is null or x.last_at >= :fromAt::bigint)
      and (:toAt::bigint is null or x.at <= :toAt::bigint)
      and (:outcome::smallint is null or x.outcome = :outcome::smallint)
      and (:beforeAt::bigint is null or x.at < :beforeAt::bigint)
    order by x.at desc limit :limit) t
  left join {instance} i on i.no = t.holder
order by t.at desc`;

export const SCHEDULE_VERSIONS = /* sql */ `
select v.version, v.kind, v.at, v.by, v.job, v.definition, v.input, v.anchor_at
from {schedule_version} v join {schedule} s on s.id = v.schedule where s.name = :name order by v.version`;

export const SEEN_DEFINITIONS = /* sql */ `
select hash, release, first_seen_at from {declared} where schedule = :schedule order by first_seen_at`;

export const DECLARED_NAMES = /* sql */ `
with now as materialized (select {now} as at)
select
  (select json_agg(distinct n.name) from {instance} i cross join now, json_array_elements_text(i.schedules) n (name)
    where i.app is not distinct from :app::text and i.retired_at is null
      and i.seen_at > now.at - greatest(60000, 3 * i.poll_ms)) as announced,
  (select json_agg(json_build_object('name', s.name, 'pausedBy', s.paused_by, 'isPaused', s.paused_at is not null)
      order by s.name)
    from {schedule} s where s.app is not distinct from :app::text and s.source = 1 and s.deleted_at is null) as stored`;

export const SCHEDULES_BY_TZDATA = /* sql */ `
select s.name from {schedule} s
where s.next_at is not null and s.tzdata is not null and s.tzdata <> :not order by s.id limit :limit`;

export const CALENDARS = /* sql */ `
select name, rules, version, updated_at, updated_by from {calendar} order by name`;

export const PUT_CALENDAR = /* sql */ `
insert into {calendar} as c (name, rules, version, updated_at, updated_by)
values (:name, :rules, 1, {now}, :by)
on conflict (name) do update set rules = excluded.rules, version = c.version + 1,
  updated_at = excluded.updated_at, updated_by = excluded.updated_by`;

export const REMOVE_CALENDAR = /* sql */ `delete from {calendar} where name = :name returning name`;

/** The share of a draw that belongs to one of several runs that end together. */
const SHARE = /* sql */ `((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034))`;

/**
 * What the end of a run does to its schedule, for the ends in `ended_runs` (schedule, id, status,
 * place): only the run of the newest fired tick, and only where bounds to draw from are stored.
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
 * How many of them were changed. Parts that nothing selects are run from the last to the first, so whoever ends
 * limited runs selects it: schedules are locked before limits, as by who fires runs under a limit.
 */
export const RESCHEDULED = /* sql */ `(select count(*)::int from rescheduled) as rescheduled`;

export const PRUNE_SCHEDULES = /* sql */ `
with now as materialized (select {now} as at),
ticks as (
  delete from {tick_rest} where ctid = any(array(
    select t.ctid from {tick_rest} t, now where t.last_at < now.at - greatest(:keepTicksMs::bigint, :keepMs::bigint) limit :limit)) returning 1
),
old as materialized (
  select b.id from {backfill} b, now where b.ended_at < now.at - :keepMs::bigint limit :limit
),
runs as (delete from {backfill_run} where backfill = any(array(select id from old))),
backfills as (delete from {backfill} where id = any(array(select id from old)) returning 1),
deliveries as (
  delete from {delivery} where ctid = any(array(
    select d.ctid from {delivery} d where not exists (select from {run} r where r.id = d.run) limit :limit)) returning 1
)
select (select count(*) from ticks) + (select count(*) from backfills) + (select count(*) from deliveries) as pruned`;
