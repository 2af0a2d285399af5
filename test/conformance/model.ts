// A small reference model of a store with one lane and one holder: the rules in plain data, without regard to speed.
// Random histories are played on it and on a real store.

import {
  type AttemptEnd,
  CANCEL_GRACE_MS,
  PRIORITY_STEP_MS,
  REFUNDS_MAX,
  type RunId,
  type RunStatus,
  type TerminalStatus,
} from "../../src/runs/rules/run.js";
import type { Claim, Grant, Settlement } from "../../src/store/claims.js";
import type { NewRun } from "../../src/store/enqueue.js";

type ModelRun = {
  readonly given: NewRun;
  state: "ready" | "waiting" | "running" | TerminalStatus;
  attempt: number;
  losses: number;
  refunds: number;
  laters: number;
  extra: number;
  isSuspect: boolean;
  /** When it wakes, or what it is sorted by; by state. */
  at: number;
  lease: Lease | null;
  /** Fence and end of every attempt that is on record. */
  history: { fence: number; attempt: number; end: string; error: string | null }[];
};

type Lease = {
  readonly fence: number;
  until: number;
  readonly deadlineAt: number;
  readonly started: Set<RunId>;
  readonly cancels: Map<RunId, number>;
};

export class Model {
  readonly runs = new Map<RunId, ModelRun>();
  largestFence = 0;

  enqueue(given: NewRun, now: number): void {
    if (this.runs.has(given.id)) return;
    const counters = { attempt: 0, losses: 0, refunds: 0, laters: 0, extra: 0 };
    const run: ModelRun = {
      ...counters,
      given,
      state: "ready",
      isSuspect: false,
      at: 0,
      lease: null,
      history: [],
    };
    this.runs.set(given.id, run);
    this.#pend(run, given.delayMs, now);
  }

  /** The runs that must be in the next claim. */
  claimable(limit: number, wantsSuspect: boolean): RunId[] {
    return this.#in("ready")
      .filter((run) => run.isSuspect === wantsSuspect)
      .sort((a, b) => a.at - b.at || (a.given.id < b.given.id ? -1 : 1))
      .slice(0, wantsSuspect ? Math.min(limit, 1) : limit)
      .map((run) => run.given.id);
  }

  /** Takes over what a store has claimed; answers what is wrong with it. */
  claimed(claims: readonly Claim[], now: number): string[] {
    const wrong: string[] = [];
    const before = this.largestFence;
    for (const claim of claims) {
      if (claim.fence <= before) wrong.push(`fence ${claim.fence} is not new`);
      this.largestFence = Math.max(this.largestFence, claim.fence);
      const { leaseMs, timeoutMs } = claim.policy;
      const lease: Lease = {
        fence: claim.fence,
        until: Math.min(now + leaseMs, now + timeoutMs + 5_000),
        deadlineAt: now + timeoutMs,
        started: new Set(),
        cancels: new Map(),
      };
      for (const { id, refunds, laters, extraAttempts } of claim.runs) {
        const run = this.#get(id);
        run.attempt += 1;
        const facts = [run.attempt, run.refunds, run.laters, run.extra, run.isSuspect];
        const told = [claim.attempt, refunds, laters, extraAttempts, claim.isSuspect];
        if (String(facts) !== String(told)) wrong.push(`${id} is ${facts}, was told ${told}`);
        run.state = "running";
        run.lease = lease;
      }
    }
    return wrong;
  }

  /** Whether it is stale. */
  settle(settlement: Settlement, now: number): boolean {
    const { id, fence, error } = settlement;
    const run = this.runs.get(id);
    if (!run?.lease || run.lease.fence !== fence) {
      const ended = run?.history.find((each) => each.fence === fence);
      const end = settlement.to === "pending" ? settlement.end : settlement.to;
      const isRepeat =
        ended?.error === error &&
        (ended.end === end || (ended.end === "cancelled" && end !== "completed"));
      return !isRepeat;
    }
    const isCancelled = run.lease.cancels.has(id) && settlement.to !== "completed";
    if (isCancelled) this.#end(run, "cancelled", error);
    else if (settlement.to !== "pending") this.#end(run, settlement.to, error);
    else {
      this.#note(run, settlement.end, error);
      if (settlement.isRefund) run.attempt -= 1;
      if (settlement.end === "handed_back" && settlement.isRefund) run.refunds += 1;
      if (settlement.end === "later") run.laters += 1;
      run.isSuspect = run.isSuspect && settlement.end === "handed_back";
      this.#pend(run, settlement.delayMs, now);
    }
    return false;
  }

  renew(fence: number, now: number): RunId[] {
    const held = this.#in("running").filter((run) => run.lease?.fence === fence);
    for (const { lease, given } of held) {
      if (lease) lease.until = Math.min(now + given.policy.leaseMs, lease.deadlineAt + 5_000);
    }
    return held.map((run) => run.given.id);
  }

  markStarted({ id, fence }: Grant): boolean {
    const { lease } = this.runs.get(id) ?? {};
    if (lease?.fence !== fence) return false;
    lease.started.add(id);
    return true;
  }

  promote(now: number): number {
    const due = this.#in("waiting").filter((run) => run.at <= now);
    for (const run of due) {
      run.state = "ready";
      run.at -= run.given.priority * PRIORITY_STEP_MS;
    }
    return due.length;
  }

