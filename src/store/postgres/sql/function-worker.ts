// The functions for workers that speak only SQL, or PostgREST: `claim`, `heartbeat` and `record_item`. A run that was
// claimed here is ended by `complete` and `fail`, and is reclaimed like any other when its lease runs out.

import { FAILED_OUTCOME, OK_OUTCOME, OUTCOMES_MAX } from "../../../runs/rules/item.js";
import { BUILT_IN_JOBS } from "../../../runs/rules/job.js";
import { JSON_DEPTH_MAX } from "../../../shared/json.js";
import { KEY_LENGTH_MAX, NAME_LENGTH_MAX } from "../../../shared/names.js";
import { ANNOUNCE_REMOTE } from "../../instances.js";
import { LOCAL_JOBS } from "../../jobs.js";
import { render } from "../../sql/dialect.js";
import { expressed } from "../../sql/template.js";
import { STORE_ITEMS } from "../items.js";
import { RECLAIM } from "../leases.js";
import { LINE_UP, PROMOTE_OF_JOBS } from "../poll.js";
import { CLAIM_LIMITED_OF_JOBS, CLAIM_OF_JOBS } from "./exchange.js";
import { DEFINED, SQLSTATES } from "./function-parts.js";

const CLAIMS_MAX = 1_000;
const JOBS_MAX = 1_000;
const PROMOTE_MAX = 1_000;
const ITEM_BYTES_MAX = 1_048_576;

const CLAIMED = {
  jobs: "v_jobs",
  queues: "null",
  holder: "v_no",
  token: "v_token",
  // A lease for each run: they are renewed and ended one by one.
  apart: "v_jobs",
};

/**
 * As a worker over HTTP, a role that may call this gets no runs of jobs that an instance executes or sends to a target, nor of the
 * built-in ones. No instance needs to be there: what is due by now is made ready, and runs of silent holders are reclaimed
 * first.
 */
const CLAIM = /* sql */ `
create function {claim}(jobs text[], holder text, max_runs int default 1)
returns table (run_id uuid, job text, fence bigint, attempt int, nominal_at timestamptz, input jsonb, lease_until timestamptz)
language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_holder text := {checked_text}('holder', claim.holder, 200);
  v_token uuid := gen_random_uuid();
  v_unknown text;
  v_local text;
  v_limited boolean;
  v_row record;
  v_no int;
  v_left int := claim.max_runs;
  v_jobs text[] := array(select distinct n.name from unnest(claim.jobs) n (name));
begin
  if v_holder is null or v_left is null or v_left not between 1 and ${CLAIMS_MAX}
      or cardinality(v_jobs) not between 1 and ${JOBS_MAX} or array_position(v_jobs, null) is not null then
    raise exception 'jobs, holder and max_runs: give names of up to ${JOBS_MAX} jobs, a name, and from 1 to ${CLAIMS_MAX} runs'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  select n.name into v_unknown from unnest(v_jobs) n (name)
  where not exists (select from {job} j where j.name = n.name) limit 1;
  if found then
    raise exception 'No instance has announced a job named "%".', v_unknown
      using errcode = '${SQLSTATES.jobUnknown}', detail = 'JOB_UNKNOWN';
  end if;
  select n.name into v_local from unnest(v_jobs) n (name)
  where n.name in (${BUILT_IN_JOBS.map((job) => `'${job}'`).join(", ")})
    or n.name in (${expressed(render(LOCAL_JOBS, "postgres"), { names: "v_jobs" })}) limit 1;
  if found then
    raise exception 'The job "%" is executed, or sent to a target, by an instance: its runs cannot be claimed.', v_local
      using errcode = '${SQLSTATES.jobNotRemote}', detail = 'JOB_NOT_REMOTE', hint = 'Declare the job without run and worker.';
  end if;
  ${expressed(render(ANNOUNCE_REMOTE, "postgres"), {
    instanceId: "v_holder",
    by: "'sql'",
    works: "array_to_json(v_jobs)::text",
    queues: "null",
    pollMs: "300000",
  })} into v_no;
  if v_no is null then
    raise exception 'holder: a live instance is named "%"; give another name', v_holder
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'INSTANCE_TAKEN';
  end if;
  select exists (select from {job} j where j.name = any(v_jobs)
    and (j.concurrency_limit is not null or j.rate_limit is not null)) into v_limited;
  ${expressed(RECLAIM, { limit: "100", chance: "random()" })} into v_row;
  ${expressed(PROMOTE_OF_JOBS, { jobs: "v_jobs", limit: String(PROMOTE_MAX) })} into v_row;
  if v_limited then
    ${expressed(LINE_UP, { limit: String(PROMOTE_MAX) })} into v_row;
  end if;
  -- Suspects, which ended their processes before, come one at a time and last.
  for v_suspect in 0 .. 1 loop
    exit when v_suspect = 1 and v_left < claim.max_runs;
    if v_suspect = 1 then v_left := 1; end if;
    for v_row in ${expressed(CLAIM_OF_JOBS, {
      ...CLAIMED,
      limit: "v_left",
      suspect: "v_suspect = 1",
      low: "-9223372036854775808",
      isNamed: "false",
    })} loop
      v_left := v_left - 1;
    end loop;
    if v_limited and v_left > 0 then
      for v_row in ${expressed(CLAIM_LIMITED_OF_JOBS, {
        ...CLAIMED,
        limit: "v_left",
        suspect: "v_suspect = 1",
      })} loop
        v_left := v_left - 1;
      end loop;
    end if;
  end loop;
  -- The caller begins these runs at once.
  update {lease} k set started = k.ids where k.holder = v_no and k.token = v_token;
  return query
    select k.ids[1], l.job, k.fence, k.attempt::int, to_timestamp(r.nominal_at / 1000.0), r.input::jsonb,
      to_timestamp(k.until / 1000.0)
    from {lease} k join {lane} l on l.id = k.lane,
      lateral (select x.nominal_at, x.input from {run} x where x.id = k.ids[1] offset 0) r
    where k.holder = v_no and k.token = v_token order by k.fence;
end
$holdfast$;
`;

