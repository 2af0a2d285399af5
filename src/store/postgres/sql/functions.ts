// The SQL functions on PostgreSQL, for triggers, pg_cron and other languages. They run the engine's own statements with
// expressions in place of its parameters, so that every caller stores, settles and retries a run the same way. Created
// with the schema; no role may call them until it is granted.

import { MODES } from "../../../runs/rules/run.js";
import { INPUT_BYTES_MAX, JSON_DEPTH_MAX, RESULT_BYTES_MAX } from "../../../shared/json.js";
import {
  KEY_LENGTH_MAX,
  NAME_LENGTH_MAX,
  PRIORITY_MAX,
  TAG_COUNT_MAX,
} from "../../../shared/names.js";
import { TRACE_TAG } from "../../../shared/trace-context.js";
import { NEVER_MS } from "../../schema/waits.js";
import { SEND_SIGNAL } from "../../signals.js";
import { expressed } from "../../sql/template.js";
import { CREATE_IN_OWN_PATH } from "../connection/pinned.js";
import { EXPIRE_STALE, RECLAIM } from "../leases.js";
import { DAY_COLUMN, DAY_FUNCTIONS } from "./days.js";
import {
  ENQUEUE,
  ENQUEUE_KEYED,
  ENQUEUE_LISTS,
  KEY_HOLDERS,
  STORE_RUNS_LATER,
  TAKE_KEYS,
} from "./enqueue.js";
import { SETTLE } from "./exchange.js";
import { ACQUIRE_DUE } from "./function-due.js";
import { DEFINED, PARTS, SQLSTATES } from "./function-parts.js";
import { WORKER_FUNCTIONS } from "./function-worker.js";

const PREVIEW_LENGTH = 1_024;
const MESSAGE_LENGTH_MAX = 8 * 1_024;
const CLEANUP_BATCH = 100;
const CLEANUP_ROUNDS_MAX = 20;

/** The role that called a function which runs with the owner's rights. */
const CALLER = "coalesce(nullif(current_setting('role'), 'none'), session_user)::name";

/** The caller's transaction may stay open for long: it does not touch the flows of limits. */
const storeLimited = (channel: string) =>
  expressed(STORE_RUNS_LATER, { runs: "v_runs", channel: `'${channel}'` });

