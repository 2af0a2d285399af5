// The round trips of a worker: each carries what has ended and asks for what comes next, in one commit.
// Whether one without an answer took effect is unknown: its settlements are repeated under the same fence,
// which is harmless if they did, and its claim is read back by its token.
// Essay: docs/internals/ambiguous-commits.md.

import { describeFailure } from "../shared/failure.js";
import type { Moment } from "../shared/moment.js";
import { momentOf, type Ports } from "../shared/ports.js";
import { isAbsent } from "../shared/retry-while-unavailable.js";
import { countOf } from "../store/record.js";
import type { Claim, ExchangeAnswer, Settlement, Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { Backoff } from "./backoff.js";
import { type Demand, NO_ORDER, type Order } from "./claim-planner.js";
import type { RunnableJob } from "./execution.js";
import type { Leases } from "./leases.js";
import type { Outbox } from "./settlement-buffer.js";

/**
 * Three at a time: a database works on two of them and has the next one at hand while the runs of the last are
 * executed, so that it never waits for this process.
 */
const EXCHANGES_MAX = 3;
/** One more beside the first is worth it only for this much work. */
const NEXT_EXCHANGE_MIN = 100;

export type ExchangesParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly queues: readonly string[] | null;
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  /** Each run gets a lease of its own: a worker elsewhere may take it over. */
  readonly isApart: boolean;
  readonly emit: Emit;
  readonly meter: Meter;
  readonly demand: Demand;
  readonly outbox: Outbox;
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

export class Exchanges {
  readonly #params: ExchangesParams;
  #count = 0;

  constructor(params: ExchangesParams) {
    this.#params = params;
  }

  /** How many are under way. */
  get count(): number {
    return this.#count;
  }

  /** Whether one more is worth it now. */
  get isWanted(): boolean {
    const { backoff, over, demand, outbox } = this.#params;
    if (backoff.isOn || this.#count >= EXCHANGES_MAX || over.aborted) return false;
    const wanted = demand.wanted();
    if (this.#count === 0) return outbox.length > 0 || wanted > 0 || demand.wantsSuspect();
    // One more claim beside the first is worth it only where the one before brought all it asked for.
    const isBehind = demand.hasMore && wanted >= NEXT_EXCHANGE_MIN;
    return isBehind || outbox.length >= NEXT_EXCHANGE_MIN;
  }

  async send(): Promise<void> {
    const { store, ports, holder, queues, jobs, isApart } = this.#params;
    const { demand, outbox, backoff, leases } = this.#params;
    const wanted = demand.order();
    const settlements = outbox.take({ hasClaim: wanted.limit > 0 });
    // What may be refused again would take the claim with it.
    const order = outbox.isDoubtful(settlements) ? NO_ORDER : wanted;
    const sentAt = momentOf(ports.clock);
    const token = ports.ids.unique();
    this.#count += 1;
    const limited = demand.sent(order);
    const whole = leases.asWhole(settlements);
    try {
      const names = [...jobs.keys()];
      const answer = await store.exchange({
        holder,
        token,
        settlements: whole ?? settlements,
        isWholeLease: whole !== null,
        limit: order.limit,
        wantsSuspect: order.wantsSuspect,
        queues,
        jobs: names,
        chance: ports.chance.next(),
        apart: isApart ? names : [],
        ...limited,
      });
      demand.returned(order);
      backoff.recovered("exchange");
      this.#settled(settlements, answer);
      if (order.limit > 0) this.#claimed(order, answer.claims, sentAt);
      if (answer.limitedInMs != null) this.#params.onLimitedIn(Math.max(1, answer.limitedInMs));
    } catch (error) {
      if (isAbsent(error)) outbox.putBack(settlements);
      else this.#refused(settlements, error);
      await backoff.failed("exchange", error);
      if (order.limit > 0) void this.#readBack({ token, order, claimedMs: sentAt.monotonicMs });
    } finally {
      this.#count -= 1;
      this.#params.onOver();
    }
  }

  #settled(settlements: readonly Settlement[], { stale, hasContinued }: ExchangeAnswer): void {
    const { store, emit, outbox, leases } = this.#params;
    for (const { id, fence } of stale) emit("run.stale", { run: id, fence });
    if (hasContinued) {
      this.#params.onContinued();
      store.wake();
    }
    if (settlements.length === 0) return;
    outbox.taken(settlements);
    // Renewed until now: while its settlement travelled, a run was still ours.
    for (const { fence } of settlements) leases.letGo(fence);
    this.#params.onSettled(settlements);
  }

  #refused(settlements: readonly Settlement[], error: unknown): void {
    const { emit, outbox, leases } = this.#params;
    const givenUp = outbox.refused(settlements, error);
    if (givenUp === null) return;
    const { settlement, becomes } = givenUp;
    if (becomes === "let_go") leases.letGo(settlement.fence);
    const facts = { run: settlement.id, fence: settlement.fence, becomes };
    emit("run.unsettled", { ...facts, error: describeFailure(error) }, error);
  }

  #claimed(order: Order, claims: readonly Claim[], sentAt: Moment): void {
    const { demand, meter, onClaims } = this.#params;
    meter.claimed(countOf(claims));
    demand.answered(order, claims);
    onClaims(claims, { sentAt, claimedMs: sentAt.monotonicMs });
  }

  /**
   * Whatever was claimed under this token and still stands is ours. It is asked for until there is an
   * answer: what is not read back waits for its lease to expire and has burnt an attempt.
   */
  async #readBack(asked: {
    readonly token: string;
    readonly order: Order;
    readonly claimedMs: number;
  }): Promise<void> {
    const { store, ports, holder, demand, leases, backoff, over, onClaims } = this.#params;
    const { token, order, claimedMs } = asked;
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
    demand.returned(order);
    this.#params.onOver();
  }
}
