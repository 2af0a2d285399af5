// Finds out for operators why a pending run does not start.

import type { RunId } from "../../runs/rules/run.js";
import { WHOLE_JOB } from "../../worker/rules/limits.js";
import { toLimits } from "../jobs.js";
import { toGlobalPause } from "../pause.js";
import { flag, json, numberOrNull, type Row, textOrNull } from "../rows.js";
import { NEVER_MS } from "../schema/waits.js";
import type { StoreSession } from "../session.js";

/**
 * Returns no row if the run is not pending. Every run of `s.live`, and this run if it is in the list, has its position
 * there.
 */
const pendingReason = (live: { source: string; place: string; ownPlace: string }) => /* sql */ `
with now as materialized (select {now} as at),
pending as materialized (
  select r.id, r.lane, null::bigint as wake_at, null::text as gate, null::int as flow, 0 as priority,
    null::bigint as asleep_at
  from {ready} r where r.id = :id::uuid
  union all
  select w.id, w.lane, w.wake_at, w.gate, w.flow, w.priority, w.asleep_at from {waiting} w where w.id = :id::uuid
)
select now.at as now, p.wake_at, p.gate, p.asleep_at, f.key,
  case when p.asleep_at is not null then (
    select {json_array}(x.kind, x.since, x.until, x.signal, x.key, x.child) from {wait} x where x.run = p.id
    order by coalesce(x.until, ${NEVER_MS}), x.since, x.name limit 1) end as first_wait, l.queue, q.paused_at, q.pause_note,
  (select {json_array}(z.at, z.note) from {pause} z where z.until_at is null) as paused,
  j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms,
  (select count(*) from {flow_run} h where h.held = case when j.concurrency_key is null then root.id else f.id end) as held,
  (select coalesce(sum(y.runs), 0) from {flow_turn} y
    where y.flow = case when j.rate_key is null then root.id else f.id end and y.at > now.at - j.rate_per_ms) as used,
  (select min(y.at) from {flow_turn} y
    where y.flow = case when j.rate_key is null then root.id else f.id end and y.at > now.at - j.rate_per_ms) as first_at,
  (select count(*) from (
    select 1 from {waiting} w where w.flow = p.flow and w.gate = 'flow' and p.gate = 'flow'
      and (w.wake_at - w.priority * 60000::bigint, w.id) < (p.wake_at - p.priority * 60000::bigint, p.id)
    limit 1001) x) as ahead,
  p.gate = 'schedule' and exists (
    select 1 from {run} own join {schedule} s on s.id = own.schedule cross join ${live.source}
    where own.id = p.id and m.value <> p.id
      and (select 1 from {outcome} o where o.id = m.value) is null and (select 1 from {run} r where r.id = m.value) is not null
      and (${live.place} < coalesce(${live.ownPlace}, 2147483647)
        or (not exists (select 1 from {waiting} w where w.id = m.value and w.gate = 'schedule')
          and s.definition::json ->> 'overlap' <> 'allow'))) as is_kept,
  (select count(*) from {instance} i
    where i.retired_at is null and i.seen_at > now.at - {greatest}(5 * i.poll_ms, 60000)
      and l.job in (select w.value from {members i.jobs as w})) as instances
from pending p
join {lane} l on l.id = p.lane
cross join now
left join {queue} q on q.name = l.queue
left join {job} j on j.name = l.job
left join {flow} f on f.id = p.flow
left join {flow} root on root.job = l.job and root.key = ''`;

/** The live runs of a schedule are an array on PostgreSQL and JSON text on SQLite. */
const PENDING_REASON = {
  postgres: pendingReason({
    source: "unnest(s.live) with ordinality m (value, place)",
    place: "m.place",
    ownPlace: "array_position(s.live, p.id)",
  }),
  sqlite: pendingReason({
    source: "json_each(s.live) m",
    place: "m.key",
    ownPlace: "(select y.key from json_each(s.live) y where y.value = p.id)",
  }),
};

