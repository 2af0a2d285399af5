// The round trips of a worker: each carries what has ended and asks for what comes next, in one commit.
// Whether one without an answer took effect is unknown: its settlements are repeated under the same fence,
// which is harmless if they did, and its claim is read back by its token.
// Essay: docs/internals/ambiguous-commits.md.

import { SettlementRefusedError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import type { Moment } from "../shared/moment.js";
import { momentOf, type Ports } from "../shared/ports.js";
import { isUnavailable } from "../shared/retry-while-unavailable.js";
import { countOf } from "../store/record.js";
import type { Claim, ExchangeAnswer, Settlement, Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { RunnableJob } from "./attempt.js";
import type { Backoff } from "./backoff.js";
import { type ClaimPlanner, type ClaimRequest, NO_CLAIM_REQUEST } from "./claim-planner.js";
import type { Leases } from "./leases.js";

/**
 * Three at a time: a database works on two of them and has the next one at hand while the runs of the last are
 * executed, so that it never waits for this process.
 */
const EXCHANGES_MAX = 3;
/** One more beside the first is worth it only for this much work. */
const NEXT_EXCHANGE_MIN = 100;

export type WorkerExchangeParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly queues: readonly string[] | null;
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  /** Each run gets a lease of its own: a worker elsewhere may take it over. */
  readonly isApart: boolean;
  readonly emit: Emit;
  readonly meter: Meter;
  readonly claimPlanner: ClaimPlanner;
  readonly settlementBuffer: SettlementBuffer;
  readonly leases: Leases;
  readonly backoff: Backoff;
  /** Aborts when the worker is no more: nothing is sent after it. */
  readonly over: AbortSignal;
  /** These came. `sentAt` is when their leases began to count, `claimedMs` when their time did. */
  readonly onClaims: (claims: readonly Claim[], since: ClaimedSince) => void;
  /** These have reached the database. */
  readonly onSettled: (settlements: readonly Settlement[]) => void;
  /** What comes after a batch is ready. */
  readonly onContinued: () => void;
  /** A limit lets the next run through after this much time. */
  readonly onLimitedIn: (delayMs: number) => void;
  /** One has ended, or a claim was read back: there may be a next step. */
  readonly onOver: () => void;
};

export type ClaimedSince = { readonly sentAt: Moment; readonly claimedMs: number };

export class Exchange {
  readonly #params: WorkerExchangeParams;
  #count = 0;

  constructor(params: WorkerExchangeParams) {
    this.#params = params;
  }

  /** How many are under way. */
  get count(): number {
    return this.#count;
  }

  /** Whether one more is worth it now. */
  get isWanted(): boolean {
    const { backoff, over, claimPlanner, settlementBuffer } = this.#params;
    if (backoff.isOn || this.#count >= EXCHANGES_MAX || over.aborted) return false;
    const wanted = claimPlanner.wanted();
    if (this.#count === 0)
      return settlementBuffer.length > 0 || wanted > 0 || claimPlanner.wantsSuspect();
    // One more claim beside the first is worth it only where the one before brought all it asked for.
    const isBehind = claimPlanner.hasMore && wanted >= NEXT_EXCHANGE_MIN;
    return isBehind || settlementBuffer.length >= NEXT_EXCHANGE_MIN;
  }

  async send(): Promise<void> {
    const { store, ports, holder, queues, jobs, isApart } = this.#params;
    const { claimPlanner, settlementBuffer, backoff, leases } = this.#params;
    const wanted = claimPlanner.nextRequest();
    const settlements = settlementBuffer.take({ hasClaim: wanted.limit > 0 });
    // What may be refused again would take the claim with it.
    const request = settlementBuffer.isDoubtful(settlements) ? NO_CLAIM_REQUEST : wanted;
    const sentAt = momentOf(ports.clock);
    const token = ports.ids.unique();
    this.#count += 1;
    const limited = claimPlanner.sent(request);
    const whole = leases.asWhole(settlements);
    try {
      const names = [...jobs.keys()];
      const answer = await store.exchange({
        holder,
        token,
        settlements: whole ?? settlements,
        isWholeLease: whole !== null,
        limit: request.limit,
        wantsSuspect: request.wantsSuspect,
        queues,
        jobs: names,
        chance: ports.chance.next(),
        apart: isApart ? names : [],
        ...limited,
      });
      claimPlanner.returned(request);
      backoff.recovered("exchange");
      this.#settled(settlements, answer);
      if (request.limit > 0) this.#claimed(request, answer.claims, sentAt);
      if (answer.limitedInMs != null) this.#params.onLimitedIn(Math.max(1, answer.limitedInMs));
    } catch (error) {
      if (isUnavailable(error)) settlementBuffer.putBack(settlements);
      else this.#refused(settlements, error);
      await backoff.failed("exchange", error);
      if (request.limit > 0) void this.#readBack({ token, request, claimedMs: sentAt.monotonicMs });
    } finally {
      this.#count -= 1;
      this.#params.onOver();
    }
  }

  #settled(settlements: readonly Settlement[], { stale, hasContinued }: ExchangeAnswer): void {
    const { store, emit, settlementBuffer, leases } = this.#params;
    for (const { id, fence } of stale) emit("run.stale", { run: id, fence });
    if (hasContinued) {
      this.#params.onContinued();
      store.wake();
    }
    if (settlements.length === 0) return;
    settlementBuffer.taken(settlements);
    // Renewed until now: while its settlement travelled, a run was still ours.
    for (const { fence } of settlements) leases.letGo(fence);
    this.#params.onSettled(settlements);
  }

  #refused(settlements: readonly Settlement[], error: unknown): void {
    const { emit, settlementBuffer, leases } = this.#params;
    const givenUp = settlementBuffer.refused(settlements, error);
    if (givenUp === null) return;
    const { settlement, becomes } = givenUp;
    if (becomes === "let_go") leases.letGo(settlement.fence);
    const facts = { run: settlement.id, fence: settlement.fence, becomes };
    emit("run.unsettled", { ...facts, error: describeFailure(error) }, error);
  }

  #claimed(request: ClaimRequest, claims: readonly Claim[], sentAt: Moment): void {
    const { claimPlanner, meter, onClaims } = this.#params;
    meter.claimed(countOf(claims));
    claimPlanner.answered(request, claims);
    onClaims(claims, { sentAt, claimedMs: sentAt.monotonicMs });
  }

  /**
   * Whatever was claimed under this token and still stands is ours. It is asked for until there is an
   * answer: what is not read back waits for its lease to expire and has burnt an attempt.
   */
  async #readBack(asked: {
    readonly token: string;
    readonly request: ClaimRequest;
    readonly claimedMs: number;
  }): Promise<void> {
    const { store, ports, holder, claimPlanner, leases, backoff, over, onClaims } = this.#params;
    const { token, request, claimedMs } = asked;
    for (let isKnown = false; !isKnown && !over.aborted; ) {
      try {
        // Counted from now: the answer says what is left of the lease now.
        const sentAt = momentOf(ports.clock);
        const claims = await store.claimsByToken({ holder, token });
        const fresh = claims.filter(({ fence }) => !leases.has(fence));
        onClaims(fresh, { sentAt, claimedMs });
        isKnown = true;
      } catch (error) {
        await backoff.failed("read back a claim", error);
      }
    }
    claimPlanner.returned(request);
    this.#params.onOver();
  }
}

