// The public views: what users, dashboards and reports read from SQL. Both engines make them from this
// one text, so that names, columns and their order cannot differ; how an engine writes an instant or
// JSON is its own (views.ts, views.ts). Columns are only ever added, at the end.

import { ATTEMPT_ENDS, MODES, RUN_STATUSES } from "../../runs/rules/run.js";
import { OUTCOMES, REASONS } from "../../schedules/rules/tick.js";
import { CANCEL_ERROR, LOST_ERROR, TIMEOUT_ERROR } from "../leases.js";
import { LOG_LEVELS_KEPT } from "../logs.js";
import { SOURCES } from "../schedules/changes.js";
import { type Engine, render } from "../sql/dialect.js";

/** The parts of the text that differ by engine. */
export type ViewForms = {
  /** The text before a view's query. */
  readonly create: (name: string) => string;
  /** Epoch milliseconds as a time. */
  readonly instant: (ms: string) => string;
  /** Epoch milliseconds as a day of UTC. */
  readonly day: (ms: string) => string;
  /** JSON text as JSON. */
  readonly json: (text: string) => string;
  /** The list of texts in this column as JSON, however it is stored. */
  readonly texts: (column: string) => string;
  /** A member of an object that is JSON text, as text. */
  readonly member: (text: string, name: string) => string;
};

/** The private views, on which the public ones, the checks and the reads of locks are built. */
export function createPrivateViews(engine: Engine, { create }: ViewForms): string {
  // PostgreSQL keeps the rows of released locks; SQLite has only held ones.
  const isHeld = engine === "postgres" ? "where state = 0" : "";
  const text = /* sql */ `
-- The table of each run that has not ended.
${create("live_run")}
select id as run, 'ready' as place, null::bigint as fence, lane, policy, attempt, extra from {ready}
union all
select id, 'waiting', null, lane, policy, attempt, extra from {waiting}
union all
select m.value, 'lease', k.fence, k.lane, k.policy, k.attempt, k.extra from {lease} k, {each k.ids as m};

-- The runs that schedules count as live.
${create("schedule_live")}
select s.id as schedule, m.value as run from {schedule} s, {each s.live as m};

${create("held_lock")}
select name, fence, holder, acquired_at, renewed_at, until, execution from {lock} ${isHeld};
`;
  return render(text, engine);
}

export const VIEWS = [
  "v_runs",
  "v_running_runs",
  "v_stale_runs",
  "v_run_stats",
  "v_run_attempts",
  "v_run_items",
  "v_run_logs",
  "v_schedules",
  "v_ticks",
  "v_locks",
  "v_lock_history",
  "v_instances",
  "v_queues",
] as const;
export type ViewName = (typeof VIEWS)[number];

/** The thresholds of `cleanup` unless others are given; the views use the same. */
const SILENT_MS = 600_000;
const TIMEOUT_MS = 7_200_000;
const DAY_MS = 86_400_000;
const STATS_DAYS = 30;
const WAITER_VOID_MS = 3_000;

/** The words for a column of numbers; `first` is the number of the first word. */
const words = (column: string, names: readonly string[], first = 0) =>
  `case ${column} ${names.map((name, at) => `when ${first + at} then '${name}'`).join(" ")} end`;

const STATUS_FIRST = -1;
/** Codes below ten are attempts that did not end their run; the outcome's status follows at ten. */
const ENDS = [
  ...Array.from({ length: 11 }, (_, code) => ATTEMPT_ENDS[code] ?? ""),
  "completed",
  "failed",
  "cancelled",
];
const endWords = (column: string) =>
  `case ${column} ${ENDS.map((name, at) => (name === "" ? "" : `when ${at} then '${name}'`))
    .filter((each) => each !== "")
    .join(" ")} end`;
const LOCK_STATES = ["acquired", "released", "expired", "revoked"];

const ENFORCED = [LOST_ERROR, TIMEOUT_ERROR, CANCEL_ERROR].map((error) => `'${error}'`).join(", ");

/**
 * The last renewal; after that the end that the holder reported. Of an attempt that was taken from a silent holder only
 * the begin is kept.
 */
const LAST_HEARTBEAT = `coalesce(s.heartbeat_at,
    case when s.status <> 1 and s.error in (${ENFORCED}) then s.started_at else s.finished_at + 0 * s.started_at end,
    (select max(case when a.error in (${ENFORCED}) then a.started_at else a.ended_at end) from {attempt} a where a.run = s.id))`;

