// Writes the rows of leases on SQLite, inside a write transaction: claims, renewals, settlements, and the remaining
// runs of a lease.

import type { RunId } from "../../runs/rules/run.js";
import {
  type Claim,
  type ExchangeParams,
  type Grant,
  type HeldRun,
  isSameEnd,
  type Settlement,
  toClaim,
  toEnding,
} from "../claims.js";
import type { RenewParams, RenewResult } from "../leases.js";
import { COUNTERS, statusCode } from "../rows.js";
import { countChildren } from "./child-counts.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import { LANES_OF_JOBS, type LetThrough, MAY_CLAIM, type SqliteLimits } from "./limits.js";
import { END_SCHEDULE_RUNS, GATE_REVIVED } from "./schedule-statements.js";
import {
  ENDED_CANCELLED,
  ENDED_FAILED,
  type LeaseRow,
  type Origin,
  type Pending,
  SettlementRows,
} from "./settlement-rows.js";

/** For runs that an operator retries. */
const BATCH_OF = /* sql */ `select batch from {run} where id = :id`;

// One JSON text for a row: its columns one by one would take twice as long (measured).
const LEASES = /* sql */ `
select json_object('fence', k.fence, 'until', k.until, 'deadline_at', k.deadline_at, 'claimed_at', k.claimed_at,
  'holder', k.holder, 'lane', k.lane, 'attempt', k.attempt, 'losses', k.losses, 'refunds', k.refunds,
  'laters', k.laters, 'extra', k.extra, 'suspect', k.suspect, 'limited', k.limited, 'ids', k.ids,
  'started', k.started, 'cancels', k.cancels) as lease
from json_each(:rows) f cross join {lease} k on k.fence = f.value`;

// Every value that is read out of a row costs a parse of that row, so the rows contain only the values that differ
// between the runs of a lease.
const INSERT_OUTCOMES = /* sql */ `
insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
select value ->> 0, :fence, :now - (value ->> 1), :now, :lane, :holder, :attempt, :extra, :status, value ->> 2, value ->> 3
from json_each(:rows)`;

export const COUNT_OUTCOMES = /* sql */ `
insert into {rollup} (hour_at, lane, mode, status, shard, runs, ran_ms)
select :now - :now % 3600000, value ->> 0, value ->> 1, value ->> 2, 0, value ->> 3, value ->> 4 from json_each(:rows)
where true
on conflict do update set runs = runs + excluded.runs, ran_ms = ran_ms + excluded.ran_ms`;

const INSERT_ATTEMPTS = /* sql */ `
insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now - (value ->> 5), :now, value ->> 6
from json_each(:rows)`;

/** Pending again: rows with a delay wait, the others are ready at once. */
const INSERT_WAITING = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect)
select r.id, :now + (value ->> 1), r.lane, r.policy, r.priority, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) cross join {run} r on r.id = value ->> 0 where value ->> 1 > 0`;

const INSERT_READY = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select r.id, :now - r.priority * 60000, r.lane, r.policy, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) cross join {run} r on r.id = value ->> 0 where value ->> 1 = 0`;

export const DELETE_LEASE = /* sql */ `delete from {lease} where fence = :fence`;
const SHRINK_LEASE = /* sql */ `update {lease} set ids = :ids where fence = :fence`;

/** The end of a grant in history. */
const ENDING = /* sql */ `
select status + 10 as ended, error, result from {outcome} where id = :id and fence = :fence
union all
select ended, error, null from {attempt} where run = :id and fence = :fence`;

/** The lanes with ready runs, the one with the oldest run first. */
const HEADS = /* sql */ `
select lane, job from (
  select l.id as lane, l.job, (
    select r.sort_at from {ready} r where r.lane = l.id and r.suspect = :suspect
    order by r.sort_at, r.id limit 1) as head
  from ${LANES_OF_JOBS} where ${MAY_CLAIM})
where head is not null order by head, job`;

const READY_ROWS = /* sql */ `
select json_group_array(json_array(id, sort_at, policy, ${COUNTERS}, limited)) as rows from (
  select * from {ready} where lane = :lane and suspect = :suspect order by sort_at, id limit (:limit + 0))`;

// The rows that were read are a prefix of the table's own order, so one range deletes them.
export const DELETE_READY = /* sql */ `
delete from {ready} where lane = :lane and suspect = :suspect and (sort_at, id) <= (:sortAt, :id)`;

const INSERT_LEASE = /* sql */ `
insert into {lease} (until, deadline_at, claimed_at, renewed_at, holder, lane, policy, ${COUNTERS}, suspect, limited,
  token, ids, started)
select min(:now + p.lease_ms, :now + p.timeout_ms + 5000), :now + p.timeout_ms, :now, :now, :holder, :lane, :policy,
  :attempt, :losses, :refunds, :laters, :extra, :suspect, :limited, :token, :ids, '[]'
from {policy} p where p.id = :policy
returning fence`;