// Settlements that have not reached the database yet, in order, taken in portions that drivers and
// servers accept. What was sent and not answered is put back: repeating it is harmless. What the database
// refuses travels alone from then on, without a claim, so that one that it never takes holds back neither
// the others nor new work.

/** As many as a claim brings: what two of them brought is settled by two exchanges at once. */
const COUNT_MAX = 1_000;
const CHARS_MAX = 8 * 1024 * 1024;
/** A database that takes others refuses a settlement this often before something plainer is sent. */
const REFUSALS_MAX = 3;

type Doubt = {
  readonly refusals: number;
  /** How many portions had been taken when this one was refused first. */
  readonly takenBefore: number;
  readonly isPlain: boolean;
};

export class SettlementBuffer {
  #settlements: Settlement[] = [];
  readonly #doubts = new Map<Settlement, Doubt>();
  #takenCount = 0;
  #wasDoubtful = false;

  get length(): number {
    return this.#settlements.length;
  }

  push(settlement: Settlement): void {
    this.#settlements.push(settlement);
  }

  /** With a claim to be sent too, what is in doubt and that claim take turns: none waits for the other. */
  take({ hasClaim }: { readonly hasClaim: boolean }): Settlement[] {
    const all = this.#settlements;
    const isInDoubt = this.isDoubtful(all);
    const isClaimsTurn = isInDoubt && hasClaim && this.#wasDoubtful;
    this.#wasDoubtful = isInDoubt && !isClaimsTurn;
    if (isClaimsTurn) return [];
    let count = 0;
    let chars = 0;
    while (count < all.length && count < COUNT_MAX && chars < CHARS_MAX) {
      const settlement = all[count] as Settlement;
      if (this.#doubts.size > 0 && this.#doubts.has(settlement)) {
        if (count === 0) count = 1;
        break;
      }
      chars += charsOf(settlement);
      count += 1;
    }
    this.#settlements = count === all.length ? [] : all.slice(count);
    return count === all.length ? all : all.slice(0, count);
  }