/** For `s`, the state of a run. */
const runColumns = ({ instant, json, member }: ViewForms) => `s.id, s.job, s.schedule,
  ${words("s.mode", MODES)} as mode, ${words("s.status", RUN_STATUSES, STATUS_FIRST)} as status, s.attempt,
  ${instant("s.created_at")} as created_at, ${instant("s.due_at")} as due_at,
  ${instant("s.started_at")} as started_at, ${instant("s.finished_at")} as finished_at,
  s.finished_at - s.started_at as duration_ms,
  ${instant(LAST_HEARTBEAT)} as heartbeat_at, ${instant("s.updated_at")} as updated_at,
  s.holder, ${instant("s.lease_until")} as lease_until, s.fence, s.key,
  case when s.status <> 1 then ${member("s.error", "message")} end as last_error,
  case when s.status <> 1 then ${member("s.error", "code")} end as last_error_code,
  s.queue, s.priority, s.attempts_max, ${instant("s.nominal_at")} as nominal_at, s.parent as parent_id,
  ${json("coalesce(s.tags, '[]')")} as tags, ${json("coalesce(s.items, '{}')")} as items,
  s.status = 1 and exists (
    select 1 from {item_count} c where c.run = s.id and c.outcome = 'failed' and c.items > 0) as partial,
  ${json("s.input")} as input, ${json("s.result")} as result,
  ${instant("s.cancel_requested_at")} as cancel_requested_at, s.version`;

const runningColumns = (forms: ViewForms) => `${runColumns(forms)},
  ({now} - s.heartbeat_at) / 1000 as seconds_since_heartbeat,
  case when s.lease_until > {now} then 'active' else 'silent' end as heartbeat_status`;

// Held runs are found by their leases, not by a search through history.
const HELD = "s.id in (select p.run from {live_run} p where p.place = 'lease') and s.status = 0";