const HEARTBEAT = /* sql */ `
create function {heartbeat}(run_id uuid, fence bigint)
returns boolean language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_goes_on boolean;
begin
  -- Never shorter than it is: acquire_due gives a lease of the caller's own length.
  update {lease} k
  set renewed_at = n.at, until = greatest(k.until, least(n.at + p.lease_ms, k.deadline_at + 5000))
  from {policy} p, (select {now} as at offset 0) n
  where k.fence = heartbeat.fence and heartbeat.run_id = any(k.ids) and p.id = k.policy
  returning not coalesce(k.cancels ? heartbeat.run_id::text, false) into v_goes_on;
  if not found then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', heartbeat.run_id, heartbeat.fence
      using errcode = '${SQLSTATES.leaseLost}', detail = 'LEASE_LOST';
  end if;
  return v_goes_on;
end
$holdfast$;
`;

const RECORD_ITEM = /* sql */ `
create function {record_item}(
  run_id uuid, fence bigint, key text, value jsonb default 'null', outcome text default '${OK_OUTCOME}',
  duration_ms bigint default 0, error text default null)
returns boolean language plpgsql volatile ${DEFINED} as $holdfast$
#variable_conflict use_column
declare
  v_key text := {checked_text}('key', record_item.key, ${KEY_LENGTH_MAX});
  v_outcome text := {checked_text}('outcome', record_item.outcome, ${NAME_LENGTH_MAX});
  v_value text := coalesce(record_item.value, 'null')::text;
  v_error text;
  v_row record;
  v_stored record;
begin
  if v_key is null or v_outcome is null or record_item.duration_ms is null or record_item.duration_ms < 0 then
    raise exception 'key, outcome and duration_ms: give two texts, and a number from 0'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if record_item.error is not null then
    v_outcome := '${FAILED_OUTCOME}';
    v_error := json_build_object('code', 'ERROR', 'name', 'Error', 'message', left(record_item.error, 8192))::text;
    v_value := null;
  elsif v_outcome = '${FAILED_OUTCOME}' then
    raise exception 'outcome: "${FAILED_OUTCOME}" counts items with an error; give the parameter error as well'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  if octet_length(v_value) > ${ITEM_BYTES_MAX} or {json_depth}(coalesce(v_value, '')) > ${JSON_DEPTH_MAX} then
    raise exception 'value: has more than ${ITEM_BYTES_MAX} bytes of JSON or more than ${JSON_DEPTH_MAX} levels'
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'ITEM_TOO_LARGE';
  end if;
  if v_outcome not in ('${OK_OUTCOME}', '${FAILED_OUTCOME}') and (select count(*) from {item_count} c
      where c.run = record_item.run_id and c.outcome not in ('${OK_OUTCOME}', '${FAILED_OUTCOME}', v_outcome)) >= ${OUTCOMES_MAX} then
    raise exception 'outcome: the items of run % have ${OUTCOMES_MAX} outcomes already', record_item.run_id
      using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
  end if;
  ${expressed(STORE_ITEMS, {
    ids: "array[record_item.run_id]",
    fences: "array[record_item.fence]",
    keys: "array[v_key]",
    outcomes: "array[v_outcome]",
    durations: "array[record_item.duration_ms]",
    values: "array[v_value]",
    errors: "array[v_error]",
  })} into v_row;
  if not v_row.is_held then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', record_item.run_id, record_item.fence
      using errcode = '${SQLSTATES.leaseLost}', detail = 'LEASE_LOST';
  end if;
  if v_row.stored = 1 then
    return true;
  end if;
  -- It was done before, maybe by this very call, whose answer was lost: the first value stays.
  select i.value into v_stored from {item} i where i.run = record_item.run_id and i.key = v_key;
  if v_error is null and v_stored.value::jsonb is distinct from v_value::jsonb then
    raise exception 'The item "%" of run % was done before, with another value; nothing was changed.', v_key, record_item.run_id
      using errcode = '${SQLSTATES.resultConflict}', detail = 'ITEM_CONFLICT';
  end if;
  return false;
end
$holdfast$;
`;