const claimed = (which: string) => /* sql */ `
select c.holder, c.cancels, :now - c.claimed_at as "heldMs", json_object(
  'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'leaseMs', max(c.until - :now, 0),
  'isSuspect', json(iif(c.suspect, 'true', 'false')),
  'isLimited', json(iif(c.limited, 'true', 'false')), 'refunds', c.refunds, 'laters', c.laters, 'extraAttempts', c.extra,
  'policy', json_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
  'runs', (
    select json_group_array(json_array(
      r.id, r.input, r.mode, r.version, r.priority, r.created_at, r.due_at, r.nominal_at, r.schedule, r.batch, json(r.tags)))
    from json_each(c.ids) m cross join {run} r on r.id = m.value)
) as claim
from {lease} c join {lane} l on l.id = c.lane join {policy} p on p.id = c.policy
where ${which} order by c.fence`;

export const CLAIMED = claimed("c.holder = :holder and c.token = :token");
export const HELD = claimed(
  "c.fence = :fence and exists (select 1 from json_each(c.ids) m where m.value = :id)",
);

export const RENEW = /* sql */ `
update {lease} set renewed_at = :now, until = min(
  :now + (select p.lease_ms from {policy} p where p.id = {lease}.policy), deadline_at + 5000)
where fence in (select value from json_each(:rows)) and holder = :holder
returning fence, max(until - :now, 0) as lease_ms, ids`;

/** The origin of a run, which its lease does not have. */
const ORIGINS_OF = /* sql */ `
select r.id, r.mode, r.schedule, r.batch from json_each(:ids) m cross join {run} r on r.id = m.value`;
export const OUTCOME = /* sql */ `select * from {outcome} where id = :id`;
const DELETE_OUTCOME = /* sql */ `delete from {outcome} where id = :id`;
const KEEP_ATTEMPT = /* sql */ `
insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
values (:id, :fence, :attempt, :ended, :holder, :startedAt, :endedAt, :error)`;

const INSTANCE_OF = /* sql */ `select id, remote_by from {instance} where no = :holder`;

/** Of ended runs, those with open waits: a pass ends their calls and removes the waits. */
const WAKE_ENDED = /* sql */ `
insert into {wake} (run, at)
select distinct w.run, :now from json_each(:ids) m cross join {wait} w on w.run = m.value where true
on conflict do update set at = excluded.at`;

/** Spreads one draw over a batch: multiples of the golden ratio are as far apart as possible. */
export const RANDOM_STEP = 0.618034;

type Claimed = { readonly count: number; readonly freeAt: number | null };
const NONE: Claimed = { count: 0, freeAt: null };

export class LeaseRows {
  readonly #file: SqliteFile;
  readonly #limits: SqliteLimits;
  readonly #tables: { readonly file: SqliteFile; readonly limits: SqliteLimits };

  constructor(file: SqliteFile, limits: SqliteLimits) {
    this.#file = file;
    this.#limits = limits;
    this.#tables = { file, limits };
  }

  settle(
    { settlements, random }: Pick<ExchangeParams, "settlements" | "random">,
    now: number,
  ): { readonly stale: Grant[]; readonly hasContinued: boolean } {
    const leases = this.leases(settlements.map(({ fence }) => fence));
    const writes = new SettlementRows();
    const stale: Grant[] = [];
    const settled = new Map<number, Set<RunId>>();
    for (const settlement of settlements) {
      const { id, fence } = settlement;
      const lease = leases.get(fence);
      if (settled.get(fence)?.has(id)) continue;
      if (!lease?.members.has(id)) {
        if (!this.#wasApplied(settlement)) stale.push({ id, fence });
        continue;
      }
      settled.set(fence, (settled.get(fence) ?? new Set()).add(id));
      writes.settle(lease.row, settlement, lease.cancels.has(id));
    }
    for (const [fence, ids] of settled) {
      this.shrink(fence, [...(leases.get(fence)?.members ?? [])], ids);
    }
    return { stale, hasContinued: this.enter(writes, { now, random }) };
  }

  /** No other transaction has a row locked here: the held runs are known. */
  renew({ holder, fences }: RenewParams, now: number): RenewResult {
    const rows = this.#file.allEach(RENEW, fences, { holder, now });
    const held = rows.map((row) => ({
      fence: Number(row.fence),
      leaseMs: Number(row.lease_ms),
      ids: JSON.parse(String(row.ids)) as RunId[],
    }));
    return { held, unknown: [] };
  }

  /** A settlement that was applied before, with its reply lost, is not stale; only history can tell. */
  #wasApplied(settlement: Settlement): boolean {
    const { id, fence } = settlement;
    const ending = this.#file.get(ENDING, { id, fence });
    return ending !== undefined && isSameEnd(settlement, toEnding(ending));
  }

