// `acquire_due` on PostgreSQL: one atomic "due and not locked" for callers without our code. It settles the ticks of a
// schedule up to now as a poll would, reclaims silent runs, and hands out the next run. SQL can count intervals; it
// cannot evaluate cron or calendars, and refuses those.

import { MODES } from "../../../runs/rules/run.js";
import { OUTCOME_OF, OUTCOMES, REASONS } from "../../../schedules/rules/tick.js";
import { ANNOUNCE_REMOTE } from "../../instances.js";
import { render } from "../../sql/dialect.js";
import { expressed } from "../../sql/template.js";
import { RECLAIM_RUNS } from "../leases.js";
import { PROMOTE_RUNS } from "../poll.js";
import { CLAIM_LIMITED_RUN, CLAIM_RUN } from "./exchange.js";
import { DEFINED, SQLSTATES } from "./function-parts.js";
import { NOT_PAUSED } from "./limits.js";
import { ADVANCE_SCHEDULES } from "./schedules.js";

/** Ticks on time that one evaluation judges one by one, as in schedules/rules/evaluate.ts. */
const ON_TIME_MAX = 1_000;
const PROMOTE_MAX = 1_000;
const ROUNDS_MAX = 1_000;
const YEAR_10000_MS = 253_402_300_800_000;

/** How many ticks of the grid there are up to and including the instant. */
const upTo = (at: string) =>
  `(case when ${at} < v_first then 0 else (${at} - v_first) / v_every + 1 end)`;
/** The first tick of the grid after the instant, or null. */
const nextAfter = (at: string) =>
  `(select t.at from (select v_first + ${upTo(at)} * v_every as at) t where t.at <= v_until)`;
const quoted = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(", ");
const scheduledOf = (live: string) =>
  `from jsonb_array_elements(${live}) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled'`;

/**
 * Decides the outcome of the due ticks of one interval: schedules/rules/evaluate.ts in SQL, for grids and ranges
 * without exclusions. A test compares the two.
 */