const enqueueFunction = (channel: string) => /* sql */ `
create function {enqueue}(
  job text,
  input jsonb default 'null',
  key text default null,
  at timestamptz default null,
  delay interval default null,
  priority int default null,
  queue text default null,
  tags text[] default null)
returns table (id uuid, deduplicated boolean) language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_announced record;
  v_id uuid := {new_run_id}();
  v_job text := enqueue.job;
  v_input text := coalesce(enqueue.input, 'null')::text;
  v_key text := {checked_text}('key', enqueue.key, ${KEY_LENGTH_MAX});
  v_queue text := {checked_text}('queue', enqueue.queue, ${NAME_LENGTH_MAX});
  v_hash text;
  v_tags text[];
  v_priority smallint;
  v_due_at bigint;
  v_delay_ms bigint;
  v_lane int;
  v_limited boolean;
  v_runs text;
  v_stored text;
  v_told text;
  v_place int;
  v_holder uuid;
  v_held_hash text;
begin
  select j.queue, j.priority, j.version, j.policy,
    j.concurrency_limit is not null or j.rate_limit is not null as limited
  into v_announced from {job} j where j.name = v_job;
  if not found then
    raise exception 'No instance has announced a job named "%".', v_job
      using errcode = '${SQLSTATES.jobUnknown}', detail = 'JOB_UNKNOWN',
        hint = coalesce('Known: ' || (select string_agg(n.name, ', ') from (select j.name from {job} j
            where has_table_privilege(${CALLER}, '{job}'::regclass, 'select') order by j.name limit 20) n),
          'Start an instance that declares it.');
  end if;
  if octet_length(v_input) > ${INPUT_BYTES_MAX} then
    raise exception 'input: has % bytes of JSON; the limit is ${INPUT_BYTES_MAX}', octet_length(v_input)
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'INPUT_TOO_LARGE';
  end if;
  if octet_length(v_input) > 2 * ${JSON_DEPTH_MAX} and {json_depth}(v_input) > ${JSON_DEPTH_MAX} then
    raise exception 'input: is nested deeper than ${JSON_DEPTH_MAX} levels'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'INPUT_NOT_JSON';
  end if;
  if enqueue.at not between '1970-01-01 00:00:00+00' and '9999-12-31 23:59:59.999+00' then
    raise exception 'at: must be between the years 1970 and 9999'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if enqueue.delay > interval '36525 days' then
    raise exception 'delay: must be at most 36525 days, such as interval ''5 minutes'''
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if enqueue.at is not null and enqueue.delay is not null then
    raise exception 'at and delay: exclude each other; give one of them'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  v_due_at := (extract(epoch from enqueue.at) * 1000)::bigint;
  v_delay_ms := coalesce((extract(epoch from enqueue.delay) * 1000)::bigint, 0);
  if v_delay_ms < 0 then
    raise exception 'delay: must not be negative, such as interval ''5 minutes'''
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if abs(enqueue.priority) > ${PRIORITY_MAX} then
    raise exception 'priority: must be a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX} such as 10'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if cardinality(enqueue.tags) > ${TAG_COUNT_MAX} or array_position(enqueue.tags, null) is not null then
    raise exception 'tags: must be at most ${TAG_COUNT_MAX} texts'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if exists (select from unnest(enqueue.tags) t (tag) where starts_with(t.tag, '${TRACE_TAG}')) then
    raise exception 'tags: must not begin with "${TRACE_TAG}", which is reserved for traces'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  v_tags := nullif(array(
    select {checked_text}('tags', t.tag, ${NAME_LENGTH_MAX}) from unnest(enqueue.tags) with ordinality t (tag, place)
    group by t.tag order by min(t.place)), '{}');
  v_priority := coalesce(enqueue.priority, v_announced.priority);
  v_queue := coalesce(v_queue, v_announced.queue);
  select l.id into v_lane from {lane} l where l.job = v_job and l.queue = v_queue;
  if not found then
    insert into {lane} (queue, job) values (v_queue, v_job)
    on conflict (job, queue) do update set job = excluded.job returning id into v_lane;
  end if;
  v_limited := v_announced.limited;
  if v_key is null and not v_limited then
    ${expressed(ENQUEUE, {
      ids: "array[v_id]",
      inputs: "array[v_input]",
      lane: "v_lane",
      policy: "v_announced.policy",
      version: "v_announced.version",
      priority: "v_priority",
      mode: `${MODES.indexOf("enqueued")}`,
      dueAt: "v_due_at",
      delayMs: "v_delay_ms",
      tags: "v_tags::text",
      ...Object.fromEntries(ENQUEUE_LISTS.map((list) => [list, "'{}'"])),
      channel: `'${channel}'`,
    })} into v_stored;
    return query select v_id, false;
    return;
  end if;
  v_hash := case when v_key is not null then {input_hash}(v_input::jsonb) end;
  v_runs := json_build_array(json_build_object(
    'id', v_id, 'job', v_job, 'key', v_key, 'inputHash', v_hash, 'lane', v_lane, 'policy', v_announced.policy,
    'version', v_announced.version, 'priority', v_priority, 'mode', ${MODES.indexOf("enqueued")},
    'dueAt', v_due_at, 'delayMs', v_delay_ms, 'tags', v_tags, 'input', v_input, 'isLive', false,
    -- Marks that there is a flow; its number is looked up when the run is due.
    'flow', case when v_limited then '' end));
  if v_key is null then
    ${storeLimited(channel)} into v_told;
    return query select v_id, false;
    return;
  end if;
  -- A key may vanish between the two statements: then once more.
  loop
    if v_limited then
      ${expressed(TAKE_KEYS, { runs: "v_runs" })} into v_stored;
      if v_stored is not null then
        ${storeLimited(channel)} into v_told;
      end if;
    else
      ${expressed(ENQUEUE_KEYED, { runs: "v_runs" })} into v_stored;
    end if;
    if v_stored is not null then
      perform pg_notify('${channel}', '');
      return query select v_id, false;
      return;
    end if;
    ${expressed(KEY_HOLDERS, { keys: "json_build_array(json_build_object('at', 0, 'job', v_job, 'key', v_key))" })}
      into v_place, v_holder, v_held_hash;
    if v_held_hash = v_hash then
      return query select v_holder, true;
      return;
    elsif v_held_hash is not null then
      raise exception 'The key "%" of job "%" belongs to run % with another input; nothing was stored.', v_key, v_job, v_holder
        using errcode = '${SQLSTATES.keyConflict}', detail = 'KEY_CONFLICT';
    end if;
  end loop;
end
$holdfast$;
`;