  leases(fences: readonly number[]) {
    const rows = this.#file.allEach(LEASES, [...new Set(fences)]);
    return new Map(
      rows.map((each) => {
        const row = JSON.parse(String(each.lease)) as LeaseRow;
        const members = new Set(JSON.parse(row.ids) as RunId[]);
        const cancels = new Set(Object.keys(JSON.parse(row.cancels ?? "{}") as object));
        return [row.fence, { row, members, cancels }];
      }),
    );
  }

  shrink(fence: number, ids: readonly RunId[], gone: ReadonlySet<RunId>): void {
    if (gone.size === 0) return;
    const left = ids.filter((id) => !gone.has(id));
    if (left.length === 0) this.#file.run(DELETE_LEASE, { fence });
    else this.#file.run(SHRINK_LEASE, { fence, ids: JSON.stringify(left) });
  }

  /**
   * Claims ready runs, and runs that limits let through if requested; returns when a limit may let the next one start.
   */
  claim(params: ExchangeParams, now: number): Claimed {
    const { limit, limited } = params;
    const first = limited === "first" ? this.#claimLimited(params, now) : NONE;
    const room = limit - first.count;
    const ready = room > 0 ? this.#claimReady({ ...params, limit: room }, now) : 0;
    const rest = { ...params, limit: room - ready };
    const last = limited === "last" && rest.limit > 0 ? this.#claimLimited(rest, now) : NONE;
    return { count: first.count + ready + last.count, freeAt: first.freeAt ?? last.freeAt };
  }