const EVALUATE_EVERY = /* sql */ `
create function {evaluate_every}(
  p_definition jsonb, p_anchor_at bigint, p_cursor_at bigint, p_next_at bigint,
  p_hold_until bigint, p_hold_run uuid, p_live jsonb, p_now bigint)
returns jsonb language plpgsql volatile set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_when jsonb := p_definition -> 'when';
  v_every bigint := (v_when ->> 'everyMs')::bigint;
  v_from bigint := (v_when ->> 'fromMs')::bigint;
  v_until bigint := least((v_when ->> 'untilMs')::bigint, ${YEAR_10000_MS} - 1);
  v_first bigint := coalesce(v_from, p_anchor_at + v_every);
  v_overlap text := p_definition ->> 'overlap';
  v_missed text := p_definition -> 'missed' ->> 'run';
  v_within bigint := (p_definition -> 'missed' ->> 'withinMs')::bigint;
  v_grace bigint := (p_definition ->> 'graceMs')::bigint;
  v_old bigint := p_now - v_grace - 1;
  v_cursor bigint := p_cursor_at;
  v_next bigint;
  v_count bigint;
  v_last bigint;
  v_wanted bigint;
  v_made_up bigint;
  v_too_old bigint;
  v_ticks jsonb := '[]';
  v_runs jsonb := '[]';
  v_live jsonb := p_live;
  v_caught_up uuid[] := '{}';
  v_fires bigint[] := '{}';
  v_reasons text[] := '{}';
  v_at bigint;
  v_reason text;
  v_is_gated boolean;
  v_in_the_way text;
  v_replaced jsonb;
  v_has_replaced boolean := false;
  v_run uuid;
  v_evidence jsonb;
begin
  if v_when ->> 'kind' = 'range' then
    -- At most one tick is outstanding: the stored one.
    v_next := greatest(p_next_at, p_cursor_at + 1, v_from);
    if v_next > v_until then v_next := null; end if;
    if v_next <= p_now then
      v_at := v_next;
      if p_now - v_at <= v_grace then
        v_fires := array[v_at]; v_reasons := array['on_time'];
      elsif v_missed = 'skip' then
        v_ticks := jsonb_build_array(jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
          'reason', 'nobody', 'run', null, 'evidence', jsonb_build_object('lastPolledAt', null)));
      elsif p_now - v_at > v_within then
        v_ticks := jsonb_build_array(jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
          'reason', 'too_old', 'run', null, 'evidence', jsonb_build_object('withinMs', v_within)));
      else
        v_fires := array[v_at]; v_reasons := array[case v_missed when 'all' then 'catch_up' else 'late' end];
      end if;
      v_cursor := v_at;
      -- A fallback, until the end of the run draws the next one.
      v_next := greatest(p_now, v_at) + (v_when ->> 'everyMaxMs')::bigint;
    end if;
  else
    -- Ticks past the grace: counted, not visited, except for those that run late.
    v_count := case when v_old > p_cursor_at then ${upTo("least(v_old, v_until)")} - ${upTo("p_cursor_at")} else 0 end;
    if v_count > 0 then
      v_last := v_first + (${upTo("least(v_old, v_until)")} - 1) * v_every;
      v_wanted := case v_missed when 'skip' then 0 when 'latest' then 1
        else (p_definition -> 'missed' ->> 'limit')::bigint end;
      -- If a tick is on time, "latest" runs no older one.
      if v_missed = 'latest' and ${nextAfter("v_old")} <= p_now then v_wanted := 0; end if;
      v_made_up := least(v_wanted, v_count);
      if v_count > v_made_up then
        v_ticks := v_ticks || jsonb_build_object('firstAt', ${nextAfter("p_cursor_at")},
          'lastAt', v_last - v_made_up * v_every, 'count', v_count - v_made_up,
          'reason', case v_missed when 'all' then 'over_limit' else 'nobody' end, 'run', null,
          'evidence', case v_missed when 'all' then jsonb_build_object('limit', p_definition -> 'missed' -> 'limit')
            else jsonb_build_object('lastPolledAt', null) end);
      end if;
      v_too_old := 0;
      for v_back in reverse v_made_up - 1 .. 0 loop
        v_at := v_last - v_back * v_every;
        if p_now - v_at > v_within then
          v_too_old := v_too_old + 1;
        else
          v_fires := v_fires || v_at;
          v_reasons := v_reasons || case v_missed when 'all' then 'catch_up' else 'late' end;
        end if;
      end loop;
      if v_too_old > 0 then
        v_ticks := v_ticks || jsonb_build_object('firstAt', v_last - (v_made_up - 1) * v_every,
          'lastAt', v_last - (v_made_up - v_too_old) * v_every, 'count', v_too_old,
          'reason', 'too_old', 'run', null, 'evidence', jsonb_build_object('withinMs', v_within));
      end if;
      v_cursor := v_last;
    end if;
    v_next := ${nextAfter("greatest(v_cursor, v_old)")};
    for v_judged in 1 .. ${ON_TIME_MAX} loop
      exit when v_next is null or v_next > p_now;
      v_fires := v_fires || v_next;
      v_reasons := v_reasons || 'on_time'::text;
      v_cursor := v_next;
      v_next := ${nextAfter("v_cursor")};
    end loop;
  end if;

  for v_n in 1 .. cardinality(v_fires) loop
    v_at := v_fires[v_n];
    v_reason := v_reasons[v_n];
    v_run := null;
    v_replaced := '[]';
    v_evidence := case v_reason when 'late' then jsonb_build_object('lastPolledAt', null) end;
    v_is_gated := jsonb_array_length(v_live) > 0;
    if v_at < p_hold_until then
      v_reason := 'after_failure';
      v_evidence := jsonb_strip_nulls(jsonb_build_object('run', p_hold_run, 'until', p_hold_until));
    elsif v_reason <> 'catch_up' and v_overlap = 'allow' then
      v_is_gated := false;
    elsif v_reason <> 'catch_up' then
      v_in_the_way := case v_overlap
        when 'skip' then (select l.run ->> 'id' ${scheduledOf("v_live")} order by l.place limit 1)
        when 'queue' then (select l.run ->> 'id' ${scheduledOf("v_live")}
          and (l.run ->> 'isGated')::boolean order by l.place limit 1) end;
      if v_in_the_way is not null then
        v_reason := case v_overlap when 'skip' then 'overlap' else 'queue_full' end;
        v_evidence := jsonb_build_object('run', v_in_the_way);
      elsif v_overlap = 'replace' then
        v_replaced := coalesce((select jsonb_agg(l.run ->> 'id' order by l.place) ${scheduledOf("v_live")}
          and (l.run ->> 'id')::uuid <> all(v_caught_up)), '[]');
      end if;
    end if;
    if v_reason in ('on_time', 'late', 'catch_up') then
      v_run := {new_run_id}();
      if v_reason = 'catch_up' then v_caught_up := v_caught_up || v_run; end if;
      if jsonb_array_length(v_replaced) > 0 then
        v_evidence := coalesce(v_evidence, '{}') || jsonb_build_object('replaced', v_replaced);
        v_has_replaced := true;
      end if;
      v_runs := v_runs || jsonb_build_object('id', v_run, 'nominalAt', v_at, 'isGated', v_is_gated);
      v_live := v_live || jsonb_build_object('id', v_run, 'mode', 'scheduled', 'nominalAt', v_at, 'isGated', v_is_gated);
    end if;
    v_ticks := v_ticks || jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
      'reason', v_reason, 'run', v_run, 'evidence', v_evidence);
  end loop;
  return jsonb_build_object('ticks', v_ticks, 'runs', v_runs, 'live', v_live, 'hasReplaced', v_has_replaced,
    'cursorAt', v_cursor, 'nextAt', v_next, 'isEnded', v_next is null,
    'isComplete', v_when ->> 'kind' = 'range' or v_next is null or v_next > p_now);
end
$holdfast$;
`;

