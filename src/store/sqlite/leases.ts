// Leases on SQLite, inside of a write transaction: claiming, renewing, settling, and what is left of a lease.

import type { RunId } from "../../runs/rules/run.js";
import { isSameEnd, toClaim, toEnding } from "../record.js";
import type { HeldRun } from "../remote.js";
import { statusCode } from "../rows.js";
import type * as store from "../store.js";
import {
  Books,
  ENDED_CANCELLED,
  ENDED_FAILED,
  type LeaseRow,
  type Origin,
  type Pending,
} from "./books.js";
import { countChildren } from "./child-counts.js";
import type { Row, SqliteFile } from "./connection.js";
import type { LetThrough, SqliteLimits } from "./flow.js";
import { BATCH_OF } from "./sql/batches.js";
import { END_SCHEDULE_RUNS, GATE_REVIVED } from "./sql/schedule-changes.js";
import * as sql from "./sql/statements.js";

/** Spreads one draw over a batch: multiples of the golden ratio lie as far apart as can be. */
export const CHANCE_STEP = 0.618034;

type Claimed = { readonly count: number; readonly freeAt: number | null };
const NONE: Claimed = { count: 0, freeAt: null };

export class SqliteLeases {
  readonly #file: SqliteFile;
  readonly #flow: SqliteLimits;
  readonly #tables: { readonly file: SqliteFile; readonly flow: SqliteLimits };

  constructor(file: SqliteFile, flow: SqliteLimits) {
    this.#file = file;
    this.#flow = flow;
    this.#tables = { file, flow };
  }