  #claimLimited(params: ExchangeParams, now: number): Claimed {
    const { taken, freeAt } = this.#limits.claim(params, now);
    const isApart = (params.apart ?? []).length > 0;
    for (const [lane, rows] of byLane(taken)) {
      this.#grant(rows, { ...params, lane, suspect: params.wantsSuspect ? 1 : 0, now, isApart });
    }
    return { count: taken.length, freeAt };
  }

  /** Answers how many. */
  #claimReady(
    { holder, token, jobs, queues, limit, wantsSuspect, apart = [] }: ExchangeParams,
    now: number,
  ): number {
    const suspect = wantsSuspect ? 1 : 0;
    const wanted = wantsSuspect ? Math.min(limit, 1) : limit;
    let left = wanted;
    const heads = this.#file.all(HEADS, {
      suspect,
      jobs: JSON.stringify(jobs),
      queues: queues && JSON.stringify(queues),
    });
    for (const { lane, job } of heads) {
      if (left === 0) break;
      const taken = this.#file.get(READY_ROWS, { lane, suspect, limit: left })?.rows;
      const rows = JSON.parse(String(taken)) as [RunId, ...number[]][];
      const last = rows.at(-1);
      if (!last) continue;
      this.#file.run(DELETE_READY, { lane, suspect, sortAt: last[1], id: last[0] });
      left -= rows.length;
      const isApart = apart.includes(String(job));
      this.#grant(rows, { holder, token, lane: Number(lane), suspect, now, isApart });
    }
    return wanted - left;
  }

  #grant(
    rows: readonly (readonly [RunId, ...number[]])[],
    lease: {
      readonly holder: number;
      readonly token: string;
      readonly lane: number;
      readonly suspect: number;
      readonly now: number;
      readonly isApart: boolean;
    },
  ): void {
    const { holder, token, lane, suspect, now, isApart } = lease;
    for (const { ids, attempt, ...common } of groupsOf(rows, isApart)) {
      this.#file.get(INSERT_LEASE, {
        holder,
        token,
        lane,
        suspect,
        now,
        ...common,
        attempt: attempt + 1,
        ids: JSON.stringify(ids),
      });
    }
  }

  claimsByToken(
    { holder, token }: { readonly holder: number; readonly token: string },
    now: number,
  ): Claim[] {
    return this.#file
      .all(CLAIMED, { holder, token, now })
      .map((row) => toClaim(JSON.parse(String(row.claim)) as Parameters<typeof toClaim>[0]));
  }

  /** Returns the run if it is held under this fence. */
  held(grant: Grant, now: number): HeldRun | null {
    const { id, fence } = grant;
    const row = this.#file.get(HELD, { id, fence, now });
    if (!row) return null;
    const claim = toClaim(JSON.parse(String(row.claim)) as Parameters<typeof toClaim>[0]);
    const cancels = JSON.parse(String(row.cancels ?? "{}")) as Record<RunId, number>;
    const owner = this.#file.get(INSTANCE_OF, { holder: Number(row.holder) });
    return {
      holder: Number(row.holder),
      instance: String(owner?.id),
      remoteBy: typeof owner?.remote_by === "string" ? owner.remote_by : null,
      claim: { ...claim, runs: claim.runs.filter((run) => run.id === id) },
      heldMs: Number(row.heldMs),
      isCancelRequested: cancels[id] !== undefined,
    };
  }

  /** `ids` is JSON. */
  originsOf(ids: string): (id: RunId) => Origin {
    const rows = this.#file.all(ORIGINS_OF, { ids }) as (Origin & Row)[];
    const origins = new Map(
      rows.map(({ id, mode, schedule, batch }) => [id, { mode, schedule, batch }]),
    );
    return (id) => origins.get(id) ?? { mode: 0, schedule: null, batch: null };
  }

  /** Returns whether a run that follows a batch was made. */
  enter(
    writes: SettlementRows,
    { now, random }: { readonly now: number; readonly random: number },
  ): boolean {
    const { finished, attempts, pending, ends, children, left, limited, ended } = writes.rows();
    for (const { lease, mode, status, rows, ranMs } of finished) {
      const { fence, lane, holder, attempt, extra } = lease;
      const common = { fence, lane, holder, attempt, extra, status, now };
      this.#file.runEach(INSERT_OUTCOMES, rows, common);
      this.#file.runEach(COUNT_OUTCOMES, [[lane, mode, status, rows.length, ranMs]], { now });
    }
    if (attempts.length > 0) this.#file.runEach(INSERT_ATTEMPTS, attempts, { now });
    const isDelayed = ([, delayMs]: Pending) => delayMs > 0;
    if (pending.some(isDelayed)) this.#file.runEach(INSERT_WAITING, pending, { now });
    if (!pending.every(isDelayed)) this.#file.runEach(INSERT_READY, pending, { now });
    if (ends.length > 0) {
      const rows = ends.map((end, at) => [...end, (random + at * RANDOM_STEP) % 1]);
      this.#file.runEach(END_SCHEDULE_RUNS, rows, { now });
    }
    if (ended.length > 0) this.#file.run(WAKE_ENDED, { ids: JSON.stringify(ended), now });
    this.#limits.leave(left, now);
    this.#limits.return(limited, now);
    return children.length > 0 && countChildren(this.#tables, children, now) > 0;
  }

  /** Retries a failed or cancelled run; false if it is neither. */
  revive({ id, isGated }: { readonly id: RunId; readonly isGated: boolean }, now: number): boolean {
    const outcome = this.#file.get(OUTCOME, { id });
    if (!outcome || outcome.status === statusCode("completed")) return false;
    this.#file.run(DELETE_OUTCOME, { id });
    if (outcome.fence !== null) {
      this.#file.run(KEEP_ATTEMPT, {
        ...outcome,
        ended: outcome.status === statusCode("cancelled") ? ENDED_CANCELLED : ENDED_FAILED,
        startedAt: outcome.started_at,
        endedAt: outcome.finished_at,
      });
    }
    const batch = (this.#file.get(BATCH_OF, { id })?.batch ?? null) as number | null;
    const status = Number(outcome.status);
    if (batch !== null) countChildren(this.#tables, [{ batch, status, isEnd: false }], now);
    const attempt = Number(outcome.attempt);
    const extra = Number(outcome.extra) + 1;
    const again: Pending = [id, 0, attempt, 0, 0, 0, extra, 0];
    const flow = this.#limits.flowsOf([id]).get(id);
    if (isGated || flow !== undefined) this.#file.run(GATE_REVIVED, { id, attempt, extra, now });
    else this.#file.runEach(INSERT_READY, [again], { now });
    if (flow !== undefined && isGated) this.#limits.keep(id, flow);
    else if (flow !== undefined) this.#limits.stand(id, flow, now);
    return true;
  }
}

/**
 * Groups rows of one lane by the common values of a lease, or leaves them single, in the order in which they became
 * ready.
 */
function groupsOf(rows: readonly (readonly [RunId, ...number[]])[], isApart: boolean) {
  const groups = new Map<
    string,
    {
      ids: RunId[];
      policy: number;
      attempt: number;
      losses: number;
      refunds: number;
      laters: number;
      extra: number;
      limited: number;
    }
  >();
  for (const [id, , ...common] of rows) {
    const key = isApart ? id : common.join();
    const group = groups.get(key);
    if (group) group.ids.push(id);
    else {
      const [policy, attempt, losses, refunds, laters, extra, limited] = common as [
        number,
        number,
        number,
        number,
        number,
        number,
        number,
      ];
      groups.set(key, { ids: [id], policy, attempt, losses, refunds, laters, extra, limited });
    }
  }
  return groups.values();
}

function byLane(letThrough: readonly LetThrough[]) {
  const lanes = new Map<number, (readonly [RunId, ...number[]])[]>();
  for (const { lane, row } of letThrough) lanes.set(lane, [...(lanes.get(lane) ?? []), row]);
  return lanes;
}
