// Decides how much a worker claims next: how many runs, or one suspect, and whether runs under a limit are
// included. It remembers the wake-ups since the last claim, and requests nothing without one. It never sends a claim:
// exchange.ts does.

import { type Claim, countOf, type ExchangeParams } from "../store/claims.js";
import type { RunnableJob } from "./attempt.js";
import { isLimited } from "./rules/limits.js";
import type { Slots } from "./slots.js";

export type ClaimPlannerParams = {
  readonly concurrency: number;
  /** The jobs that this process can run; more may come later. */
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  /** How many runs it may still claim; several workers may share one budget. @default no limit */
  readonly claimBudget?: ClaimBudget;
  /** How many runs it may hold now, in addition to the limit of its slots. @default no limit */
  readonly room?: () => number;
  readonly slots: Pick<Slots, "count" | "bufferedCount" | "hasRoom"> & {
    readonly quarantine: Pick<Slots["quarantine"], "isOn" | "isSuspectsTurn">;
  };
};

/** One claim to send. */
export type ClaimRequest = {
  readonly limit: number;
  readonly wantsSuspect: boolean;
  /** How many wake-ups had arrived when the request was made. */
  readonly hints: number;
};

export const NO_CLAIM_REQUEST: ClaimRequest = { limit: 0, wantsSuspect: false, hints: 0 };

export class ClaimPlanner {
  readonly #params: ClaimPlannerParams;
  readonly #prefetch: Prefetch;
  readonly #limited: LimitedTurn;
  #isOpen = false;
  #isPaused = false;
  #hints = 0;
  #mayHaveWork = false;
  #mayHaveSuspect = false;
  #hasMore = false;
  #inFlight = 0;
  #slowCount = 0;

  constructor(params: ClaimPlannerParams) {
    this.#params = params;
    this.#prefetch = new Prefetch(params.concurrency);
    this.#limited = new LimitedTurn(params.jobs);
  }

  // ── wake-ups and state ─────────────────────────────────────────────────────────────────────────

  /** False before the start and after the stop: nothing is claimed. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Stops or resumes claiming. Returns whether this changed anything. */
  setPaused(isPaused: boolean): boolean {
    const hasChanged = this.#isPaused !== isPaused;
    this.#isPaused = isPaused;
    return hasChanged;
  }

  /** There may be a run to claim. */
  mayHaveWork(): void {
    this.#hints += 1;
    this.#mayHaveWork = true;
    this.#limited.mayHaveWork();
  }

  /** A limit may let another run start. */
  mayHaveLimited(): void {
    this.#limited.mayStart();
    this.mayHaveWork();
  }

  /** There is a run whose earlier holder fell silent. */
  hasSuspect(): void {
    this.#mayHaveSuspect = true;
  }

  /** Notes how long a run took. */
  ran(ranMs: number): void {
    this.#prefetch.ran(ranMs);
  }

  /** Notes how many slots are held by long runs. */
  slow(count: number): void {
    this.#slowCount = count;
  }

  // ── the next request ───────────────────────────────────────────────────────────────────────────

  /** Runs that claims in flight have requested. */
  get inFlightCount(): number {
    return this.#inFlight;
  }

  /** Whether the last claim returned as many runs as it requested, so that more are likely. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** The claim to send now; its limit may be 0. */
  nextRequest(): ClaimRequest {
    const wantsSuspect = this.wantsSuspect();
    return { limit: wantsSuspect ? 1 : this.wanted(), wantsSuspect, hints: this.#hints };
  }

  wanted(): number {
    if (!this.#mayClaim() || !this.#mayHaveWork) return 0;
    if (this.#isSuspectsTurn() || this.#params.slots.quarantine.isOn) return 0;
    const have = this.#params.slots.count + this.#inFlight;
    const wanted = this.#prefetch.wanted({ have, slow: this.#slowCount });
    return Math.max(0, Math.min(wanted, this.#left()));
  }

  /** A suspect is claimed alone, and only when no claimed run waits for a slot. */
  wantsSuspect(): boolean {
    const { slots } = this.#params;
    return (
      this.#mayClaim() &&
      this.#isSuspectsTurn() &&
      slots.bufferedCount === 0 &&
      this.#inFlight === 0 &&
      this.#left() > 0 &&
      slots.hasRoom
    );
  }

  #mayClaim(): boolean {
    return this.#isOpen && !this.#isPaused && this.#params.jobs.size > 0;
  }

  #isSuspectsTurn(): boolean {
    const { quarantine } = this.#params.slots;
    return this.#mayHaveSuspect && (!this.#mayHaveWork || quarantine.isSuspectsTurn);
  }

  #left(): number {
    const { claimBudget, room, slots } = this.#params;
    const roomLeft = room ? room() - slots.count - this.#inFlight : Number.POSITIVE_INFINITY;
    return Math.min(claimBudget?.left ?? Number.POSITIVE_INFINITY, roomLeft);
  }

  // ── the result of a claim ──────────────────────────────────────────────────────────────────────

  /** Notes that the request is in flight. Returns its part about runs under a limit. */
  sent({ limit, wantsSuspect }: ClaimRequest): Pick<ExchangeParams, "limited"> {
    this.#addInFlight(limit);
    return this.#limited.take(limit, wantsSuspect);
  }

  /** The request is no longer in flight; `charge` counts the runs that it returned. */
  ended({ limit }: ClaimRequest): void {
    this.#addInFlight(-limit);
  }

  /** Learns from the runs that a request returned whether more are likely, and how large they are. */
  claimed(request: ClaimRequest, claims: readonly Claim[]): void {
    const count = countOf(claims);
    this.#prefetch.claimed(claims);
    if (request.wantsSuspect) {
      this.#mayHaveSuspect = count > 0;
      return;
    }
    this.#hasMore = count >= request.limit;
    // Unless a wake-up arrived while the claim was in flight: the claim may have come too early for it.
    if (count < request.limit && this.#hints === request.hints) {
      this.#mayHaveWork = false;
      this.#limited.exhausted();
    }
  }

  /** Charges the runs of a claim to the budget. */
  charge(claim: Claim): void {
    this.#params.claimBudget?.take(claim.runs.length);
  }

  /** A negative count returns budget. */
  #addInFlight(count: number): void {
    this.#inFlight += count;
    this.#params.claimBudget?.take(count);
  }
}

// ── prefetch ─────────────────────────────────────────────────────────────────────────────────────
// Requests enough runs for the free slots and for a buffer. Short runs get a deep buffer, long runs a shallow one, so
// that a claimed run waits about 200 ms at most. Decides by averages.

const CLAIM_MAX = 1_000;
/** As many runs as three claims in flight can return. */
const BUFFER_MAX = 3_000;
/** The size of all inputs in the buffer: more would fill the memory and block the event loop. */
const BUFFER_CHARS_MAX = 16 * 1024 * 1024;
/** How long a claimed run may be expected to wait in the buffer. */
const BUFFER_WAIT_MS = 200;
/** Runs shorter than this count as this long. */
const RUN_MIN_MS = 0.05;

class Prefetch {
  readonly #concurrency: number;
  #averageMs = 0;
  #averageChars = 0;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** Notes how long a run took, as a moving average. */
  ran(ranMs: number): void {
    this.#averageMs =
      this.#averageMs === 0 ? Math.max(ranMs, 0.01) : this.#averageMs * 0.9 + ranMs * 0.1;
  }