  reclaim(now: number): Map<RunId, string> {
    const expired = this.#in("running").filter(({ lease }) => lease && lease.until <= now);
    return new Map(expired.map((run) => [run.given.id, this.#lose(run, now)]));
  }

  #lose(run: ModelRun, now: number): string {
    const { given, lease } = run;
    const { retry, onLost } = given.policy;
    if (!lease) return "not held";
    const isTimeout = lease.deadlineAt <= lease.until;
    const end = isTimeout ? "timeout" : "lost";
    const isFinal = run.attempt >= retry.attempts + run.extra || (onLost === "fail" && !isTimeout);
    if (lease.cancels.has(given.id)) {
      this.#end(run, "cancelled", "reaper");
    } else if (isFinal && !isTimeout && !lease.started.has(given.id) && run.refunds < REFUNDS_MAX) {
      this.#note(run, end, "reaper");
      run.attempt -= 1;
      run.refunds += 1;
      run.isSuspect = false;
      this.#pend(run, 0, now);
    } else if (isFinal) {
      this.#end(run, "failed", "reaper");
    } else {
      const delayMs = Math.min(retry.maxMs, retry.delayMs * retry.factor ** (run.attempt - 1));
      const isFirstLoss = !isTimeout && run.losses === 0;
      this.#note(run, end, "reaper");
      if (!isTimeout) run.losses += 1;
      run.isSuspect = !isTimeout;
      this.#pend(run, isFirstLoss ? 0 : delayMs, now);
    }
    return `${end} ${this.statusOf(given.id)}`;
  }

  cancel(id: RunId, now: number): string {
    const run = this.runs.get(id);
    if (!run) return "not_found";
    if (run.lease) {
      if (!run.lease.cancels.has(id)) run.lease.cancels.set(id, now);
      return "requested";
    }
    if (run.state !== "ready" && run.state !== "waiting") return "already_terminal";
    run.state = "cancelled";
    return "cancelled";
  }

  enforceCancels(graceMs: number, now: number): RunId[] {
    const overdue = this.#in("running").filter(({ lease, given }) => {
      const askedAt = lease?.cancels.get(given.id);
      return askedAt !== undefined && askedAt + graceMs <= now;
    });
    for (const run of overdue) this.#end(run, "cancelled", "reaper");
    return overdue.map((run) => run.given.id);
  }

  retry(id: RunId, now: number): string {
    const run = this.runs.get(id);
    if (!run) return "not_found";
    if (run.state === "completed") return "completed";
    if (run.state !== "failed" && run.state !== "cancelled") return "not_terminal";
    Object.assign(run, { losses: 0, refunds: 0, laters: 0, isSuspect: false });
    run.extra += 1;
    this.#pend(run, 0, now);
    return "pending";
  }

  remove(id: RunId): string {
    const run = this.runs.get(id);
    if (!run) return "not_found";
    if (!["completed", "failed", "cancelled"].includes(run.state)) return "not_terminal";
    this.runs.delete(id);
    return "removed";
  }

  poll(now: number) {
    const wakes = this.#in("waiting").map((run) => run.at);
    const next = wakes.filter((at) => at > now);
    return {
      now,
      pause: null,
      hasReady: this.claimable(1, false).length > 0,
      hasSuspect: this.claimable(1, true).length > 0,
      hasLimited: false,
      hasDue: wakes.some((at) => at <= now),
      hasExpired: this.#in("running").some(({ lease }) => lease && lease.until <= now),
      hasWakes: false,
      hasDueSchedule: false,
      hasFreeGate: false,
      hasGated: false,
      lastPolledAt: null,
      hasOverdueCancel: this.#in("running").some(
        ({ lease, given }) => (lease?.cancels.get(given.id) ?? now) + CANCEL_GRACE_MS <= now,
      ),
      cancelRequested: this.#in("running")
        .filter(({ lease, given }) => lease?.cancels.has(given.id))
        .map((run) => run.given.id)
        .sort(),
      nextWakeAt: next.length === 0 ? null : Math.min(...next),
    };
  }

  statusOf(id: RunId): RunStatus {
    const { state } = this.#get(id);
    return state === "ready" || state === "waiting" ? "pending" : state;
  }

  held(): Grant[] {
    return this.#in("running").map((run) => ({
      id: run.given.id,
      fence: run.lease?.fence as number,
    }));
  }

  #get(id: RunId): ModelRun {
    const run = this.runs.get(id);
    if (!run) throw new Error(`The model knows no run ${id}.`);
    return run;
  }

  #in(state: ModelRun["state"]): ModelRun[] {
    return [...this.runs.values()].filter((run) => run.state === state);
  }

  #note(run: ModelRun, end: AttemptEnd | TerminalStatus, error: string | null): void {
    const { attempt, lease } = run;
    run.history.push({ fence: lease?.fence as number, attempt, end, error });
  }

  #end(run: ModelRun, status: TerminalStatus, error: string | null): void {
    this.#note(run, status, error);
    run.state = status;
    run.lease = null;
  }

  #pend(run: ModelRun, delayMs: number, now: number): void {
    run.lease = null;
    run.state = delayMs > 0 ? "waiting" : "ready";
    run.at = delayMs > 0 ? now + delayMs : now - run.given.priority * PRIORITY_STEP_MS;
  }
}