function viewTexts(forms: ViewForms): Readonly<Record<ViewName, string>> {
  const { instant, day, json, texts, member } = forms;
  return {
    v_runs: `select ${runColumns(forms)},
  s.finished_at - coalesce((select min(a.started_at) from {attempt} a where a.run = s.id), s.started_at) as whole_duration_ms
from {run_state} s`,

    v_running_runs: `select ${runningColumns(forms)} from {run_state} s where ${HELD}`,

    v_stale_runs: `select ${runningColumns(forms)},
  case when s.heartbeat_at <= {now} - ${SILENT_MS} then 'silent' else 'timeout' end as stale_reason
from {run_state} s
where ${HELD} and (s.heartbeat_at <= {now} - ${SILENT_MS} or s.started_at <= {now} - ${TIMEOUT_MS})`,

    // From the hourly sums, not from history. Runs that were made by hand do not count for the success rate.
    v_run_stats: `select ${day("t.day_at")} as day, t.total, t.completed, t.failed, t.cancelled,
  cast(t.regular_completed as double precision) / nullif(t.regular_ended, 0) as success_rate,
  cast(t.completed_ms as double precision) / nullif(t.completed, 0) as mean_duration_ms, t.ran_ms as total_duration_ms
from (
  select r.hour_at - r.hour_at % ${DAY_MS} as day_at, cast(sum(r.runs) as bigint) as total,
    cast(sum(case when r.status = 1 then r.runs else 0 end) as bigint) as completed,
    cast(sum(case when r.status = 2 then r.runs else 0 end) as bigint) as failed,
    cast(sum(case when r.status = 3 then r.runs else 0 end) as bigint) as cancelled,
    sum(case when r.status = 1 and r.mode in (0, 1) then r.runs else 0 end) as regular_completed,
    sum(case when r.status in (1, 2) and r.mode in (0, 1) then r.runs else 0 end) as regular_ended,
    sum(case when r.status = 1 then r.ran_ms else 0 end) as completed_ms, cast(sum(r.ran_ms) as bigint) as ran_ms
  from {rollup} r
  where r.hour_at >= {now} - {now} % ${DAY_MS} - ${(STATS_DAYS - 1) * DAY_MS}
  group by r.hour_at - r.hour_at % ${DAY_MS}
) t`,

    v_run_attempts: `select a.run as run_id, a.attempt, a.fence, i.id as holder, ${endWords("a.ended")} as ended,
  ${instant("a.started_at")} as started_at, ${instant("a.ended_at")} as ended_at,
  a.ended_at - a.started_at as duration_ms, ${member("a.error", "message")} as error,
  ${member("a.error", "code")} as error_code
from (
  select x.run, x.attempt, x.fence, x.holder, x.ended, x.started_at, x.ended_at, x.error from {attempt} x
  union all
  select o.id, o.attempt, o.fence, o.holder, o.status + 10, o.started_at, o.finished_at, o.error from {outcome} o
  where o.fence is not null
) a left join {instance} i on i.no = a.holder`,

    v_run_items: `select t.run as run_id, t.key, t.outcome, t.attempt, t.fence,
  ${instant("t.started_at")} as started_at, t.duration_ms, ${json("t.value")} as value,
  ${member("t.error", "message")} as error, ${member("t.error", "code")} as error_code
from {item} t`,

    v_run_logs: `select g.run as run_id, g.fence, g.no, g.attempt, ${instant("g.at")} as at,
  ${words("g.level", LOG_LEVELS_KEPT)} as level, g.message, ${json("g.fields")} as fields
from {log} g`,

    v_schedules: `select s.name, s.job, s.paused_at is not null as paused, ${instant("s.next_at")} as next_run_at,
  ${instant(`case when r.id is null then null
    else coalesce(o.started_at, h.claimed_at, r.created_at) end`)} as last_run_at,
  case when r.id is null then null when o.id is not null then ${words("o.status", RUN_STATUSES, STATUS_FIRST)}
    when h.run is not null then 'running' else 'pending' end as last_status,
  k.holder as locked_by, ${instant("k.until")} as locked_until, s.version,
  case when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end as state,
  s.last_run as last_run_id, ${instant("s.last_tick_at")} as last_tick_at, ${instant("s.cursor_at")} as recorded_until,
  s.queue, s.priority, ${texts("s.tags")} as tags, ${json("s.definition")} as definition, ${json("s.input")} as input,
  ${instant("s.paused_at")} as paused_at, s.paused_by, s.pause_note, ${instant("s.broken_at")} as broken_at,
  s.broken_error, s.app, ${words("s.source", SOURCES)} as source, s.release,
  ${instant("s.created_at")} as created_at, ${instant("s.updated_at")} as updated_at
from {schedule} s
left join {run} r on r.id = s.last_run
left join {outcome} o on o.id = r.id
left join (
  select p.run, l.claimed_at from {live_run} p join {lease} l on l.fence = p.fence where p.place = 'lease'
) h on h.run = r.id
left join (
  select x.schedule, i.id as holder, l.until, row_number() over (partition by x.schedule order by l.fence) as place
  from {live_run} p join {lease} l on l.fence = p.fence join {run} x on x.id = p.run
  left join {instance} i on i.no = l.holder
  where p.place = 'lease' and x.schedule is not null
) k on k.schedule = s.id and k.place = 1
where s.deleted_at is null`,

    v_ticks: `select s.name as schedule, ${instant("t.at")} as tick_at, ${instant("t.last_at")} as last_tick_at, t.count,
  ${words("t.outcome", OUTCOMES)} as outcome, ${words("t.reason", REASONS)} as reason, t.run as run_id,
  ${instant("t.recorded_at")} as recorded_at, i.id as holder, t.version, ${json("t.evidence")} as evidence
from {tick} t join {schedule} s on s.id = t.schedule left join {instance} i on i.no = t.holder`,

    v_locks: `select l.name, l.holder, l.fence, ${instant("l.acquired_at")} as acquired_at,
  ${instant("l.renewed_at")} as renewed_at, ${instant("l.until")} as lease_until, l.until <= {now} as expired,
  (select count(*) from {lock_waiter} w where w.name = l.name and w.seen_at > {now} - ${WAITER_VOID_MS}) as waiting,
  l.execution
from {held_lock} l`,

    v_lock_history: `select h.name, h.fence, h.holder, ${words("h.state", LOCK_STATES)} as status,
  ${instant("h.acquired_at")} as acquired_at, ${instant("h.until")} as lease_until,
  ${instant("h.ended_at")} as ended_at, h.ended_at - h.acquired_at as held_ms, h.note, h.execution
from (
  select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution
  from {lock_history} x
  union all
  select l.fence, l.name, l.holder, 0, l.acquired_at, l.until, null, null, l.execution from {held_lock} l
) h`,

    v_instances: `select i.id, i.app, i.release, ${json("cast(i.jobs as text)")} as jobs, i.is_scheduler as scheduler,
  i.retired_at is null and (i.seen_at > {now} - 60000 or i.seen_at > {now} - 3 * i.poll_ms) as live,
  ${instant("i.started_at")} as started_at, ${instant("i.seen_at")} as seen_at,
  ${instant("i.polled_at")} as polled_at, ${instant("i.retired_at")} as retired_at,
  (select count(*) from {live_run} p join {lease} l on l.fence = p.fence where l.holder = i.no) as held
from {instance} i`,

    v_queues: `select n.name, q.paused_at is not null as paused, ${instant("q.paused_at")} as paused_at, q.pause_note,
  coalesce(c.ready, 0) as ready, coalesce(c.waiting, 0) as waiting, coalesce(c.running, 0) as running
from (select l.queue as name from {lane} l union select x.name from {queue} x) n
left join {queue} q on q.name = n.name
left join (
  select l.queue, cast(sum(case when p.place = 'ready' then 1 else 0 end) as bigint) as ready,
    cast(sum(case when p.place = 'waiting' then 1 else 0 end) as bigint) as waiting,
    cast(sum(case when p.place = 'lease' then 1 else 0 end) as bigint) as running
  from {live_run} p join {lane} l on l.id = p.lane group by l.queue
) c on c.queue = n.name`,
  };
}

export function createViews(forms: ViewForms): string {
  const texts = viewTexts(forms);
  return VIEWS.map((name) => `${forms.create(name)}\n${texts[name]};\n`).join("\n");
}