/**
 * The caller's transaction may stay open for long: it has rows of the statistics that no instance writes to, and few
 * sessions share them.
 */
const SHARD_OF_SESSION = "-2000000000 - pg_backend_pid() % 256";

/** Settles only: each column has at most one value. */
const ONE_OF_ALL = {
  fences: "'{}'",
  statuses: "'{}'",
  ends: "'{}'",
  modes: "'{}'",
  ranMs: "'{}'",
  delayMs: "'{}'",
  refunds: "'{}'",
  results: "'{}'",
  errors: "'{}'",
  schedules: "'{}'",
  batches: "'{}'",
};

// Only the fence identifies the holder. A settlement that was applied before, with its reply lost, returns the same
// again; any other is an error, so that the caller's own writes roll back too.
const SETTLING_FUNCTIONS = /* sql */ `
create function {settle_run}(
  p_run uuid, p_fence bigint, p_status int, p_delay_ms bigint, p_result text, p_error text)
returns text language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_lease record;
  v_run record;
  v_ran_ms bigint;
  v_unapplied json;
  v_ended record;
begin
  select k.claimed_at into v_lease from {lease} k where k.fence = p_fence and p_run = any(k.ids) for update;
  if found then
    select r.mode, r.schedule, r.batch into v_run from {run} r where r.id = p_run;
    v_ran_ms := greatest({now} - v_lease.claimed_at, 0);
    ${expressed(SETTLE, {
      ids: "array[p_run]",
      ...ONE_OF_ALL,
      fence: "p_fence",
      status: "p_status",
      end: "0",
      mode: "v_run.mode",
      ranAllMs: "v_ran_ms",
      delayAllMs: "p_delay_ms",
      refund: "0",
      result: "p_result",
      error: "p_error",
      schedule: "v_run.schedule",
      batch: "v_run.batch",
      shard: SHARD_OF_SESSION,
      chance: "random()",
      isLastBeforeCommit: "false",
    })} into v_unapplied;
  end if;
  select e.status, e.result into v_ended from (
    select case o.status when 1 then 'completed' when 2 then 'failed' else 'cancelled' end as status,
      o.status = 1 as is_complete, o.error, o.result
    from {outcome} o where o.id = p_run and o.fence = p_fence
    union all
    select 'pending', false, a.error, null from {attempt} a where a.run = p_run and a.fence = p_fence
  ) e where e.is_complete = (p_status = 1) and e.error is not distinct from p_error;
  if not found then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', p_run, p_fence
      using errcode = '${SQLSTATES.leaseLost}', detail = 'LEASE_LOST';
  end if;
  if p_status = 1 and coalesce(v_ended.result, 'null')::jsonb <> coalesce(p_result, 'null')::jsonb then
    raise exception 'Run % was completed under fence % with another result; nothing was changed.', p_run, p_fence
      using errcode = '${SQLSTATES.resultConflict}', detail = 'RESULT_CONFLICT';
  end if;
  return v_ended.status;
end
$holdfast$;

create function {complete}(run_id uuid, fence bigint, result jsonb default 'null')
returns text language plpgsql volatile ${DEFINED} as $holdfast$
declare
  v_result text := coalesce(complete.result, 'null')::text;
begin
  if octet_length(v_result) > ${RESULT_BYTES_MAX} or {json_depth}(v_result) > ${JSON_DEPTH_MAX} then
    v_result := json_build_object('$truncated', true, 'bytes', octet_length(v_result),
      'preview', left(v_result, ${PREVIEW_LENGTH}) || '…');
  end if;
  return {settle_run}(complete.run_id, complete.fence, 1, 0, v_result, null);
end
$holdfast$;

create function {fail}(run_id uuid, fence bigint, message text default null)
returns text language plpgsql volatile ${DEFINED} as $holdfast$
declare
  v_error text := json_build_object('code', 'ERROR', 'name', 'Error',
    'message', left(coalesce(nullif(fail.message, ''), 'Error'), ${MESSAGE_LENGTH_MAX}));
  v_policy record;
  v_delay_ms bigint := 0;
  v_status int := 2;
begin
  select k.attempt, p.attempts + k.extra as attempts, p.delay_ms, p.factor, p.max_ms, p.jitter into v_policy
  from {lease} k join {policy} p on p.id = k.policy where k.fence = fail.fence for update of k;
  if found and v_policy.attempt < v_policy.attempts then
    v_status := -1;
    v_delay_ms := round(least(v_policy.max_ms,
        v_policy.delay_ms * exp(least((v_policy.attempt - 1) * ln(v_policy.factor), 50)))
      * (1 - v_policy.jitter * random()));
  end if;
  return {settle_run}(fail.run_id, fail.fence, v_status, v_delay_ms, null, v_error);
end
$holdfast$;
`;

