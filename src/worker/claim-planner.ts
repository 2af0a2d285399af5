// What the next claim asks for: how many runs, or one suspect, and whether runs behind a limit come with
// them. It remembers what was heard since the last claim, and asks for nothing where nothing is to be had.
// Decides; sends nothing.

import { countOf } from "../store/record.js";
import type { Claim, ExchangeParams } from "../store/store.js";
import type { RunnableJob } from "./attempt.js";
import type { Quarantine } from "./quarantine.js";
import { isLimited } from "./rules/limits.js";
import type { Slots } from "./slots.js";

export type ClaimPlannerParams = {
  readonly concurrency: number;
  /** The jobs that this process can run; more may come later. */
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  /** How many runs it may still claim, perhaps together with others. Left out: no end of them. */
  readonly claimBudget?: ClaimBudget;
  /** How many runs it may hold now, its slots aside. Left out: as many as it likes. */
  readonly room?: () => number;
  readonly slots: Pick<Slots, "count" | "bufferedCount" | "hasRoom">;
  readonly quarantine: Pick<Quarantine, "isOn" | "isSuspectsTurn">;
};

/** What one claim asks for. */
export type ClaimRequest = {
  readonly limit: number;
  readonly wantsSuspect: boolean;
  /** How often it had been said by then that there may be work. */
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

  // ── what is heard ──────────────────────────────────────────────────────────────────────────────

  /** False: nothing is claimed, before the start and from the stop on. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Nothing new is claimed for now. Answers whether this is news. */
  setPaused(isPaused: boolean): boolean {
    const isNews = this.#isPaused !== isPaused;
    this.#isPaused = isPaused;
    return isNews;
  }

  /** There may be something to claim. */
  mayHaveWork(): void {
    this.#hints += 1;
    this.#mayHaveWork = true;
    this.#limited.mayBe();
  }

  /** A limit may let a run through. */
  mayHaveLimited(): void {
    this.#limited.is();
    this.mayHaveWork();
  }

  /** There is a run whose earlier holder fell silent. */
  hasSuspect(): void {
    this.#mayHaveSuspect = true;
  }

  /** A run has taken this long. */
  ran(ranMs: number): void {
    this.#prefetch.ran(ranMs);
  }

  /** So many slots are taken for long. */
  slow(count: number): void {
    this.#slowCount = count;
  }

  // ── what is asked for ──────────────────────────────────────────────────────────────────────────

  /** Runs that were asked for and have not come yet. */
  get inFlightCount(): number {
    return this.#inFlight;
  }

  /** The last claim brought as many as it asked for: there is more than one claim's worth. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** What a claim that is sent now asks for. */
  nextRequest(): ClaimRequest {
    const wantsSuspect = this.wantsSuspect();
    return { limit: wantsSuspect ? 1 : this.wanted(), wantsSuspect, hints: this.#hints };
  }

  wanted(): number {
    if (!this.#mayClaim() || !this.#mayHaveWork) return 0;
    if (this.#isSuspectsTurn() || this.#params.quarantine.isOn) return 0;
    const have = this.#params.slots.count + this.#inFlight;
    const wanted = this.#prefetch.wanted({ have, slow: this.#slowCount });
    return Math.max(0, Math.min(wanted, this.#left()));
  }

  /** A suspect is claimed alone, by hands that hold nothing that has not started. */
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
    const { quarantine } = this.#params;
    return this.#mayHaveSuspect && (!this.#mayHaveWork || quarantine.isSuspectsTurn);
  }

  #left(): number {
    const { claimBudget, room, slots } = this.#params;
    const roomLeft = room ? room() - slots.count - this.#inFlight : Number.POSITIVE_INFINITY;
    return Math.min(claimBudget?.left ?? Number.POSITIVE_INFINITY, roomLeft);
  }

  // ── what comes of it ───────────────────────────────────────────────────────────────────────────

  /** It is on its way. Answers what it says about runs behind a limit. */
  sent({ limit, wantsSuspect }: ClaimRequest): Pick<ExchangeParams, "limited"> {
    this.#ask(limit);
    return this.#limited.take(limit, wantsSuspect);
  }

  /** It is no longer on its way; what it brought is taken with `got`. */
  returned({ limit }: ClaimRequest): void {
    this.#ask(-limit);
  }

  /** What an order brought, in full. */
  answered(request: ClaimRequest, claims: readonly Claim[]): void {
    const count = countOf(claims);
    this.#prefetch.claimed(claims);
    if (request.wantsSuspect) {
      this.#mayHaveSuspect = count > 0;
      return;
    }
    this.#hasMore = count >= request.limit;
    // Unless somebody spoke up meanwhile, whom this claim may have come too early for.
    if (count < request.limit && this.#hints === request.hints) {
      this.#mayHaveWork = false;
      this.#limited.wasEnough();
    }
  }

  /** These are held now. */
  got(claim: Claim): void {
    this.#params.claimBudget?.take(claim.runs.length);
  }

  /** Negative: they are given back. */
  #ask(count: number): void {
    this.#inFlight += count;
    this.#params.claimBudget?.take(count);
  }
}

// How many runs to claim: enough for the free slots, and a buffer as deep as runs are short, so that
// a claimed run is expected to wait for no longer than a moment. Decides by averages, touches nothing.

const CLAIM_MAX = 1_000;
/** As many claims as may be on their way at once. */
const BUFFER_MAX = 3_000;
/** What the inputs in the buffer may weigh: large ones would fill the memory and stop the event loop. */
const BUFFER_CHARS_MAX = 16 * 1024 * 1024;
/** How long a claimed run may be expected to wait in the buffer. */
const BUFFER_WAIT_MS = 200;
/** Runs shorter than this are as good as instant. */
const RUN_MIN_MS = 0.05;

class Prefetch {
  readonly #concurrency: number;
  #averageMs = 0;
  #averageChars = 0;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** A run has taken this long. */
  ran(ranMs: number): void {
    this.#averageMs =
      this.#averageMs === 0 ? Math.max(ranMs, 0.01) : this.#averageMs * 0.9 + ranMs * 0.1;
  }

  /** Notes how large inputs are; the last claim says as much as all before it. */
  claimed(claims: readonly Claim[]): void {
    let count = 0;
    let chars = 0;
    for (const { runs } of claims) {
      count += runs.length;
      for (const { input } of runs) chars += input.length;
    }
    if (count > 0) this.#averageChars = (this.#averageChars + chars / count) / 2;
  }

  /** `have` counts runs in slots, in the buffer and on their way; `slow` slots are taken for long. */
  wanted({ have, slow }: { readonly have: number; readonly slow: number }): number {
    const concurrency = this.#concurrency;
    const depth = this.#depth(Math.max(0, concurrency - slow));
    const missing = concurrency + depth - have;
    // A buffer that is still half full is left alone: small claims cost as much as large ones.
    const isWorthIt = missing >= Math.min(CLAIM_MAX, Math.ceil(depth / 2)) || have < concurrency;
    return isWorthIt ? Math.max(0, Math.min(CLAIM_MAX, missing)) : 0;
  }

  /** Nothing is buffered before it is known how long runs take. */
  #depth(slots: number): number {
    if (this.#averageMs === 0) return 0;
    const expected = (slots / Math.max(this.#averageMs, RUN_MIN_MS)) * BUFFER_WAIT_MS;
    const affordable = BUFFER_CHARS_MAX / Math.max(this.#averageChars, 1);
    return Math.floor(Math.min(BUFFER_MAX, affordable, expected));
  }
}

// Whether an exchange also asks for runs that wait for a limit, and who has the first choice of the
// room: the two kinds of runs take turns, so that neither starves the other. Workers without limited
// jobs ask for suspects alone, which are rare.

class LimitedTurn {
  readonly #jobs: ReadonlyMap<string, RunnableJob>;
  #mayHave = false;
  #isFirst = false;

  constructor(jobs: ReadonlyMap<string, RunnableJob>) {
    this.#jobs = jobs;
  }

  /** There is something to claim; whether it is limited, nobody said. */
  mayBe(): void {
    if (this.#mayHave) return;
    for (const { limits } of this.#jobs.values()) if (isLimited(limits)) this.#mayHave = true;
  }

  /** There is something that a limit may let through: also of a job whose code has none any more. */
  is(): void {
    this.#mayHave = true;
  }

  /** What the next exchange says about it. Whoever hears of more says so again. */
  take(limit: number, wantsSuspect: boolean): Pick<ExchangeParams, "limited"> {
    if (limit === 0 || !(this.#mayHave || wantsSuspect)) return {};
    // Kept while claims go on: where the room was too small for all, there will be another turn.
    if (!wantsSuspect) this.#isFirst = !this.#isFirst;
    return { limited: this.#isFirst ? "first" : "last" };
  }

  /** The last claim had room left: nothing more is let through for now. */
  wasEnough(): void {
    this.#mayHave = false;
  }
}

// How many runs may still be claimed, by workers that share it. What one asked for and did not get is
// there for the others, who are told: they may have looked while it was asked for.

export class ClaimBudget {
  readonly #listeners: (() => void)[] = [];
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  get left(): number {
    return this.#left;
  }

  /** Negative: it is given back. */
  take(count: number): void {
    this.#left -= count;
    if (count < 0) for (const listener of this.#listeners) listener();
  }

  onReturned(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