/** Settles the ticks of one interval up to the end of a pause of everything; fires nothing. */
const SKIP_PAUSED = /* sql */ `
create function {skip_paused}(
  p_definition jsonb, p_anchor_at bigint, p_cursor_at bigint, p_next_at bigint, p_live jsonb, p_resumed bigint, p_now bigint)
returns jsonb language plpgsql stable set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_when jsonb := p_definition -> 'when';
  v_is_range boolean := v_when ->> 'kind' = 'range';
  v_every bigint := (v_when ->> 'everyMs')::bigint;
  v_until bigint := least((v_when ->> 'untilMs')::bigint, ${YEAR_10000_MS} - 1);
  v_first bigint := coalesce((v_when ->> 'fromMs')::bigint, p_anchor_at + v_every);
  v_last bigint := least(p_resumed - 1, p_now, v_until);
  v_count bigint := 1;
  v_at bigint := p_next_at;
  v_next bigint;
begin
  if v_is_range then
    v_last := p_next_at;
    v_next := p_now + (v_when ->> 'everyMaxMs')::bigint;
  else
    v_at := ${nextAfter("p_cursor_at")};
    v_count := greatest(${upTo("v_last")} - ${upTo("p_cursor_at")}, 0);
    v_last := v_first + (${upTo("v_last")} - 1) * v_every;
    v_next := ${nextAfter("greatest(v_last, p_cursor_at)")};
  end if;
  return jsonb_build_object('ticks', case when v_count = 0 then '[]'::jsonb else jsonb_build_array(jsonb_build_object(
      'firstAt', v_at, 'lastAt', v_last, 'count', v_count, 'reason', 'paused', 'run', null,
      'evidence', jsonb_build_object('isAll', true, 'until', p_resumed))) end,
    'runs', '[]'::jsonb, 'live', p_live, 'hasReplaced', false,
    'cursorAt', case when v_count = 0 then p_cursor_at else v_last end,
    'nextAt', v_next, 'isEnded', v_next is null, 'isComplete', v_count = 0 or v_next is null or v_next > p_now);
end
$holdfast$;
`;