/** Of a sleeping run: the wait that ends first. */
type WaitReason = {
  readonly reason: "sleep" | "signal" | "run";
  readonly since: number;
  readonly until: number | null;
  readonly signal: string | null;
  readonly key: string | null;
  readonly run: RunId | null;
};

/** Why a pending run does not start. `key` is the JSON text of a value, or empty for the whole job. */
export type PendingReason =
  | WaitReason
  | { readonly reason: "time"; readonly until: number }
  | { readonly reason: "schedule" }
  /** Everything is paused. */
  | { readonly reason: "paused"; readonly since: number; readonly note: string | null }
  | {
      readonly reason: "paused_queue";
      readonly queue: string;
      readonly since: number;
      readonly note: string | null;
    }
  | {
      readonly reason: "concurrency";
      readonly key: string;
      readonly limit: number;
      readonly held: number;
      /** How many runs of the same key go first. */
      readonly ahead: number;
    }
  | {
      readonly reason: "rate";
      readonly key: string;
      readonly limit: number;
      readonly perMs: number;
      /** When the next run of the key may begin. */
      readonly until: number;
      readonly ahead: number;
    }
  /** Not blocked; it runs when a worker for this job has a free slot. */
  | { readonly reason: "worker"; readonly instances: number };

/** Null where the run is not pending. */
export async function readPendingReason(
  session: StoreSession,
  id: RunId,
): Promise<PendingReason | null> {
  const [found] = await session.read({
    ...{ verb: "runs.pendingReason", sql: PENDING_REASON, params: { id } },
  });
  return found ? toPendingReason(found) : null;
}

/** Kind, since, until, signal, key, child. A step that will be tried again counts as a sleep. */
type FirstWait = readonly [
  number,
  number,
  number | null,
  string | null,
  string | null,
  string | null,
];

function waitReason([kind, since, until, signal, key, child]: FirstWait): WaitReason {
  const reason = kind === 2 ? "signal" : kind === 3 ? "run" : "sleep";
  const times = { since: Number(since), until: numberOrNull(until) };
  return { reason, ...times, signal, key: kind === 2 ? key : null, run: child };
}

function toPendingReason(row: Row): PendingReason {
  const now = Number(row.now);
  const wakeAt = numberOrNull(row.wake_at);
  // A free gate blocks nothing: the next poll of any instance opens it.
  if (row.gate === "schedule" && flag(row.is_kept)) return { reason: "schedule" };
  const first = json<FirstWait>(row.first_wait);
  if (first && row.gate === null && wakeAt !== null && wakeAt > now) return waitReason(first);
  if (row.gate === null && wakeAt !== null && wakeAt > now)
    return { reason: "time", until: wakeAt };
  const pause = toGlobalPause({ paused: row.paused });
  if (pause) return { reason: "paused", since: pause.since, note: pause.note };
  if (row.paused_at !== null) {
    const since = Number(row.paused_at);
    return {
      reason: "paused_queue",
      queue: String(row.queue),
      since,
      note: textOrNull(row.pause_note),
    };
  }
  const { concurrency, rate } = toLimits(row);
  const ahead = Number(row.ahead);
  const held = Number(row.held);
  const keyFor = (path: string | null) => (path === null ? WHOLE_JOB : String(row.key));
  if (row.gate === "flow" && concurrency && held >= concurrency.limit) {
    const { limit, key } = concurrency;
    return { reason: "concurrency", key: keyFor(key), limit, held, ahead };
  }
  if (row.gate === "flow" && rate && Number(row.used) >= rate.limit) {
    const { limit, perMs, key } = rate;
    const until = Number(row.first_at ?? now) + perMs;
    return { reason: "rate", key: keyFor(key), limit, perMs, until, ahead };
  }
  return { reason: "worker", instances: Number(row.instances) };
}