  /** Whether the first of these was refused before; nothing else travels with it. */
  isDoubtful([first]: readonly Settlement[]): boolean {
    return this.#doubts.size > 0 && first !== undefined && this.#doubts.has(first);
  }

  putBack(settlements: readonly Settlement[]): void {
    this.#settlements = [...settlements, ...this.#settlements];
  }

  /** The database has taken these. */
  taken(settlements: readonly Settlement[]): void {
    this.#takenCount += 1;
    if (this.#doubts.size > 0)
      for (const settlement of settlements) this.#doubts.delete(settlement);
  }

  /**
   * The database answers, and refuses these. Which one of several is at fault is found by sending each
   * alone. One that is refused while others are taken is replaced by a plain failure, which has nothing of
   * the user's in it; answers what became of it, if it was given up.
   */
  refused(settlements: readonly Settlement[], error: unknown): GivenUp | null {
    const [only] = settlements;
    if (only === undefined || settlements.length > 1) {
      for (const settlement of settlements) this.#doubt(settlement, NO_REFUSAL);
      return null;
    }
    const doubt = this.#doubts.get(only) ?? { ...NO_REFUSAL, takenBefore: this.#takenCount };
    this.#doubts.delete(only);
    const refusals = doubt.refusals + 1;
    const isAlone = refusals >= REFUSALS_MAX && this.#takenCount > doubt.takenBefore;
    if (!isAlone) {
      this.#doubt(only, { ...doubt, refusals });
      return null;
    }
    const plainer = doubt.isPlain ? null : plainFailure(only, error);
    if (plainer !== null) this.#doubt(plainer, { ...NO_REFUSAL, isPlain: true });
    return { settlement: only, becomes: plainer === null ? "let_go" : "failed" };
  }

  #doubt(settlement: Settlement, doubt: Omit<Doubt, "takenBefore"> & Partial<Doubt>): void {
    this.#doubts.set(settlement, { takenBefore: this.#takenCount, ...doubt });
    this.#settlements.push(settlement);
  }
}

const NO_REFUSAL = { refusals: 0, isPlain: false };

/** A settlement that is no longer tried: the run fails instead, or its lease is left to run out. */
export type GivenUp = { readonly settlement: Settlement; readonly becomes: "failed" | "let_go" };

/** What is handed back has nothing plainer: its lease runs out by itself, and nothing was done. */
function plainFailure(settlement: Settlement, error: unknown): Settlement | null {
  if (settlement.to === "pending" && settlement.end === "handed_back") return null;
  const { id, fence, mode, schedule, batch, isLimited, ranMs } = settlement;
  const refusal = new SettlementRefusedError(describeFailure(error).message);
  const common = { id, fence, mode, schedule, batch, isLimited, ranMs };
  return { ...common, to: "failed", result: null, error: JSON.stringify(describeFailure(refusal)) };
}

function charsOf(settlement: Settlement): number {
  const result = settlement.to === "pending" ? 0 : (settlement.result?.length ?? 0);
  return result + (settlement.error?.length ?? 0);
}