  /** Notes how large inputs are; the last claim counts as much as all before it. */
  claimed(claims: readonly Claim[]): void {
    let count = 0;
    let chars = 0;
    for (const { runs } of claims) {
      count += runs.length;
      for (const { input } of runs) chars += input.length;
    }
    if (count > 0) this.#averageChars = (this.#averageChars + chars / count) / 2;
  }

  /** `have` counts runs in slots, in the buffer and in flight; `slow` counts slots held by long runs. */
  wanted({ have, slow }: { readonly have: number; readonly slow: number }): number {
    const concurrency = this.#concurrency;
    const depth = this.#depth(Math.max(0, concurrency - slow));
    const missing = concurrency + depth - have;
    // No claim while the buffer is still half full: a small claim costs as much as a large one.
    const isWorthIt = missing >= Math.min(CLAIM_MAX, Math.ceil(depth / 2)) || have < concurrency;
    return isWorthIt ? Math.max(0, Math.min(CLAIM_MAX, missing)) : 0;
  }

  /** Buffers nothing before the first run has ended: its length is not known. */
  #depth(slots: number): number {
    if (this.#averageMs === 0) return 0;
    const expected = (slots / Math.max(this.#averageMs, RUN_MIN_MS)) * BUFFER_WAIT_MS;
    const affordable = BUFFER_CHARS_MAX / Math.max(this.#averageChars, 1);
    return Math.floor(Math.min(BUFFER_MAX, affordable, expected));
  }
}

// ── runs under a limit ───────────────────────────────────────────────────────────────────────────
// Decides whether a claim includes runs under a limit, and which kind is claimed first. The two kinds take turns,
// so that neither starves the other. A worker without limited jobs includes them only with suspects, which are rare.

class LimitedTurn {
  readonly #jobs: ReadonlyMap<string, RunnableJob>;
  #mayHave = false;
  #isFirst = false;

  constructor(jobs: ReadonlyMap<string, RunnableJob>) {
    this.#jobs = jobs;
  }

  /** There may be a run to claim; it may be under a limit if a job here has one. */
  mayHaveWork(): void {
    if (this.#mayHave) return;
    for (const { limits } of this.#jobs.values()) if (isLimited(limits)) this.#mayHave = true;
  }

  /** A limit may let a run start, also of a job whose code has no limit any more. */
  mayStart(): void {
    this.#mayHave = true;
  }

  /** The part of the next claim about runs under a limit. */
  take(limit: number, wantsSuspect: boolean): Pick<ExchangeParams, "limited"> {
    if (limit === 0 || !(this.#mayHave || wantsSuspect)) return {};
    // The flag stays set while claims return full: the next claim takes the rest.
    if (!wantsSuspect) this.#isFirst = !this.#isFirst;
    return { limited: this.#isFirst ? "first" : "last" };
  }

  /** The last claim was not full: no limit lets more runs start for now. */
  exhausted(): void {
    this.#mayHave = false;
  }
}

// ── claim budget ─────────────────────────────────────────────────────────────────────────────────

/**
 * Counts how many runs may still be claimed by the workers that share it. Unused budget is returned and the other
 * workers are woken: they may have found none while it was in use.
 */
export class ClaimBudget {
  readonly #listeners: (() => void)[] = [];
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  get left(): number {
    return this.#left;
  }

  /** A negative count returns budget and wakes every worker. */
  take(count: number): void {
    this.#left -= count;
    if (count < 0) for (const listener of this.#listeners) listener();
  }

  onReturned(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