/** One member of every element of a JSON array, in its order. */
const column = (array: string, expression: string) =>
  `array(select ${expression} from jsonb_array_elements(${array}) with ordinality e (value, place) order by e.place)`;
const ticks = (expression: string) => column("v_plan -> 'ticks'", expression);
const runs = (expression: string) => column("v_plan -> 'runs'", expression);
const reasonPlace = `array_position(array[${quoted(REASONS)}], e.value ->> 'reason')`;
const outcomeCodes = REASONS.map((reason) => OUTCOMES.indexOf(OUTCOME_OF[reason])).join(", ");

const CLAIMED = { run: "v_run", holder: "v_no", token: "gen_random_uuid()", apart: "'{}'" };

const LIVE_RUNS = /* sql */ `
  select coalesce(jsonb_agg(jsonb_build_object('id', l.id, 'mode', (array[${quoted(MODES)}])[r.mode + 1],
    'nominalAt', r.nominal_at,
    'isGated', coalesce((select w.gate = 'schedule' from {waiting} w where w.id = l.id), false)) order by l.place), '[]')
  from unnest(v_schedule.live) with ordinality l (id, place),
    lateral (select x.mode, x.nominal_at from {run} x where x.id = l.id offset 0) r
  where (select 1 from {outcome} o where o.id = l.id) is null`;

/**
 * The schedule's row is locked throughout, so of two concurrent calls one gets the run, and the other finds it held
 * once the first has committed. It also hands out a run that a poll made and that no worker has claimed, or a run that
 * is due for a retry.
 */
