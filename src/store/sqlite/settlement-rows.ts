// Collects the results of one SQLite transaction: the next place of settled and lost runs, so that many are written in
// few statements. Decides, never writes; PostgreSQL decides the same in its statements.

import { retryDelayMs } from "../../runs/rules/retry.js";
import { REFUNDS_MAX, type RunId } from "../../runs/rules/run.js";
import { type Settlement, wholeDelayMs } from "../claims.js";
import { LOST_ERROR, type Reclaimed, TIMEOUT_ERROR } from "../leases.js";
import { modeCode, statusCode } from "../rows.js";
import type { Row } from "./connection/connection.js";

export const ENDED_FAILED = 0;
const ENDED_LOST = 1;
const ENDED_TIMEOUT = 2;
const ENDED_LATER = 3;
const ENDED_HANDED_BACK = 4;
export const ENDED_CANCELLED = 5;
const ENDED_SUSPENDED = 6;

/** A child of a batch that has ended, or that was revived after its end. */
export type ChildChange = {
  readonly batch: number;
  readonly status: number;
  readonly isEnd: boolean;
  /** The result or error for the parent of a call. */
  readonly id?: RunId;
  readonly result?: string | null | undefined;
  readonly error?: string | null | undefined;
};

export type LeaseRow = {
  readonly fence: number;
  readonly until: number;
  readonly deadline_at: number;
  readonly claimed_at: number;
  readonly holder: number;
  readonly lane: number;
  readonly attempt: number;
  readonly losses: number;
  readonly refunds: number;
  readonly laters: number;
  readonly extra: number;
  readonly suspect: 0 | 1;
  readonly limited: 0 | 1;
  readonly ids: string;
  readonly started: string;
  readonly cancels: string | null;
};

/** Runs of one lease that ended alike. Each row has an id, the duration of the run, its result and its error. */
type Finished = {
  readonly lease: LeaseRow;
  readonly mode: number;
  readonly status: number;
  readonly rows: (number | string | null)[][];
  ranMs: number;
};

/** A run that returns to pending: id, delay, then its counters and whether it is a suspect. */
export type Pending = readonly [RunId, number, number, number, number, number, number, 0 | 1];

/** Values of a run that its lease does not have. */
export type Origin = {
  readonly mode: number;
  readonly schedule: number | null;
  readonly batch: number | null;
};

/** Collects the rows that the settlements of one transaction write, so that few statements write them. */
export class SettlementRows {
  readonly #finished = new Map<string, Finished>();
  #lastFinished: Finished | null = null;
  readonly #attempts: (number | string | null)[][] = [];
  readonly #pending: Pending[] = [];
  readonly #ends: [number, RunId, 0 | 1][] = [];
  readonly #children: ChildChange[] = [];
  readonly #ended: RunId[] = [];
  /** Limited runs: those that ended, and those that are pending again. */
  readonly #left: RunId[] = [];
  readonly #limited: Pending[] = [];

  finish(
    lease: LeaseRow,
    run: Origin & {
      id: RunId;
      status: number;
      ranMs: number;
      result?: string | null;
      error?: string | null;
      mayWait?: boolean;
    },
  ): void {
    const { id, mode, status, ranMs } = run;
    const group = this.#finishedOf(lease, mode, status);
    group.rows.push([id, ranMs, run.result ?? null, run.error ?? null]);
    group.ranMs += ranMs;
    this.end(run);
    if (lease.limited) this.#left.push(id);
  }

