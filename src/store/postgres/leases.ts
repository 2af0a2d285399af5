// Keeps leases between claim and settlement on PostgreSQL: renews them, records starts, and takes runs back from silent
// and disobedient holders. Uses the second connection, where no exchange is in front of them.

import { ATTEMPT_ENDS } from "../../runs/rules/run.js";
import { OutcomeUnknownError } from "../../shared/errors.js";
import { type Clock, delay } from "../../shared/ports.js";
import type { Grant } from "../claims.js";
import {
  CANCEL_ERROR,
  type EnforceParams,
  type LeaseVerbs,
  LOST_ERROR,
  type Reclaimed,
  type ReclaimParams,
  type RenewParams,
  type RenewResult,
  type StaleParams,
  TIMEOUT_ERROR,
} from "../leases.js";
import { statusOf } from "../rows.js";
import type { PostgresSession } from "./session.js";
import { CONTINUED, endedChildren, endedWaits } from "./sql/batches.js";
import { FLOW_CHANGES, NOBODY_LINED } from "./sql/limits.js";
import { AFTER_END, RESCHEDULED } from "./sql/schedules.js";

/**
 * Leaves out rows that another transaction has locked, and reads them for the second column. The lock is that of the
 * update itself: every item that is being written would block a stronger one.
 */
export const RENEW = /* sql */ `
with now as materialized (select {now} as at),
mine as materialized (
  select fence from {lease} where fence = any(:fences::bigint[]) and holder = :holder::int
  for no key update skip locked
),
renewed as (
  update {lease} k
  set renewed_at = now.at, until = least(now.at + p.lease_ms, k.deadline_at + 5000)
  from now, {policy} p
  where k.fence = any(array(select fence from mine)) and p.id = k.policy
  returning k.fence, greatest(k.until - now.at, 0) as lease_ms, k.ids
)
select
  (select json_agg(json_build_array(r.fence, r.lease_ms, r.ids)) from renewed r) as held,
  (select json_agg(k.fence) from {lease} k where k.fence = any(:fences::bigint[]) and k.holder = :holder::int
    and k.fence <> all(array(select fence from mine))) as unknown`;

export const MARK_STARTED = /* sql */ `
with given as materialized (
  select * from json_to_recordset(:grants::json) as g (id uuid, fence bigint)
),
locked as materialized (
  select fence, ids from {lease} where fence = any(array(select distinct fence from given)) for update
),
valid as materialized (
  select g.id, g.fence from given g join locked k on k.fence = g.fence where g.id = any(k.ids)
),
marked as (
  update {lease} k set started = k.started || array(select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select distinct fence from valid))
)
select id, fence from valid`;

/**
 * Ends expired leases by the policy that is stored with each run. The lease shows whether a run was lost or ran for too
 * long, not the time of this pass: a living holder renews up to the deadline and beyond, so a lease that ended before
 * the deadline belonged to a dead holder. A loss that would be final, of a run that never began, is handed back. The
 * first loss is due again at once, later ones after the retry delay.
 */
