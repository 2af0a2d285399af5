// Claims of workers elsewhere: each waits for a while where there is nothing, and answers the same when it is asked
// again under the same name. Whoever claims is announced as an instance, and looks after what is due.

import { createHash } from "node:crypto";
import { delay, type Ports } from "../core/ports.js";
import { countOf } from "../store/record.js";
import type { Claim, ClaimedRun, ExchangeParams, Store } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import { factsOf } from "./ending.js";
import { promoteOnce, reapOnce } from "./passes.js";

/** How often a claim that waits looks again when nothing wakes it. */
const LOOK_EVERY_MS = 1_000;
/** Instances whose numbers are remembered. */
const HOLDERS_MAX = 10_000;
const POLL_MS = 60_000;

type Seen = Awaited<ReturnType<Store["poll"]>>;

export type RemoteClaimParams = {
  readonly instance: string;
  readonly claimId?: string;
  readonly jobs: readonly string[];
  readonly limit: number;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
};

export class RemoteClaims {
  readonly #store: () => Promise<Store>;
  readonly #ports: Ports;
  readonly #emit: Emit;
  readonly #listens: (name: EventName) => boolean;
  readonly #meter: Meter;
  readonly #release: (store: Store) => Promise<unknown>;
  readonly #holders = new Map<string, Promise<number>>();
  /** The jobs that each was announced with. */
  readonly #works = new Map<string, string>();
  /** Claims under way, by who asked and how they named them. */
  readonly #claiming = new Map<string, Promise<readonly Claim[]>>();

  constructor(params: {
    readonly store: () => Promise<Store>;
    readonly ports: Ports;
    readonly emit: Emit;
    readonly listens: (name: EventName) => boolean;
    readonly meter: Meter;
    /** Opens the gates of runs whose turn has come. */
    readonly release: (store: Store) => Promise<unknown>;
  }) {
    this.#store = params.store;
    this.#ports = params.ports;
    this.#emit = params.emit;
    this.#listens = params.listens;
    this.#meter = params.meter;
    this.#release = params.release;
  }

  async claim(params: RemoteClaimParams): Promise<readonly Claim[]> {
    const { instance, claimId } = params;
    const token = claimId === undefined ? this.#ports.ids.unique() : tokenOf(instance, claimId);
    const under = `${instance} ${token}`;
    const claiming = this.#claiming.get(under) ?? this.#claim({ ...params, token });
    this.#claiming.set(under, claiming);
    try {
      return await claiming;
    } finally {
      this.#claiming.delete(under);
    }
  }

  /** The number of an instance elsewhere; it is announced when it is first heard of. */
  holder(store: Store, instance: string, jobs?: readonly string[]): Promise<number> {
    const works = jobs === undefined ? undefined : [...jobs].sort().join("\n");
    const known = this.#holders.get(instance);
    if (known && (works === undefined || works === this.#works.get(instance))) return known;
    if (works !== undefined) this.#works.set(instance, works);
    const announced = store.announce({
      instanceId: instance,
      app: null,
      release: null,
      jobs: [],
      schedules: [],
      isScheduler: false,
      works: { jobs: jobs ?? [], queues: null },
      pollMs: POLL_MS,
    });
    announced.catch(() => this.#holders.delete(instance));
    if (this.#holders.size >= HOLDERS_MAX) this.#forget();
    this.#holders.set(instance, announced);
    return announced;
  }

  #forget(): void {
    this.#holders.clear();
    this.#works.clear();
  }

  async #claim(params: RemoteClaimParams & { readonly token: string }): Promise<readonly Claim[]> {
    const store = await this.#store();
    const { instance, token, claimId, jobs, limit, waitMs = 0, signal } = params;
    const { clock } = this.#ports;
    const holder = await this.holder(store, instance, jobs);
    const earlier = claimId === undefined ? [] : await store.claimsByToken({ holder, token });
    if (earlier.length > 0) return this.#begun(store, earlier);
    const untilMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const seen = await this.#lookAfter(store, holder, jobs);
      const isNamed = claimId !== undefined;
      const claims = await this.#take(store, seen, { holder, token, isNamed, jobs, limit });
      const leftMs = untilMs - clock.monotonicMs();
      if (claims.length > 0 || seen.hasReady) this.#meter.claimed(countOf(claims));
      if (claims.length > 0) return this.#begun(store, claims);
      if (leftMs <= 0 || signal?.aborted) return [];
      await this.#wakeOr(store, Math.min(leftMs, LOOK_EVERY_MS), signal);
    }
  }

  /** Suspects come by themselves. Neither they nor the others may wait for the other kind to run dry. */
  async #take(
    store: Store,
    seen: Seen,
    order: Pick<ExchangeParams, "holder" | "token" | "isNamed" | "jobs" | "limit">,
  ): Promise<readonly Claim[]> {
    const { chance } = this.#ports;
    const kinds = seen.halt ? [] : seen.hasSuspect ? [true, false] : [false];
    if (seen.hasReady && chance.next() < 0.5) kinds.reverse();
    for (const wantsSuspect of kinds) {
      const { claims } = await store.exchange({
        ...order,
        queues: null,
        settlements: [],
        wantsSuspect,
        apart: order.jobs,
        limited: "last",
        chance: chance.next(),
      });
      if (claims.length > 0) return claims;
    }
    return [];
  }

  /** Nobody here can know when a worker elsewhere begins: its runs count as begun once it has them. */
  async #begun(store: Store, claims: readonly Claim[]): Promise<readonly Claim[]> {
    const grants = claims.flatMap(({ fence, runs }) => runs.map(({ id }) => ({ id, fence })));
    await store.markStarted(grants);
    for (const claim of claims) for (const run of claim.runs) this.#tellStart(claim, run);
    return claims;
  }

  #tellStart(claim: Claim, run: ClaimedRun): void {
    const wallMs = this.#ports.clock.wallMs();
    this.#meter.runStarted({ job: claim.job, dueAt: run.dueAt, wallMs });
    if (this.#listens("run.started")) this.#emit("run.started", factsOf({ claim, run }));
  }

  /** Where nothing else runs, whoever claims also sees to what is due and to silent holders. */
  async #lookAfter(store: Store, holder: number, jobs: readonly string[]): Promise<Seen> {
    const poll = () => store.poll({ holder, jobs, queues: null, isScheduler: false });
    const seen = await poll();
    if (!seen.hasDue && !seen.hasExpired && !seen.hasFreeGate) return seen;
    const chance = () => this.#ports.chance.next();
    if (seen.hasExpired) await reapOnce({ store, chance, emit: this.#emit });
    if (seen.hasFreeGate) await this.#release(store);
    await promoteOnce(store);
    return poll();
  }

  async #wakeOr(store: Store, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort();
    const stopListening = store.onWake(wake);
    signal?.addEventListener("abort", wake, { once: true });
    try {
      await delay(this.#ports.clock, waitMs, woken.signal);
    } finally {
      stopListening();
      signal?.removeEventListener("abort", wake);
    }
  }
}

/** A name of the caller's becomes a token of ours, the same one every time. */
function tokenOf(instance: string, claimId: string): string {
  const hex = createHash("sha256")
    .update(JSON.stringify([instance, claimId]))
    .digest("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
}
