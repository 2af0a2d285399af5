// Sends settlements and claims to the database for a worker: each round trip carries both, in one commit. If the
// answer is lost, nobody knows whether the commit took effect. The settlements are then sent again under the same
// fence, which is harmless, and the claim is read back by its token. It never executes a run.
// Essay: docs/internals/ambiguous-commits.md.

import { SettlementRefusedError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { type Clock, delay, type Moment, momentOf, type Ports } from "../shared/ports.js";
import { isUnavailable } from "../shared/retry-while-unavailable.js";
import { type Claim, countOf, type ExchangeResult, type Settlement } from "../store/claims.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { RunnableJob } from "./attempt.js";
import { type ClaimPlanner, type ClaimRequest, NO_CLAIM_REQUEST } from "./claim-planner.js";
import type { Leases } from "./leases.js";

/**
 * Three in flight: the database works on two and has the next one ready while this process executes the
 * runs of the last, so that it never waits for this process.
 */
const EXCHANGES_MAX = 3;
/** A second exchange in flight is worth it only for this many runs. */
const NEXT_EXCHANGE_MIN = 100;

export type WorkerExchangeParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly queues: readonly string[] | null;
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  /** Each run gets its own lease: a remote worker may take it over. */
  readonly isApart: boolean;
  readonly emit: Emit;
  readonly meter: Meter;
  readonly claimPlanner: ClaimPlanner;
  readonly settlementBuffer: SettlementBuffer;
  readonly leases: Leases;
  readonly backoff: Backoff;
  /** Aborts when the worker is closed: nothing is sent after it. */
  readonly over: AbortSignal;
  readonly receiver: ExchangeReceiver;
  readonly signals: Pick<WorkerSignals, "continued" | "postponed">;
  /** Called when an exchange has ended, or a claim was read back: another one may be wanted. */
  readonly schedule: () => void;
};

/** Takes the results of exchanges, inside the worker. */
export interface ExchangeReceiver {
  /** Leases count from `sentAt`, timeouts from `claimedMs`. */
  claimed(claims: readonly Claim[], since: ClaimedSince): void;
  /** The database has stored these settlements. */
  settled(settlements: readonly Settlement[]): void;
}

/** The signals that the workers of an instance send to its other parts, and to one another. */
export interface WorkerSignals {
  /** A worker holds new leases to renew. */
  claimed(): void;
  /** The database has stored settlements. */
  settled(settlements: readonly Settlement[]): void;
  /** A run becomes due, or a limit lets the next run start, after this delay. */
  postponed(delayMs: number): void;
  /** A batch has ended and its `then` run is ready; any worker of the instance may execute it. */
  continued(): void;
  /** A worker stops renewing a lease that is still valid. */
  letGo(): void;
  /** A worker with a claim budget holds nothing, and claims nothing until the next wake-up. */
  drained(): void;
}

export type ClaimedSince = { readonly sentAt: Moment; readonly claimedMs: number };

export class Exchange {
  readonly #params: WorkerExchangeParams;
  #count = 0;

  constructor(params: WorkerExchangeParams) {
    this.#params = params;
  }

  /** How many exchanges are in flight. */
  get count(): number {
    return this.#count;
  }

  /** Whether another exchange is worth sending now. */
  get isWanted(): boolean {
    const { backoff, over, claimPlanner, settlementBuffer } = this.#params;
    if (backoff.isOn || this.#count >= EXCHANGES_MAX || over.aborted) return false;
    const wanted = claimPlanner.wanted();
    if (this.#count === 0)
      return settlementBuffer.length > 0 || wanted > 0 || claimPlanner.wantsSuspect();
    // A second claim in flight is worth it only if the last one returned as many runs as it requested.
    const isBehind = claimPlanner.hasMore && wanted >= NEXT_EXCHANGE_MIN;
    return isBehind || settlementBuffer.length >= NEXT_EXCHANGE_MIN;
  }

  async send(): Promise<void> {
    const { store, ports, holder, queues, jobs, isApart } = this.#params;
    const { claimPlanner, settlementBuffer, backoff, leases, signals } = this.#params;
    const wanted = claimPlanner.nextRequest();
    const settlements = settlementBuffer.take({ hasClaim: wanted.limit > 0 });
    // A settlement that may be refused again would make the claim fail too.
    const request = settlementBuffer.isDoubtful(settlements) ? NO_CLAIM_REQUEST : wanted;
    const sentAt = momentOf(ports.clock);
    const token = ports.ids.unique();
    this.#count += 1;
    const limited = claimPlanner.sent(request);
    const wholeLease = leases.asWhole(settlements);
    try {
      const names = [...jobs.keys()];
      const result = await store.claims.exchange({
        holder,
        token,
        settlements: wholeLease ?? settlements,
        isWholeLease: wholeLease !== null,
        limit: request.limit,
        wantsSuspect: request.wantsSuspect,
        queues,
        jobs: names,
        random: ports.random.next(),
        apart: isApart ? names : [],
        ...limited,
      });
      claimPlanner.ended(request);
      backoff.recovered("exchange");
      this.#settled(settlements, result);
      if (request.limit > 0) this.#claimed(request, result.claims, sentAt);
      if (result.limitedInMs != null) signals.postponed(Math.max(1, result.limitedInMs));
    } catch (error) {
      if (isUnavailable(error)) settlementBuffer.putBack(settlements);
      else this.#refused(settlements, error);
      await backoff.failed("exchange", error);
      if (request.limit > 0) void this.#readBack({ token, request, claimedMs: sentAt.monotonicMs });
    } finally {
      this.#count -= 1;
      this.#params.schedule();
    }
  }

  #settled(settlements: readonly Settlement[], { stale, hasContinued }: ExchangeResult): void {
    const { store, emit, settlementBuffer, leases } = this.#params;
    for (const { id, fence } of stale) emit("run.stale", { run: id, fence });
    if (hasContinued) {
      this.#params.signals.continued();
      store.wake();
    }
    if (settlements.length === 0) return;
    settlementBuffer.taken(settlements);
    // Released only now: the run was held while its settlement was in flight.
    for (const { fence } of settlements) leases.letGo(fence);
    this.#params.receiver.settled(settlements);
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
    const { claimPlanner, meter, receiver } = this.#params;
    meter.claimed(countOf(claims));
    claimPlanner.claimed(request, claims);
    receiver.claimed(claims, { sentAt, claimedMs: sentAt.monotonicMs });
  }

  /**
   * Reads a claim back whose answer was lost: valid leases under this token belong to this worker. It is retried
   * until the database answers: a run that is not read back waits for its lease to expire and has used up an attempt.
   */
  async #readBack(lost: {
    readonly token: string;
    readonly request: ClaimRequest;
    readonly claimedMs: number;
  }): Promise<void> {
    const { store, ports, holder, claimPlanner, leases, backoff, over, receiver } = this.#params;
    const { token, request, claimedMs } = lost;
    for (let isKnown = false; !isKnown && !over.aborted; ) {
      try {
        // The lease counts from this request: the answer returns the time that is left of it.
        const sentAt = momentOf(ports.clock);
        const claims = await store.claims.byToken({ holder, token });
        const fresh = claims.filter(({ fence }) => !leases.has(fence));
        receiver.claimed(fresh, { sentAt, claimedMs });
        isKnown = true;
      } catch (error) {
        await backoff.failed("read back a claim", error);
      }
    }
    claimPlanner.ended(request);
    this.#params.schedule();
  }
}

