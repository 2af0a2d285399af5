// The statements that store runs on PostgreSQL: plain ones, those with keys, limited ones, and children. Instances
// cache the numbers of lanes and policies, so that a run is sent with two numbers instead of its job's texts.

import { NOT_BEGUN } from "../../rows.js";
import { FLOW_CHANGES, FLOW_KEY, FLOW_UNKNOWN, NEW_FLOWS, NOBODY_LINED } from "./limits.js";

/** The columns that only a run made by another run has. */
type Origin = { readonly columns: string; readonly values: string };
const NOBODY: Origin = { columns: "", values: "" };
const PARENT: Origin = { columns: ", parent, batch", values: ", :parent::uuid, :batch::int" };

/**
 * Instances cache the numbers of lanes and policies. A failover to a standby that was behind may have lost some of
 * them: such a number becomes null, which is refused, and the instance reads the numbers again. A caller's transaction
 * that sees an older state of the tables cannot detect this, and its numbers are accepted.
 */
const BELIEVED = "current_setting('transaction_isolation') <> 'read committed'";
const NUMBERS_IF_KNOWN = `coalesce(kl.id, case when ${BELIEVED} then i.lane end),
    coalesce(kp.id, case when ${BELIEVED} then i.policy end)`;
const KNOWN_NUMBERS =
  "left join {lane} kl on kl.id = i.lane left join {policy} kp on kp.id = i.policy";

/** A stored run (`stored`) waits for its time, or is ready. */
const PLACED = /* sql */ `
delayed as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at, s.lane, s.policy, s.priority, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at > now.at
),
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at - s.priority * 60000, s.lane, s.policy, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at <= now.at
)`;

// Runs of one call mostly differ only in id and input. A value that they all share is sent once, beside an empty array:
// the server then looks up one lane and one policy instead of two for each run, which saves a third of the time.
const enqueueRuns = (onConflict: string, origin: Origin) => /* sql */ `
with now as materialized (select {now} as at),
shared as materialized (
  select now.at, (select k.id from {lane} k where k.id = :lane::int) as lane,
    (select k.id from {policy} k where k.id = :policy::int) as policy, ${BELIEVED} as is_believed
  from now
),
stored as (
  insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, tags, input${origin.columns})
  select i.id, c.at, coalesce(i."dueAt", :dueAt::bigint, c.at + coalesce(i."delayMs", :delayMs::bigint)),
    coalesce(c.lane, kl.id, case when c.is_believed then coalesce(i.lane, :lane::int) end),
    coalesce(c.policy, kp.id, case when c.is_believed then coalesce(i.policy, :policy::int) end),
    coalesce(i.version, :version::int), coalesce(i.priority, :priority::smallint), coalesce(i.mode, :mode::smallint),
    coalesce(i.tags, :tags::text)::text[], i.input${origin.values}
  from unnest(:ids::uuid[], :lanes::int[], :policies::int[], :versions::int[], :priorities::smallint[],
      :modes::smallint[], :dueAts::bigint[], :delays::bigint[], :tagLists::text[], :inputs::text[])
    as i (id, lane, policy, version, priority, mode, "dueAt", "delayMs", tags, input)
    cross join shared c
    left join {lane} kl on :lane::int is null and kl.id = i.lane
    left join {policy} kp on :policy::int is null and kp.id = i.policy ${onConflict}
  returning id, due_at, lane, policy, priority
),
${PLACED}
select pg_notify(:channel::text, '')::text as told where :channel::text is not null`;

// The commit itself notifies other instances: a waiting worker gets the run when the caller gets its reply. There is no
// conflict clause: an id is made once, so a duplicate means that a statement was committed before and its reply was
// lost; then the second form finds the missing runs. Without the clause the statement is a fifth faster.
export const ENQUEUE = enqueueRuns("", NOBODY);
/** Empty if the runs of a call share the value. */
export const ENQUEUE_LISTS =
  "lanes policies versions priorities modes dueAts delays tagLists".split(" ");
export const ENQUEUE_MISSING = enqueueRuns("on conflict (id) do nothing", NOBODY);
export const ENQUEUE_CHILDREN = enqueueRuns("on conflict (id) do nothing", PARENT);

// Takes over keys that have expired, or that lasted only while their run was live. The rows of taken keys are locked
// too.
const TAKING_KEYS = /* sql */ `
won as (
  insert into {key} as k (job, key, run, input_hash, expires_at, is_live)
  select i.job, i.key, i.id, i."inputHash", now.at + i."lastsMs", i."isLive" from input i cross join now
  order by i.job collate "C", i.key collate "C"
  on conflict (job, key) do update set run = excluded.run, input_hash = excluded.input_hash,
      expires_at = excluded.expires_at, is_live = excluded.is_live
    where k.expires_at <= (select at from now)
      or (k.is_live and exists (select from {outcome} o where o.id = k.run))
  returning run
)`;

// Keys are inserted in sorted order, so that two batches cannot deadlock. A run is stored only if its key was free;
// otherwise the next statement reads whose key it is.
const enqueueKeyed = (origin: Origin) => /* sql */ `
with now as materialized (select {now} as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, "inputHash" text, lane int, policy int, version int,
    priority smallint, mode smallint, "dueAt" bigint, "delayMs" bigint, tags text[], input text,
    "lastsMs" bigint, "isLive" boolean)
),
${TAKING_KEYS},
stored as (
  insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input${origin.columns})
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), ${NUMBERS_IF_KNOWN}, i.version, i.priority,
    i.mode, i.key, i.tags, i.input${origin.values}
  from won w join input i on i.id = w.run cross join now ${KNOWN_NUMBERS} on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),
${PLACED}
select id from stored`;
export const ENQUEUE_KEYED = enqueueKeyed(NOBODY);
export const ENQUEUE_KEYED_CHILDREN = enqueueKeyed(PARENT);