// Ends runs whose holder was silent or took too long, each by its own policy. A role that may call only this function
// cannot take a run from a living holder: a run's own lease and timeout are the minimum. A pass is bounded, and so is
// the work of one call in the caller's transaction.
const cleanupFunction = (channel: string) => /* sql */ `
create function {cleanup_stale_runs}(
  timeout_seconds double precision default 7200,
  heartbeat_timeout_seconds double precision default 600)
returns table (run_id uuid, job text, attempt int, holder text, reason text, status text)
language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_row record;
  v_count int;
  v_total int := 0;
begin
  if cleanup_stale_runs.timeout_seconds is null or cleanup_stale_runs.timeout_seconds < 0
      or cleanup_stale_runs.heartbeat_timeout_seconds is null or cleanup_stale_runs.heartbeat_timeout_seconds < 0 then
    raise exception 'timeout_seconds and heartbeat_timeout_seconds: must be numbers from 0, such as 7200 and 600'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  ${expressed(EXPIRE_STALE, {
    silentMs: "cleanup_stale_runs.heartbeat_timeout_seconds * 1000",
    ranMs: "cleanup_stale_runs.timeout_seconds * 1000",
    respectsLeases: "true",
  })} into v_count;
  for v_round in 1 .. ${CLEANUP_ROUNDS_MAX} loop
    v_count := 0;
    for v_row in ${expressed(RECLAIM, { limit: String(CLEANUP_BATCH), chance: "random()" })} loop
      v_count := v_count + 1;
      run_id := v_row.id;
      job := v_row.job;
      attempt := v_row.attempt;
      holder := v_row.holder;
      reason := case v_row.ended when 2 then 'timeout' else 'silent' end;
      status := case v_row.verdict when 2 then 'failed' when 3 then 'cancelled' else 'pending' end;
      return next;
    end loop;
    v_total := v_total + v_count;
    exit when v_count < ${CLEANUP_BATCH};
  end loop;
  if v_total > 0 then
    perform pg_notify('${channel}', '');
  end if;
end
$holdfast$;
`;

/**
 * The first value counts until retention removes it: a role that may call this function and nothing else replaces none. The
 * value is compared as JSON. A text that jsonb cannot hold was sent by the library, and differs from every value of SQL.
 */