const reclaiming = (which: string) => /* sql */ `
with now as materialized (select {now} as at),
expired as materialized (
  select k.* from {lease} k, now where k.until <= now.at ${which}
  order by k.until limit :limit for update of k skip locked
),
gone as (delete from {lease} where fence = any(array(select fence from expired))),
lost as materialized (
  select x.fence, u.id, x.lane, x.policy, x.attempt, x.losses, x.refunds, x.laters, x.extra, x.holder,
    x.claimed_at, r.priority, r.mode, r.schedule, r.batch, f.flow, f.is_rated, p.delay_ms, p.factor, p.max_ms, p.jitter,
    x.deadline_at <= x.until as over_time,
    coalesce(x.cancels ? u.id::text, false) as cancelled,
    x.attempt >= p.attempts + x.extra or (p.on_lost = 1 and x.deadline_at > x.until) as is_final,
    u.id = any(x.started) as has_begun,
    row_number() over (order by x.until, u.id) as place
  from expired x cross join now
  join {policy} p on p.id = x.policy
  cross join unnest(x.ids) u (id)
  left join lateral (
    select y.flow, exists (
      select from {lane} l join {job} j on j.name = l.job where l.id = x.lane and j.rate_limit is not null) as is_rated
    from {flow_run} y where x.limited and y.run = u.id offset 0) f on true,
  lateral (select y.priority, y.mode, y.schedule, y.batch from {run} y where y.id = u.id offset 0) r
),
judged as materialized (
  select l.*,
    case
      when cancelled then 3
      when is_final and not over_time and not has_begun and refunds < 100 then -2
      when is_final then 2
      else -1
    end as verdict,
    case when over_time then 2 else 1 end as ended,
    coalesce(is_rated, false) as stands,
    floor(least(max_ms, delay_ms * exp(least((attempt - 1) * ln(factor), 50)))
      * (1 - jitter * ((:chance::float8 + place * 0.618034) - floor(:chance::float8 + place * 0.618034))))::bigint as backoff_ms,
    case when over_time then '${TIMEOUT_ERROR}' else '${LOST_ERROR}' end as error
  from lost l
),
finished as (
  insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, verdict, error
  from judged cross join now where verdict > 0
),
counted as (
  insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, verdict, 0, count(*), sum(now.at - claimed_at)
  from judged cross join now where verdict > 0 group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
noted as (
  insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, ended, holder, claimed_at, now.at, error from judged cross join now where verdict < 0
),
-- Runs that are ready again at once; under a rate every attempt joins the line.
back as materialized (
  select id, lane, policy, priority, flow, stands, laters, extra, verdict = -1 as suspect,
    case when verdict = -2 then attempt - 1 else attempt end as attempt,
    case when verdict = -2 then losses else losses + 1 end as losses,
    case when verdict = -2 then refunds + 1 else refunds end as refunds
  from judged where verdict = -2 or (verdict = -1 and not over_time and losses = 0)
),
returned as (
  insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select id, now.at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect, flow is not null
  from back cross join now where not stands
),
stood as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select id, now.at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, 'flow', flow
  from back cross join now where stands
),
postponed as (
  insert into {waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select id, now.at + backoff_ms, lane, policy, priority, attempt,
    case when over_time then losses else losses + 1 end, refunds, laters, extra, not over_time, flow
  from judged cross join now where verdict = -1 and (over_time or losses > 0)
),
ended_runs as materialized (
  select schedule, id, verdict as status, row_number() over (order by place) - 1 as place
  from judged where verdict > 0 and schedule is not null
),
${AFTER_END},
${endedChildren("select batch, verdict as status, id, null::text as result, error from judged where verdict > 0")},
${endedWaits("select id from judged where verdict > 0")},
leaving as materialized (
  select j.id as run from judged j
  where j.flow is not null and j.id <> all(array(select b.id from back b where not b.stands))
),
lined as materialized (select distinct flow, lane, suspect from back where stands),
${FLOW_CHANGES}
select j.id, j.fence::text, l.job, j.attempt, i.id as holder, j.ended, j.verdict, ${CONTINUED}, ${RESCHEDULED}
from judged j join {lane} l on l.id = j.lane left join {instance} i on i.no = j.holder order by j.place`;

export const RECLAIM = reclaiming("");
/** Only leases with one of these runs. */
export const RECLAIM_RUNS = reclaiming("and k.ids && :ids::uuid[]");

/** For a cancel that was not obeyed in time: raises the fence, so that the run leaves its lease. */
const ENFORCE_CANCELS = /* sql */ `
with now as materialized (select {now} as at),
locked as materialized (
  select k.* from {lease} k where k.cancels is not null for update skip locked
),
overdue as materialized (
  select k.fence, u.id, k.claimed_at, k.lane, k.holder, k.attempt, k.extra, r.mode, r.schedule, r.batch
  from locked k cross join now cross join unnest(k.ids) u (id),
    lateral (select x.mode, x.schedule, x.batch from {run} x where x.id = u.id offset 0) r
  where (k.cancels ->> u.id::text)::bigint + :graceMs::bigint <= now.at
),
emptied as (
  delete from {lease} where fence = any(array(
    select k.fence from locked k join (select fence, count(*) as n from overdue group by fence) o on o.fence = k.fence
    where o.n = cardinality(k.ids)))
  returning fence
),
shrunk as (
  update {lease} k set ids = array(select unnest(k.ids) except select o.id from overdue o)
  where k.fence = any(array(select fence from overdue except select fence from emptied))
),
finished as (
  insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, 3, '${CANCEL_ERROR}' from overdue cross join now
),
counted as (
  insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, 3, 0, count(*), sum(now.at - claimed_at)
  from overdue cross join now group by 1, 2, 3 order by 1, 2, 3
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
ended_runs as materialized (
  select schedule, id, 3 as status, row_number() over () - 1 as place from overdue where schedule is not null
),
${AFTER_END},
${endedChildren(`select batch, 3 as status, id, null::text as result, '${CANCEL_ERROR}' as error from overdue`)},
${endedWaits("select id from overdue")},
leaving as materialized (select id as run from overdue),
${NOBODY_LINED},
${FLOW_CHANGES}
select id, fence::text, ${CONTINUED}, ${RESCHEDULED} from overdue`;