/**
 * Functions of the same names, with `holdfast_` before them, in a schema that an API serves, such as `public` on Supabase.
 * They run with the rights of the role that makes them, and no other role may call them until it is granted.
 */
const EXPOSE = /* sql */ `
create function {expose_functions}(into_schema text)
returns setof text language plpgsql volatile set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_function record;
  v_role record;
  v_name text;
  v_is_new boolean;
begin
  for v_function in
    select p.proname, p.pronargs, n.nspname, pg_get_function_arguments(p.oid) as arguments,
      pg_get_function_identity_arguments(p.oid) as identity,
      oidvectortypes(p.proargtypes) as types, pg_get_function_result(p.oid) as result
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.oid = any(array['{enqueue}', '{acquire_due}', '{claim}', '{heartbeat}', '{record_item}',
      '{complete}', '{fail}', '{send_signal}', '{cleanup_stale_runs}']::regproc[]::oid[])
    order by p.proname
  loop
    v_name := format('%I.%I', into_schema, 'holdfast_' || v_function.proname);
    v_is_new := to_regprocedure(format('%s(%s)', v_name, v_function.types)) is null;
    execute format(
      'create or replace function %s(%s) returns %s language sql volatile security definer
       set search_path = pg_catalog, pg_temp as %L',
      v_name, v_function.arguments, v_function.result,
      format('select * from %I.%I(%s)', v_function.nspname, v_function.proname,
        (select string_agg('$' || n, ', ') from generate_series(1, v_function.pronargs) n)));
    execute format('revoke all on function %s(%s) from public', v_name, v_function.identity);
    -- Default privileges of a schema may grant new functions to roles, as Supabase does to anon: later grants stay.
    for v_role in
      select distinct a.grantee::regrole::text as name
      from pg_proc p, aclexplode(p.proacl) a
      where v_is_new and p.oid = to_regprocedure(format('%s(%s)', v_name, v_function.types))
        and a.grantee not in (0, p.proowner)
    loop
      execute format('revoke all on function %s(%s) from %s', v_name, v_function.identity, v_role.name);
    end loop;
    return next v_name;
  end loop;
end
$holdfast$;
`;

export const WORKER_FUNCTIONS = CLAIM + HEARTBEAT + RECORD_ITEM + EXPOSE;