const signalFunction = (channel: string) => /* sql */ `
create function {send_signal}(name text, key text, value jsonb default 'null')
returns table (repeated boolean) language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_name text := {checked_text}('name', send_signal.name, ${NAME_LENGTH_MAX});
  v_key text := {checked_text}('key', send_signal.key, ${KEY_LENGTH_MAX});
  v_value text := coalesce(send_signal.value, 'null')::text;
  v_stored text;
  v_found record;
  v_equal boolean := false;
begin
  if v_name is null or v_key is null then
    raise exception 'name and key: must be texts, such as ''export-ready'' and ''export-7'''
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if octet_length(v_value) > ${INPUT_BYTES_MAX} then
    raise exception 'value: has % bytes of JSON; the limit is ${INPUT_BYTES_MAX}', octet_length(v_value)
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'INPUT_TOO_LARGE';
  end if;
  if octet_length(v_value) > 2 * ${JSON_DEPTH_MAX} and {json_depth}(v_value) > ${JSON_DEPTH_MAX} then
    raise exception 'value: is nested deeper than ${JSON_DEPTH_MAX} levels'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'INPUT_NOT_JSON';
  end if;
  -- The stored one may be removed between the two statements: then once more.
  loop
    ${expressed(SEND_SIGNAL.add, {
      name: "v_name",
      key: "v_key",
      value: "v_value",
      keepMs: String(NEVER_MS),
    })} into v_stored;
    if v_stored is not null then
      perform pg_notify('${channel}', '');
      return query select false;
      return;
    end if;
    ${expressed(SEND_SIGNAL.find, { name: "v_name", key: "v_key" })} into v_found;
    exit when found;
  end loop;
  begin
    v_equal := {input_hash}(v_found.value::jsonb) = {input_hash}(v_value::jsonb);
  exception when untranslatable_character or invalid_text_representation then
    null;
  end;
  if not v_equal then
    raise exception 'The signal "%" with the key "%" was sent with another value before, which counts; nothing was stored.',
      v_name, v_key using errcode = '${SQLSTATES.signalConflict}', detail = 'SIGNAL_CONFLICT';
  end if;
  return query select true;
end
$holdfast$;
`;

const NAMES = [
  "new_run_id()",
  "checked_text(text, text, int)",
  "json_depth(text)",
  "canonical_json(jsonb)",
  "input_hash(jsonb)",
  "enqueue(text, jsonb, text, timestamptz, interval, int, text, text[])",
  "settle_run(uuid, bigint, int, bigint, text, text)",
  "complete(uuid, bigint, jsonb)",
  "fail(uuid, bigint, text)",
  "skip_paused(jsonb, bigint, bigint, bigint, jsonb, bigint, bigint)",
  "evaluate_every(jsonb, bigint, bigint, bigint, bigint, uuid, jsonb, bigint)",
  "acquire_due(text, text, double precision)",
  "cleanup_stale_runs(double precision, double precision)",
  "send_signal(text, text, jsonb)",
  "claim(text[], text, int)",
  "heartbeat(uuid, bigint)",
  "record_item(uuid, bigint, text, jsonb, text, bigint, text)",
  "expose_functions(text)",
  "day_column(text)",
  "day_bound(text, int)",
  "make_day(text, int)",
  "drop_day(text, int, bigint, text, boolean)",
  "thin_day(int, bigint)",
];

/** `channel`: the channel that waiting workers listen to. */
export function createFunctions(channel: string): string {
  const revokes = NAMES.map((name) => {
    const [plain, parameters] = name.split("(", 2);
    return `revoke all on function {${plain}}(${parameters} from public;`;
  });
  return [
    PARTS,
    CREATE_IN_OWN_PATH,
    DAY_COLUMN,
    DAY_FUNCTIONS,
    enqueueFunction(channel),
    SETTLING_FUNCTIONS,
    ACQUIRE_DUE,
    WORKER_FUNCTIONS,
    cleanupFunction(channel),
    signalFunction(channel),
    ...revokes,
  ].join("\n");
}