  /** Most settlements of a transaction belong to one lease and end alike. */
  #finishedOf(lease: LeaseRow, mode: number, status: number): Finished {
    const last = this.#lastFinished;
    if (last?.lease === lease && last.mode === mode && last.status === status) return last;
    const name = `${lease.fence} ${mode} ${status}`;
    const group = this.#finished.get(name) ?? { lease, mode, status, rows: [], ranMs: 0 };
    this.#finished.set(name, group);
    this.#lastFinished = group;
    return group;
  }

  /** The end of a schedule's run may set its next tick; the end of a child counts for its batch. */
  end({
    id,
    schedule,
    batch,
    status,
    result,
    error,
    mayWait = true,
  }: Omit<Origin, "mode"> & {
    id: RunId;
    status: number;
    result?: string | null;
    error?: string | null;
    mayWait?: boolean;
  }): void {
    if (mayWait) this.#ended.push(id);
    if (schedule !== null) this.#ends.push([schedule, id, status === statusCode("failed") ? 1 : 0]);
    if (batch !== null) this.#children.push({ batch, status, isEnd: true, id, result, error });
  }

  again(
    lease: LeaseRow,
    run: { ended: number; ranMs: number; error: string | null; pending: Pending },
  ): void {
    const { ended, ranMs, error, pending } = run;
    this.#attempts.push([
      pending[0],
      lease.fence,
      lease.attempt,
      ended,
      lease.holder,
      ranMs,
      error,
    ]);
    this.#pending.push(pending);
    if (lease.limited) this.#limited.push(pending);
  }

  settle(lease: LeaseRow, settlement: Settlement, isCancelled: boolean): void {
    const { id, error, schedule, batch, mayWait = false } = settlement;
    const mode = modeCode(settlement.mode);
    const ranMs = Math.max(0, Math.round(settlement.ranMs));
    // A requested cancel takes effect unless the run completed.
    if (isCancelled && settlement.to !== "completed") {
      const status = statusCode("cancelled");
      this.finish(lease, { id, mode, schedule, batch, ranMs, error, status, mayWait });
      return;
    }
    if (settlement.to !== "pending") {
      this.finish(lease, {
        id,
        mode,
        schedule,
        batch,
        ranMs,
        error,
        status: statusCode(settlement.to),
        result: settlement.result,
        mayWait,
      });
      return;
    }
    const refund = settlement.isRefund ? 1 : 0;
    const ended = {
      failed: ENDED_FAILED,
      lost: ENDED_LOST,
      timeout: ENDED_TIMEOUT,
      later: ENDED_LATER,
      handed_back: ENDED_HANDED_BACK,
      cancelled: ENDED_CANCELLED,
      suspended: ENDED_SUSPENDED,
    }[settlement.end];
    const refunds = lease.refunds + (settlement.end === "handed_back" ? refund : 0);
    const laters = lease.laters + (settlement.end === "later" ? 1 : 0);
    const delayMs = wholeDelayMs(settlement.delayMs);
    const attempt = lease.attempt - refund;
    const suspect = settlement.end === "handed_back" ? lease.suspect : 0;
    this.again(lease, {
      ended,
      ranMs,
      error,
      pending: [id, delayMs, attempt, lease.losses, refunds, laters, lease.extra, suspect],
    });
  }

  rows() {
    return {
      finished: [...this.#finished.values()],
      attempts: this.#attempts,
      pending: this.#pending,
      ends: this.#ends,
      ended: this.#ended,
      children: this.#children,
      left: this.#left,
      limited: this.#limited,
    };
  }
}

/** A living holder renews beyond the deadline: a lease that ended before it was lost, whenever this runs. */
export function isOverItsTime(lease: LeaseRow): boolean {
  return lease.deadline_at <= lease.until;
}

/** The next place of a run whose lease ran out: the same rules as in RECLAIM of postgres/leases.ts. */
export function judgeLoss(
  params: { lease: LeaseRow & Row; id: RunId; origin: Origin; now: number; random: () => number },
  writes: SettlementRows,
): Reclaimed["to"] {
  const { lease, id, origin, now, random } = params;
  const { attempt, losses, refunds, laters, extra } = lease;
  const ranMs = now - lease.claimed_at;
  const isOverTime = isOverItsTime(lease);
  const error = isOverTime ? TIMEOUT_ERROR : LOST_ERROR;
  const ended = isOverTime ? ENDED_TIMEOUT : ENDED_LOST;
  const isFinal = attempt >= Number(lease.attempts) + extra || (lease.on_lost === 1 && !isOverTime);
  const hasBegun = (JSON.parse(lease.started) as RunId[]).includes(id);
  if (JSON.parse(lease.cancels ?? "{}")[id] !== undefined) {
    writes.finish(lease, { id, ...origin, ranMs, error, status: statusCode("cancelled") });
    return "cancelled";
  }
  if (isFinal && !isOverTime && !hasBegun && refunds < REFUNDS_MAX) {
    writes.again(lease, {
      ended,
      ranMs,
      error,
      pending: [id, 0, attempt - 1, losses, refunds + 1, laters, extra, 0],
    });
    return "pending";
  }
  if (isFinal) {
    writes.finish(lease, { id, ...origin, ranMs, error, status: statusCode("failed") });
    return "failed";
  }
  const retry = {
    attempts: Number(lease.attempts),
    delayMs: Number(lease.delay_ms),
    factor: Number(lease.factor),
    maxMs: Number(lease.max_ms),
    jitter: Number(lease.jitter),
  };
  const isFirstLoss = !isOverTime && losses === 0;
  const delayMs = isFirstLoss ? 0 : retryDelayMs(retry, attempt, random);
  const pending: Pending = isOverTime
    ? [id, delayMs, attempt, losses, refunds, laters, extra, 0]
    : [id, delayMs, attempt, losses + 1, refunds, laters, extra, 1];
  writes.again(lease, { ended, ranMs, error, pending });
  return "pending";
}
