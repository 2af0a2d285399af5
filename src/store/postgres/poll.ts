// Polls on PostgreSQL: finds out whether there is work, and makes waiting runs ready when they are due.

import { CANCEL_GRACE_MS, type RunId } from "../../runs/rules/run.js";
import { toGlobalPause } from "../pause.js";
import {
  type PollParams,
  type PollResult,
  type WorkVerbs,
  wakeAtOf,
  withoutPausedWork,
} from "../work.js";
import type { PostgresSession } from "./session.js";
import {
  FLOW_CHANGES,
  FLOW_KEY,
  FLOW_UNKNOWN,
  HAS_LINE,
  HAS_NEWCOMERS,
  NEW_FLOWS,
} from "./sql/limits.js";
import { HAS_DUE_SCHEDULE, HAS_FREE_GATE, HAS_GATED } from "./sql/schedules.js";

// An instance that polls again within a tenth of a second (calls of a busy outside cron) is known to be alive: a poll
// that writes nothing waits for no flush and takes a third of the time.
export const POLL = /* sql */ `
with now as materialized (select {now} as at),
seen as (
  update {instance} set seen_at = now.at,
    polled_at = case when :isScheduler::boolean then now.at else polled_at end
  from now where no = :holder::int
    and (seen_at < now.at - 100 or :isScheduler::boolean and coalesce(polled_at, 0) < now.at - 100)
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
  exists (select from {signal} s where s.is_new) or exists (select from {wake}) as "hasWakes",
  schedules.are_due as "hasDueSchedule",
  not :isScheduler::boolean and ${HAS_FREE_GATE} as "hasFreeGate",
  ${HAS_GATED} as "hasGated",
  case when schedules.are_due or :wantsLastPoll::boolean
    then (select max(i.polled_at) from {instance} i) end as "lastPolledAt",
  (select json_agg(c.id) from {lease} k, jsonb_object_keys(k.cancels) c (id)
    where k.holder = :holder::int and k.cancels is not null and c.id::uuid = any(k.ids)) as "cancelRequested",
  exists (select from {lease} k, jsonb_each_text(k.cancels) c (id, at)
    where k.cancels is not null and c.at::bigint + :cancelGraceMs::bigint <= now.at
      and c.id::uuid = any(k.ids)) as "hasOverdueCancel",
  least(
    (select min(w.wake_at) from {waiting} w where w.gate is null and w.wake_at > now.at),
    (select min(s.next_at) from {schedule} s where s.next_at > now.at and :isScheduler::boolean)) as "nextWakeAt",
  (select json_build_array(z.at, z.note) from {pause} z where z.until_at is null) as paused,
  (select json_build_array(i.quiet_at, i.quiet_note) from {instance} i
    where i.no = :holder::int and i.quiet_at is not null) as quiet
from now, lateral (select :isScheduler::boolean and ${HAS_DUE_SCHEDULE} as are_due offset 0) schedules`;

const promoting = (which: string) => /* sql */ `
with now as materialized (select {now} as at),
due as materialized (
  select w.ctid as tid, w.* from {waiting} w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from ${FLOW_UNKNOWN} ${which}
  order by w.wake_at limit :limit for update of w skip locked
),
gone as (delete from {waiting} where ctid = any(array(select tid from due where flow is null))),
readied as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect
  from due where flow is null
),
stood as (
  update {waiting} set gate = 'flow', asleep_at = null where ctid = any(array(select tid from due where flow is not null))
),
leaving as materialized (select null::uuid as run where false),
lined as materialized (select distinct flow, lane, suspect from due where flow is not null),
${FLOW_CHANGES}
select (select count(*) from due)::int as promoted, ${HAS_NEWCOMERS} as newcomers`;
export const PROMOTE = promoting("");
/**
 * Only these runs, for a transaction that may stay open: until its end no other caller gets the runs that it made
 * ready.
 */
export const PROMOTE_RUNS = promoting("and w.id = any(:ids::uuid[])");
/** Only runs of these jobs, for a call that claims them in the same transaction. */
export const PROMOTE_OF_JOBS = promoting(
  "and w.lane = any(array(select l.id from {lane} l where l.job = any(:jobs::text[])))",
);

/** Limited runs that are due and whose flow was not looked up yet: they join its line. */
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

export class PostgresWork implements WorkVerbs {
  readonly #session: PostgresSession;

  constructor(session: PostgresSession) {
    this.#session = session;
  }

  async poll(params: PollParams): Promise<PollResult> {
    const [row = {}] = await this.#session.attempt("work.poll", this.#session.beat, POLL, {
      wantsLastPoll: false,
      ...params,
      cancelGraceMs: CANCEL_GRACE_MS,
    });
    return withoutPausedWork({
      now: Number(row.now),
      pause: toGlobalPause(row),
      hasReady: row.hasReady === true,
      hasSuspect: row.hasSuspect === true,
      hasLimited: row.hasLimited === true,
      hasDue: row.hasDue === true,
      hasExpired: row.hasExpired === true,
      hasWakes: row.hasWakes === true,
      hasDueSchedule: row.hasDueSchedule === true,
      hasFreeGate: row.hasFreeGate === true,
      hasGated: row.hasGated === true,
      lastPolledAt: row.lastPolledAt === null ? null : Number(row.lastPolledAt),
      hasOverdueCancel: row.hasOverdueCancel === true,
      cancelRequested: (row.cancelRequested ?? []) as RunId[],
      nextWakeAt: wakeAtOf(row.nextWakeAt === null ? null : Number(row.nextWakeAt)),
    });
  }

  async promote({ limit }: { readonly limit: number }): Promise<number> {
    const [row] = await this.#session.attempt("work.promote", this.#session.work, PROMOTE, {
      limit,
    });
    const promoted = Number(row?.promoted);
    return row?.newcomers === true ? Math.max(promoted, await this.lineUp(limit)) : promoted;
  }

  /** Limited runs from transactions that stay open for long: their flows are touched only now. */
  async lineUp(limit: number): Promise<number> {
    const [row] = await this.#session.attempt("work.promote", this.#session.work, LINE_UP, {
      limit,
    });
    return Number(row?.promoted);
  }
}