  settle(
    { settlements, chance }: Pick<store.ExchangeParams, "settlements" | "chance">,
    now: number,
  ): { readonly stale: store.Grant[]; readonly hasContinued: boolean } {
    const leases = this.leases(settlements.map(({ fence }) => fence));
    const books = new Books();
    const stale: store.Grant[] = [];
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
      books.settle(lease.row, settlement, lease.cancels.has(id));
    }
    for (const [fence, ids] of settled) {
      this.shrink(fence, [...(leases.get(fence)?.members ?? [])], ids);
    }
    return { stale, hasContinued: this.enter(books, { now, chance }) };
  }

  /** Nobody else has a row locked here: what is held is known. */
  renew({ holder, fences }: store.RenewParams, now: number): store.RenewAnswer {
    const rows = this.#file.allEach(sql.RENEW, fences, { holder, now });
    const held = rows.map((row) => ({
      fence: Number(row.fence),
      leaseMs: Number(row.lease_ms),
      ids: JSON.parse(String(row.ids)) as RunId[],
    }));
    return { held, unknown: [] };
  }

  /** What was applied before, its answer lost, is not stale; only history can tell. */
  #wasApplied(settlement: store.Settlement): boolean {
    const { id, fence } = settlement;
    const ending = this.#file.get(sql.ENDING, { id, fence });
    return ending !== undefined && isSameEnd(settlement, toEnding(ending));
  }

  leases(fences: readonly number[]) {
    const rows = this.#file.allEach(sql.LEASES, [...new Set(fences)]);
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
    if (left.length === 0) this.#file.run(sql.DELETE_LEASE, { fence });
    else this.#file.run(sql.SHRINK_LEASE, { fence, ids: JSON.stringify(left) });
  }

  /** Claims what is ready, and what limits let through where that is asked for; answers when one may again. */
  claim(params: store.ExchangeParams, now: number): Claimed {
    const { limit, limited } = params;
    const first = limited === "first" ? this.#claimLimited(params, now) : NONE;
    const room = limit - first.count;
    const ready = room > 0 ? this.#claimReady({ ...params, limit: room }, now) : 0;
    const rest = { ...params, limit: room - ready };
    const last = limited === "last" && rest.limit > 0 ? this.#claimLimited(rest, now) : NONE;
    return { count: first.count + ready + last.count, freeAt: first.freeAt ?? last.freeAt };
  }

  #claimLimited(params: store.ExchangeParams, now: number): Claimed {
    const { taken, freeAt } = this.#flow.claim(params, now);
    const isApart = (params.apart ?? []).length > 0;
    for (const [lane, rows] of byLane(taken)) {
      this.#grant(rows, { ...params, lane, suspect: params.wantsSuspect ? 1 : 0, now, isApart });
    }
    return { count: taken.length, freeAt };
  }

  /** Answers how many. */
  #claimReady(
    { holder, token, jobs, queues, limit, wantsSuspect, apart = [] }: store.ExchangeParams,
    now: number,
  ): number {
    const suspect = wantsSuspect ? 1 : 0;
    const wanted = wantsSuspect ? Math.min(limit, 1) : limit;
    let left = wanted;
    const heads = this.#file.all(sql.HEADS, {
      suspect,
      jobs: JSON.stringify(jobs),
      queues: queues && JSON.stringify(queues),
    });
    for (const { lane, job } of heads) {
      if (left === 0) break;
      const taken = this.#file.get(sql.READY_ROWS, { lane, suspect, limit: left })?.rows;
      const rows = JSON.parse(String(taken)) as [RunId, ...number[]][];
      const last = rows.at(-1);
      if (!last) continue;
      this.#file.run(sql.DELETE_READY, { lane, suspect, sortAt: last[1], id: last[0] });
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
      this.#file.get(sql.INSERT_LEASE, {
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
  ): store.Claim[] {
    return this.#file
      .all(sql.CLAIMED, { holder, token, now })
      .map((row) => toClaim(JSON.parse(String(row.claim)) as Parameters<typeof toClaim>[0]));
  }

  /** The run, if it is held under this fence. */
  held(grant: store.Grant, now: number): HeldRun<store.Claim> | null {
    const { id, fence } = grant;
    const row = this.#file.get(sql.HELD, { id, fence, now });
    if (!row) return null;
    const claim = toClaim(JSON.parse(String(row.claim)) as Parameters<typeof toClaim>[0]);
    const cancels = JSON.parse(String(row.cancels ?? "{}")) as Record<RunId, number>;
    const owner = this.#file.get(sql.INSTANCE_OF, { holder: Number(row.holder) });
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
    const rows = this.#file.all(sql.ORIGINS_OF, { ids }) as (Origin & Row)[];
    const origins = new Map(
      rows.map(({ id, mode, schedule, batch }) => [id, { mode, schedule, batch }]),
    );
    return (id) => origins.get(id) ?? { mode: 0, schedule: null, batch: null };
  }

  /** Answers whether a run that comes after a batch was made. */
  enter(books: Books, { now, chance }: { readonly now: number; readonly chance: number }): boolean {
    const { finished, counted, attempts, pending, ends, children, left, limited } = books.rows();
    if (finished.length > 0) {
      this.#file.runEach(sql.INSERT_OUTCOMES, finished, { now });
      this.#file.runEach(sql.COUNT_OUTCOMES, counted, { now });
    }
    if (attempts.length > 0) this.#file.runEach(sql.INSERT_ATTEMPTS, attempts, { now });
    const isDelayed = ([, delayMs]: Pending) => delayMs > 0;
    if (pending.some(isDelayed)) this.#file.runEach(sql.INSERT_WAITING, pending, { now });
    if (!pending.every(isDelayed)) this.#file.runEach(sql.INSERT_READY, pending, { now });
    if (ends.length > 0) {
      const rows = ends.map((end, at) => [...end, (chance + at * CHANCE_STEP) % 1]);
      this.#file.runEach(END_SCHEDULE_RUNS, rows, { now });
    }
    this.#flow.leave(left, now);
    this.#flow.return(limited, now);
    return children.length > 0 && countChildren(this.#tables, children, now) > 0;
  }

  /** A failed or cancelled run goes on; false if it is none. */
  revive({ id, isGated }: { readonly id: RunId; readonly isGated: boolean }, now: number): boolean {
    const outcome = this.#file.get(sql.OUTCOME, { id });
    if (!outcome || outcome.status === statusCode("completed")) return false;
    this.#file.run(sql.DELETE_OUTCOME, { id });
    if (outcome.fence !== null) {
      this.#file.run(sql.KEEP_ATTEMPT, {
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
    const flow = this.#flow.flowsOf([id]).get(id);
    if (isGated || flow !== undefined) this.#file.run(GATE_REVIVED, { id, attempt, extra, now });
    else this.#file.runEach(sql.INSERT_READY, [again], { now });
    if (flow !== undefined && isGated) this.#flow.keep(id, flow);
    else if (flow !== undefined) this.#flow.stand(id, flow, now);
    return true;
  }
}

/** Rows of one lane by what a lease has in common, or one by one, in the order in which they were ready. */
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