// Keys that replace or postpone need one transaction: it locks the keys in sorted order, takes pending runs out of
// their tables, and stores the new ones last.
export const TAKE_KEYS = /* sql */ `
with now as materialized (select {now} as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, "inputHash" text, "lastsMs" bigint, "isLive" boolean)
),
${TAKING_KEYS}
select run from won`;

/** Assigns keys to other runs, or to the same run with another input. */
export const PASS_KEYS = /* sql */ `
update {key} k set run = i.id, input_hash = i."inputHash",
  expires_at = case when i."isNew" then {now} + i."lastsMs" else k.expires_at end,
  is_live = case when i."isNew" then i."isLive" else k.is_live end
from json_to_recordset(:keys::json) as i (
  id uuid, job text, key text, "inputHash" text, "lastsMs" bigint, "isLive" boolean, "isNew" boolean)
where k.job = i.job and k.key = i.key returning k.run`;

/** Runs that have not begun leave their tables; limited ones return their capacity. */
export const PULL_PENDING = /* sql */ `
with now as materialized (select {now} as at),
from_ready as (
  delete from {ready} where id = any(:ids::uuid[]) and ${NOT_BEGUN} returning id, limited
),
from_waiting as (
  delete from {waiting} where id = any(:ids::uuid[]) and ${NOT_BEGUN} and (gate is null or gate = 'flow') returning id, flow
),
pulled as materialized (
  select r.id, y.flow from from_ready r
  left join lateral (select x.flow from {flow_run} x where r.limited and x.run = r.id offset 0) y on true
  union all
  select w.id, w.flow from from_waiting w
),
leaving as materialized (select id as run from from_ready where limited),
${NOBODY_LINED},
${FLOW_CHANGES}
select p.id, case when p.flow = ${FLOW_UNKNOWN} then (
    select ${FLOW_KEY("r.input")} from {run} r join {lane} l on l.id = r.lane left join {job} j on j.name = l.job
    where r.id = p.id)
  else (select f.key from {flow} f where f.id = p.flow) end as flow
from pulled p`;

/** Of these runs, those that have not begun: a run that was moving between two tables is tried again. */
export const UNBEGUN = /* sql */ `
select id from {ready} where id = any(:ids::uuid[]) and ${NOT_BEGUN}
union all
select id from {waiting} where id = any(:ids::uuid[]) and ${NOT_BEGUN}`;

/** Moves stored runs (`stored`: id, due_at, lane, policy, priority) to their tables. */
const PLACING = /* sql */ `
placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.job, i.flow as flow_key
  from stored s join input i on i.id = s.id
),
newcomers as materialized (
  select p.job, p.flow_key as key, p.lane, p.due_at <= now.at as lined from placed p cross join now
  where p.flow_key is not null
),
${NEW_FLOWS},
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and p.flow_key is null
),
delayed as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.flow_key is not null and p.due_at <= now.at then 'flow' end, f.id
  from placed p left join flows f on f.job = p.job and f.key = p.flow_key cross join now
  where p.due_at > now.at or p.flow_key is not null
)`;

/**
 * The same without touching the flows, for transactions that stay open: otherwise a settlement of a run of the flow
 * would wait for their commit. A limited run waits for its time, and joins its line when that has come.
 */
const PLACING_LATER = /* sql */ `
placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.flow is not null as limited
  from stored s join input i on i.id = s.id
),
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and not p.limited
),
delayed as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.limited then ${FLOW_UNKNOWN} end
  from placed p cross join now where p.due_at > now.at or p.limited
)`;

/** For runs of which some are limited. */
const storeRuns = (placing: string, origin: Origin) => /* sql */ `
with now as materialized (select {now} as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, lane int, policy int, version int, priority smallint, mode smallint,
    "dueAt" bigint, "delayMs" bigint, tags text[], input text, flow text)
),
stored as (
  insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input${origin.columns})
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), ${NUMBERS_IF_KNOWN}, i.version, i.priority,
    i.mode, i.key, i.tags, i.input${origin.values}
  from input i cross join now ${KNOWN_NUMBERS} on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),
${placing}
select pg_notify(:channel::text, '')::text as told where :channel::text is not null`;
export const STORE_RUNS = storeRuns(PLACING, NOBODY);
export const STORE_RUNS_LATER = storeRuns(PLACING_LATER, NOBODY);
export const STORE_CHILDREN_LATER = storeRuns(PLACING_LATER, PARENT);

/** Runs taken out, with their new time, and their new input if they have one. */
const changeRuns = (placing: string) => /* sql */ `
with now as materialized (select {now} as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, "dueAt" bigint, "delayMs" bigint, "maxWaitMs" bigint, input text, flow text)
),
-- least() passes over null: without maxWaitMs nothing bounds the new time.
stored as (
  update {run} r set due_at = least(coalesce(i."dueAt", now.at + i."delayMs"), r.created_at + i."maxWaitMs"), input = coalesce(i.input, r.input)
  from input i cross join now where r.id = i.id
  returning r.id, r.due_at, r.lane, r.policy, r.priority
),
${placing}
select id from stored`;
export const CHANGE_RUNS = changeRuns(PLACING);
export const CHANGE_RUNS_LATER = changeRuns(PLACING_LATER);

export const KEY_HOLDERS = /* sql */ `
select i.at, k.run, k.input_hash as hash
from json_to_recordset(:keys::json) as i (at int, job text, key text),
  lateral (select x.run, x.input_hash from {key} x where x.job = i.job and x.key = i.key offset 0) k`;