// ── backoff ──────────────────────────────────────────────────────────────────────────────────────
// Pauses the requests of a worker to a failing database: 100 ms after the first failure, twice as long after each
// further one, at most 5 s. Emits every failure, and the recovery.

const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 5_000;

export class Backoff {
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #over: AbortSignal;
  #failures = 0;
  #isOn = false;

  constructor(params: {
    readonly clock: Clock;
    readonly emit: Emit;
    /** Aborts when the worker is closed: the wait then ends early. */
    readonly over: AbortSignal;
  }) {
    this.#clock = params.clock;
    this.#emit = params.emit;
    this.#over = params.over;
  }

  /** Whether requests are paused now. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** How often the database has failed in a row. */
  get failures(): number {
    return this.#failures;
  }

  async failed(what: string, error: unknown): Promise<void> {
    this.#failures += 1;
    const retryInMs = Math.min(
      BACKOFF_MAX_MS,
      BACKOFF_FIRST_MS * 2 ** Math.min(this.#failures - 1, 10),
    );
    this.#isOn = true;
    this.#emit("store.failed", { what, error: describeFailure(error), retryInMs }, error);
    await delay(this.#clock, retryInMs, this.#over);
    this.#isOn = false;
  }

  recovered(what: string): void {
    if (this.#failures > 0) this.#emit("store.recovered", { what });
    this.#failures = 0;
  }
}

// ── settlement buffer ────────────────────────────────────────────────────────────────────────────
// Holds settlements that the database has not stored yet, in order, and returns them in portions that drivers and
// servers accept. A portion whose answer was lost is put back: repeating it is harmless. A settlement that the database
// refuses is sent alone from then on, without a claim, so that one that is never accepted blocks neither the
// others nor new work.

/** As many as one claim returns, so that the runs of two claims are settled by two exchanges in flight. */
const COUNT_MAX = 1_000;
const CHARS_MAX = 8 * 1024 * 1024;
/** A settlement that was refused this often, while others were stored, is replaced by a plain failure. */
const REFUSALS_MAX = 3;

type Doubt = {
  readonly refusals: number;
  /** How many portions had been stored when this settlement was first refused. */
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

  /** The next portion. A refused settlement and a claim take turns, so that neither waits for ever. */
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

  /** Whether the first of these was refused before; such a settlement is sent alone. */
  isDoubtful([first]: readonly Settlement[]): boolean {
    return this.#doubts.size > 0 && first !== undefined && this.#doubts.has(first);
  }

  putBack(settlements: readonly Settlement[]): void {
    this.#settlements = [...settlements, ...this.#settlements];
  }

  /** The database has stored these. */
  taken(settlements: readonly Settlement[]): void {
    this.#takenCount += 1;
    if (this.#doubts.size > 0)
      for (const settlement of settlements) this.#doubts.delete(settlement);
  }

  /**
   * The database refused these. Each is then sent alone, to find the one at fault. A settlement that is
   * refused while others are stored is replaced by a plain failure, which contains no value of the user. Returns the
   * settlement that was given up, or null.
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

/** A settlement that is not sent again: the run fails instead, or its lease expires. */
export type GivenUp = { readonly settlement: Settlement; readonly becomes: "failed" | "let_go" };

/** Null for a hand-back, which cannot be plainer: its lease expires, and the run had not started. */
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