/**
 * A silent holder counts as dead, also if its time is over: the deadline then stays after the end of the lease. A
 * living holder may renew in between, but not beyond the deadline that is set here. A lease that another transaction
 * has locked is being renewed or settled: it is not stale.
 */
export const EXPIRE_STALE = /* sql */ `
with now as materialized (select {now} as at),
stale as materialized (
  select k.fence, k.renewed_at <= now.at - o.silent_ms as is_silent
  from {lease} k cross join now join {policy} p on p.id = k.policy
  cross join lateral (
    -- A lease that was never renewed may be longer than its policy says: acquire_due grants such leases.
    select greatest(:silentMs::bigint, case when :respectsLeases::boolean then greatest(p.lease_ms,
        case when k.renewed_at = k.claimed_at then k.until - k.claimed_at end) end) as silent_ms,
      greatest(:ranMs::bigint, case when :respectsLeases::boolean then p.timeout_ms end) as ran_ms
  ) o
  where k.until > now.at
    and (k.renewed_at <= now.at - o.silent_ms or k.claimed_at <= now.at - o.ran_ms)
  order by k.fence for no key update of k skip locked
),
silent as (
  update {lease} set until = now.at, deadline_at = greatest(deadline_at, now.at + 1)
  from now where fence = any(array(select fence from stale where is_silent))
),
over as (
  update {lease} set until = now.at, deadline_at = least(deadline_at, now.at)
  from now where fence = any(array(select fence from stale where not is_silent))
)
select count(*)::int as expired from stale`;

/**
 * The state of a grant. A lease that exists, but that another transaction has locked, has no state yet: that
 * transaction may still commit, so the query is repeated.
 */
const GRANT_STATE = /* sql */ `
with locked as materialized (
  select ids from {lease} where fence = :fence::bigint for update skip locked
)
select
  exists (select from locked k where :id::uuid = any(k.ids)) as held,
  exists (select from {lease} k where k.fence = :fence::bigint and :id::uuid = any(k.ids)) as there,
  exists (select from {outcome} o where o.id = :id::uuid and o.fence = :fence::bigint and o.status = 1) as completed`;

/** By then every other transaction under the same fence has ended. */
const STATE_TRIES_MAX = 100;
export class PostgresLeases implements LeaseVerbs {
  readonly #session: PostgresSession;
  readonly #clock: Clock;

  constructor(session: PostgresSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  async renew({ holder, fences, timeoutMs }: RenewParams): Promise<RenewResult> {
    const [row] = await this.#session.attempt(
      "leases.renew",
      this.#session.beat,
      RENEW,
      { holder, fences },
      timeoutMs,
    );
    const held = (row?.held ?? []) as [number, number, string[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }

  async markStarted(grants: readonly Grant[]): Promise<readonly Grant[]> {
    const rows = await this.#session.repeat("leases.markStarted", MARK_STARTED, {
      grants: JSON.stringify(grants),
    });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async reclaim({ limit, random }: ReclaimParams): Promise<readonly Reclaimed[]> {
    const { work } = this.#session;
    const params = { limit, chance: random };
    const rows = await this.#session.attempt("leases.reclaim", work, RECLAIM, params);
    return rows.map((row) => ({
      id: String(row.id),
      fence: Number(row.fence),
      job: String(row.job),
      attempt: Number(row.attempt),
      holder: String(row.holder ?? "unknown"),
      end: ATTEMPT_ENDS[Number(row.ended)] as "lost" | "timeout",
      to: Number(row.verdict) < 0 ? "pending" : statusOf(Number(row.verdict)),
    }));
  }

  async enforceCancels({ graceMs, random }: EnforceParams): Promise<readonly Grant[]> {
    const { work } = this.#session;
    const params = { graceMs, chance: random };
    const rows = await this.#session.attempt(
      "leases.enforceCancels",
      work,
      ENFORCE_CANCELS,
      params,
    );
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async state(grant: Grant): Promise<"held" | "completed" | "gone"> {
    for (let tries = 1; tries <= STATE_TRIES_MAX; tries += 1) {
      const [row = {}] = await this.#session.repeat("leases.state", GRANT_STATE, grant);
      if (row.completed === true) return "completed";
      if (row.held === true) return "held";
      if (row.there !== true) return "gone";
      await delay(this.#clock, Math.min(100, tries * 5));
    }
    throw new OutcomeUnknownError("leases.state");
  }

  async expireStale({ respectsLeases = false, ...times }: StaleParams): Promise<number> {
    const params = { ...times, respectsLeases };
    const [row] = await this.#session.repeat("leases.expireStale", EXPIRE_STALE, params);
    return Number(row?.expired);
  }
}