export const ACQUIRE_DUE = /* sql */ `${EVALUATE_EVERY}${SKIP_PAUSED}
create function {acquire_due}(schedule text, holder text, lease_seconds double precision)
returns table (run_id uuid, fence bigint, attempt int, nominal_at timestamptz, input jsonb)
language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_name text := acquire_due.schedule;
  v_holder text := {checked_text}('holder', acquire_due.holder, 200);
  v_lease_ms bigint := (acquire_due.lease_seconds * 1000)::bigint;
  v_schedule record;
  v_definition jsonb;
  v_kind text;
  v_live jsonb;
  v_plan jsonb;
  v_opens uuid;
  v_is_due boolean;
  v_row record;
  v_now bigint;
  v_no int;
  v_fence bigint;
  v_run uuid;
  v_suspect boolean;
  v_stands boolean;
  v_resumed bigint;
begin
  if v_holder is null or v_lease_ms is null or v_lease_ms not between 1000 and 86400000 then
    raise exception 'holder and lease_seconds: give a name, and from 1 to 86400 seconds, such as 300'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  -- While everything is paused nothing fires and no run is handed out; the tick is recorded later.
  if not (${NOT_PAUSED}) then
    return;
  end if;
  -- First, because it locks leases before schedules, like every settlement.
  select s.live into v_schedule from {schedule} s where s.name = v_name;
  ${expressed(RECLAIM_RUNS, { limit: "100", chance: "random()", ids: "v_schedule.live" })} into v_row;

  select s.* into v_schedule from {schedule} s where s.name = v_name and s.deleted_at is null for update;
  if not found then
    raise exception 'There is no schedule named "%".', v_name
      using errcode = '${SQLSTATES.scheduleUnfit}', detail = 'SCHEDULE_NOT_FOUND';
  end if;
  v_definition := v_schedule.definition::jsonb;
  v_kind := v_definition -> 'when' ->> 'kind';
  if (v_definition ->> 'monitor')::boolean then
    raise exception 'The schedule "%" is a monitor: nothing runs here, it is checked in for.', v_name
      using errcode = '${SQLSTATES.scheduleUnfit}', detail = 'CONFIGURATION_INVALID',
        hint = 'Call schedules.ping(name) or POST /api/ping/:monitor instead.';
  end if;
  if v_kind not in ('grid', 'range') then
    raise exception 'The schedule "%" is no "every" schedule: SQL cannot evaluate %.', v_name,
        case v_kind when 'cron' then 'cron' else 'a single time' end
      using errcode = '${SQLSTATES.scheduleUnfit}', detail = 'CONFIGURATION_INVALID',
        hint = 'Call schedules.trigger(name, { ifDue: true }) or POST /api/schedules/:name/trigger instead.';
  end if;
  if jsonb_array_length(v_definition -> 'when' -> 'exclude') > 0
      or jsonb_array_length(v_definition -> 'when' -> 'calendars') > 0 then
    raise exception 'The schedule "%" excludes dates or has calendars: SQL cannot evaluate them.', v_name
      using errcode = '${SQLSTATES.scheduleUnfit}', detail = 'CONFIGURATION_INVALID';
  end if;
  if not exists (select from {job} j where j.name = v_schedule.job) then
    raise exception 'No instance has announced a job named "%".', v_schedule.job
      using errcode = '${SQLSTATES.jobUnknown}', detail = 'JOB_UNKNOWN';
  end if;

  for v_round in 1 .. ${ROUNDS_MAX} loop
    v_now := {now};
    v_live := (${LIVE_RUNS});
    v_is_due := coalesce(v_schedule.next_at <= v_now, false) and v_schedule.paused_at is null
      and v_schedule.broken_at is null and not v_schedule.is_ended;
    v_opens := case when (v_live -> 0 ->> 'isGated')::boolean and (v_definition ->> 'overlap' = 'allow'
        or not exists (select from jsonb_array_elements(v_live) l (run) where not (l.run ->> 'isGated')::boolean))
      then (v_live -> 0 ->> 'id')::uuid end;
    exit when not v_is_due and v_opens is null;
    -- Ticks of an ended pause are skipped, with the unrecorded ones before it.
    select max(z.until_at) into v_resumed from {pause} z where z.until_at > v_schedule.next_at and z.at <= v_now;
    v_plan := case when v_is_due and v_resumed is not null then {skip_paused}(v_definition, v_schedule.anchor_at,
        v_schedule.cursor_at, v_schedule.next_at, v_live, v_resumed, v_now)
      when v_is_due then {evaluate_every}(v_definition, v_schedule.anchor_at, v_schedule.cursor_at,
        v_schedule.next_at, v_schedule.hold_until, v_schedule.hold_run, v_live, v_now)
      else jsonb_build_object('ticks', '[]'::jsonb, 'runs', '[]'::jsonb, 'live', v_live, 'hasReplaced', false,
        'cursorAt', v_schedule.cursor_at, 'nextAt', v_schedule.next_at, 'isEnded', v_schedule.is_ended,
        'isComplete', true) end;
    ${expressed(ADVANCE_SCHEDULES, {
      ids: "array[v_schedule.id]",
      revisions: "array[v_schedule.revision]",
      cursors: "array[(v_plan ->> 'cursorAt')::bigint]",
      nexts: "array[(v_plan ->> 'nextAt')::bigint]",
      ends: "array[(v_plan ->> 'isEnded')::boolean]",
      holds: "array[v_schedule.hold_until]",
      holdRuns: "array[v_schedule.hold_run]",
      lastRuns: "array[coalesce((v_plan -> 'runs' -> -1 ->> 'id')::uuid, v_schedule.last_run)]",
      lastTicks:
        "array[coalesce((v_plan -> 'runs' -> -1 ->> 'nominalAt')::bigint, v_schedule.last_tick_at)]",
      lives: `array[${column("v_plan -> 'live'", "(e.value ->> 'id')::uuid")}::text]`,
      gates:
        "array[exists (select from jsonb_array_elements(v_plan -> 'live') l (run) where (l.run ->> 'isGated')::boolean and (l.run ->> 'id')::uuid is distinct from v_opens)]",
      replacings: "array[v_schedule.is_replacing or (v_plan ->> 'hasReplaced')::boolean]",
      tzdatas: "array[v_schedule.tzdata]",
      holder: "null",
      tickSchedules: ticks("v_schedule.id"),
      tickFirsts: ticks("(e.value ->> 'firstAt')::bigint"),
      tickLasts: ticks("(e.value ->> 'lastAt')::bigint"),
      tickCounts: ticks("(e.value ->> 'count')::int"),
      tickOutcomes: ticks(`(array[${outcomeCodes}])[${reasonPlace}]`),
      tickReasons: ticks(`${reasonPlace} - 1`),
      tickRuns: ticks("(e.value ->> 'run')::uuid"),
      tickEvidence: ticks("e.value ->> 'evidence'"),
      runSchedules: runs("v_schedule.id"),
      runIds: runs("(e.value ->> 'id')::uuid"),
      runModes: runs(String(MODES.indexOf("scheduled"))),
      runNominals: runs("(e.value ->> 'nominalAt')::bigint"),
      runGates: runs("(e.value ->> 'isGated')::boolean"),
      runInputs: runs("null::text"),
      cadenced: runs("v_schedule.id"),
      runTraces: runs("null::text"),
      openSchedules: "case when v_opens is null then '{}' else array[v_schedule.id] end",
      openRuns: "case when v_opens is null then '{}' else array[v_opens] end",
      channel: "null",
    })} into v_row;
    select s.* into v_schedule from {schedule} s where s.id = v_schedule.id;
    exit when (v_plan ->> 'isComplete')::boolean;
  end loop;

  -- A run that waits to be tried again may be due by now.
  ${expressed(PROMOTE_RUNS, { ids: "v_schedule.live", limit: String(PROMOTE_MAX) })} into v_row;
  select l.id, y.suspect, y.stands into v_run, v_suspect, v_stands
  from unnest(v_schedule.live) with ordinality l (id, place),
    lateral (
      select r.lane, r.suspect, false as stands from {ready} r where r.id = l.id
      union all
      select w.lane, w.suspect, true from {waiting} w where w.id = l.id and w.gate = 'flow' offset 0) y,
    lateral (select x.queue from {lane} x where x.id = y.lane offset 0) x
  where not exists (select from {queue} q where q.name = x.queue and q.paused_at is not null)
  order by l.place limit 1;
  if not found then
    return;
  end if;
  ${expressed(render(ANNOUNCE_REMOTE, "postgres"), {
    instanceId: "v_holder",
    by: "'sql'",
    works: "'[]'",
    queues: "null",
    pollMs: "0",
  })} into v_no;
  if v_no is null then
    raise exception 'holder: a live instance is named "%"; give another name', v_holder
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'INSTANCE_TAKEN';
  end if;
  if v_stands then
    ${expressed(CLAIM_LIMITED_RUN, {
      ...CLAIMED,
      jobs: "array[v_schedule.job]",
      queues: "null",
      limit: "1",
      suspect: "v_suspect",
    })} into v_fence;
  else
    ${expressed(CLAIM_RUN, CLAIMED)} into v_fence;
  end if;
  if v_fence is null then
    return;
  end if;
  -- The caller's lease instead of the job's; the caller begins the run at once.
  update {lease} k set until = least(k.claimed_at + v_lease_ms, k.deadline_at + 5000), started = k.ids
  where k.fence = v_fence;
  return query select v_run, v_fence, k.attempt::int, to_timestamp(r.nominal_at / 1000.0), r.input::jsonb
    from {lease} k, {run} r where k.fence = v_fence and r.id = v_run;
end
$holdfast$;
`;
