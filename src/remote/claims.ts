// Claims runs for remote workers. A claim waits if there is nothing to do, and returns the same runs when it is repeated
// under the same name. A claiming worker is announced as an instance, and its claims also promote due runs and reclaim
// expired ones.

import { createHash } from "node:crypto";
import type { RunId } from "../runs/rules/run.js";
import { InstanceTakenError } from "../shared/errors.js";
import { encodeItem } from "../shared/json.js";
import { delay, type Ports } from "../shared/ports.js";
import { type Claim, type ClaimedRun, countOf, type ExchangeParams } from "../store/claims.js";
import type { KeptLevel } from "../store/logs.js";
import type { Store } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import { isFirstGrant } from "../worker/attempt-view.js";
import { factsOf } from "../worker/completer.js";
import { promoteOnce, reclaimOnce, wakeOnce } from "../worker/passes.js";
import { type RemoteError, toStoredError } from "./remote-error.js";
import { claimedSteps, NO_STEPS, type RemoteSteps } from "./remote-steps.js";

/** How often a waiting claim polls if nothing wakes it. */
const POLL_EVERY_MS = 1_000;
/** How many instance numbers are cached, and for how long after their last use; the owner keeps its name for longer. */
const HOLDERS_MAX = 10_000;
const HOLDER_MS = 30_000;
const POLL_MS = 60_000;

type Seen = Awaited<ReturnType<Store["work"]["poll"]>>;

/** A caller over the network and its limits. */
export type RemoteCaller = {
  /** The owner of the credential, and so of its worker names and claimed runs. */
  readonly by: string;
  /** The name that the worker claimed under; left out: any worker with this credential. */
  readonly instance?: string;
  /** Limits of the credential. Left out: none. */
  readonly jobs?: readonly string[];
  readonly queues?: readonly string[];
  /** Throws if the credential has become invalid. A claim that waits calls it before each further look. */
  readonly recheck?: () => Promise<void>;
};

/** Callers of the library itself, which may do everything. */
const CODE: RemoteCaller = { by: "code" };

export type RemoteClaimParams = {
  readonly instance: string;
  readonly claimId?: string;
  readonly jobs: readonly string[];
  /** The jobs that the worker is announced with. @default `jobs` */
  readonly works?: readonly string[];
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
  readonly #holders = new Map<string, { no: Promise<number>; works: string; usedMs: number }>();
  /** Claims in progress, by caller, instance and claim id. */
  readonly #claiming = new Map<string, Promise<readonly RemoteRun[]>>();

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

  async claim(params: RemoteClaimParams, caller = CODE): Promise<readonly RemoteRun[]> {
    const { instance, claimId } = params;
    const token = claimId === undefined ? this.#ports.ids.unique() : tokenOf(instance, claimId);
    const under = JSON.stringify([caller.by, instance, token]);
    const claiming = this.#claiming.get(under) ?? this.#claim({ ...params, token, caller });
    this.#claiming.set(under, claiming);
    try {
      return await claiming;
    } finally {
      this.#claiming.delete(under);
    }
  }

  /**
   * The number of a remote worker's instance, which is announced at its first call. Throws an `InstanceTakenError` if a
   * live instance of another owner has the name.
   */
  holder(
    store: Store,
    instance: string,
    {
      caller = CODE,
      jobs,
    }: { readonly caller?: RemoteCaller; readonly jobs?: readonly string[] } = {},
  ): Promise<number> {
    const under = JSON.stringify([caller.by, instance]);
    const nowMs = this.#ports.clock.monotonicMs();
    const works = JSON.stringify([[...(jobs ?? [])].sort(), caller.queues ?? null]);
    const known = this.#holders.get(under);
    if (
      known &&
      nowMs - known.usedMs < HOLDER_MS &&
      (jobs === undefined || works === known.works)
    ) {
      known.usedMs = nowMs;
      return known.no;
    }
    const no = this.#announce(store, instance, caller, jobs ?? []);
    no.catch(() => this.#holders.delete(under));
    if (this.#holders.size >= HOLDERS_MAX) this.#holders.clear();
    this.#holders.set(under, { no, works, usedMs: nowMs });
    return no;
  }

  async #announce(
    store: Store,
    instance: string,
    { by, queues }: RemoteCaller,
    jobs: readonly string[],
  ): Promise<number> {
    const works = { jobs, queues: queues ?? null };
    const no = await store.instances.announceRemote({
      instanceId: instance,
      by,
      works,
      pollMs: POLL_MS,
    });
    if (no === null) throw new InstanceTakenError(instance);
    return no;
  }

  async #claim(
    params: RemoteClaimParams & { readonly token: string; readonly caller: RemoteCaller },
  ): Promise<readonly RemoteRun[]> {
    const store = await this.#store();
    const {
      instance,
      token,
      claimId,
      jobs,
      works = jobs,
      limit,
      waitMs = 0,
      signal,
      caller,
    } = params;
    const { clock } = this.#ports;
    const queues = caller.queues ?? null;
    const holder = await this.holder(store, instance, { caller, jobs: works });
    const earlier = claimId === undefined ? [] : await store.claims.byToken({ holder, token });
    if (earlier.length > 0) return this.#begun(store, earlier);
    const untilMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const seen = await this.#maintain(store, { holder, jobs, queues });
      const isNamed = claimId !== undefined;
      const claims = await this.#take(store, seen, { holder, token, isNamed, jobs, queues, limit });
      const leftMs = untilMs - clock.monotonicMs();
      if (claims.length > 0 || seen.hasReady) this.#meter.claimed(countOf(claims));
      if (claims.length > 0) return this.#begun(store, claims);
      if (leftMs <= 0 || signal?.aborted) return [];
      await this.#wakeOr(store, Math.min(leftMs, POLL_EVERY_MS), signal);
      await caller.recheck?.();
    }
  }

  /** Suspects are claimed alone. A random order keeps either kind from starving the other. */
  async #take(
    store: Store,
    seen: Seen,
    order: Pick<ExchangeParams, "holder" | "token" | "isNamed" | "jobs" | "queues" | "limit">,
  ): Promise<readonly Claim[]> {
    const { random } = this.#ports;
    const kinds = seen.pause ? [] : seen.hasSuspect ? [true, false] : [false];
    if (seen.hasReady && random.next() < 0.5) kinds.reverse();
    for (const wantsSuspect of kinds) {
      const { claims } = await store.claims.exchange({
        ...order,
        settlements: [],
        wantsSuspect,
        apart: order.jobs,
        limited: "last",
        random: random.next(),
      });
      if (claims.length > 0) return claims;
    }
    return [];
  }

  /** Marks runs as started when they are claimed: the real start in the remote worker is not known here. */
  async #begun(store: Store, claims: readonly Claim[]): Promise<readonly RemoteRun[]> {
    const grants = claims.flatMap(({ fence, runs }) => runs.map(({ id }) => ({ id, fence })));
    await store.leases.markStarted(grants);
    const begun: RemoteRun[] = [];
    for (const claim of claims)
      for (const run of claim.runs) begun.push(await this.#beginning(store, claim, run));
    return begun;
  }

  /** Steps and waits of earlier executions go with the run, and tell how late it goes on that has slept. */
  async #beginning(store: Store, claim: Claim, run: ClaimedRun): Promise<RemoteRun> {
    const wallMs = this.#ports.clock.wallMs();
    const grant = { id: run.id, fence: claim.fence };
    const { wokenAt, ...stored } = isFirstGrant({ claim, run })
      ? { ...NO_STEPS, wokenAt: null }
      : await claimedSteps(store, grant, run);
    const dueAt = run.laters === 0 ? run.dueAt : wokenAt;
    if (dueAt !== null) this.#meter.runStarted({ job: claim.job, dueAt, wallMs });
    if (this.#listens("run.started")) this.#emit("run.started", factsOf({ claim, run }));
    return toRemoteRun(claim, run, stored);
  }

  /** Promotes due runs and reclaims expired ones, for deployments with remote workers only. */
  async #maintain(
    store: Store,
    own: Pick<ExchangeParams, "holder" | "jobs" | "queues">,
  ): Promise<Seen> {
    const poll = () => store.work.poll({ ...own, isScheduler: false });
    const seen = await poll();
    if (!seen.hasDue && !seen.hasExpired && !seen.hasFreeGate && !seen.hasWakes) return seen;
    const random = () => this.#ports.random.next();
    if (seen.hasExpired) await reclaimOnce({ store, random, emit: this.#emit });
    if (seen.hasFreeGate) await this.#release(store);
    if (seen.hasWakes) await wakeOnce(store, random);
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

/** Derives the claim token from the caller's claim id, the same one every time. */
function tokenOf(instance: string, claimId: string): string {
  const hex = createHash("sha256")
    .update(JSON.stringify([instance, claimId]))
    .digest("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
}

// ── the shapes that remote workers get and send, and their conversion for the store ──

/** A run as a remote worker gets it. */
export type RemoteRun = {
  readonly id: RunId;
  readonly job: string;
  readonly fence: number;
  readonly attempt: number;
  readonly input: unknown;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly mode: string;
  readonly nominalAt: Date | null;
  readonly idempotencyKey: string;
  readonly tags: readonly string[];
  /** The W3C trace context to continue; null if its enqueue was not traced. */
  readonly traceparent: string | null;
} & RemoteSteps;

export type RemoteItem = {
  readonly key: string;
  readonly outcome?: string;
  readonly value?: unknown;
  readonly error?: RemoteError;
  readonly durationMs?: number;
};

export type RemoteLine = {
  readonly at?: Date;
  readonly level: KeptLevel;
  readonly message: string;
};

export type RemoteFailure = {
  readonly error: RemoteError;
  readonly permanent?: boolean;
  readonly retryAfterMs?: number;
};

function toRemoteRun(claim: Claim, run: ClaimedRun, stored: RemoteSteps): RemoteRun {
  const { job, fence, attempt, leaseMs, policy } = claim;
  const { id, input, mode, nominalAt, tags, trace } = run;
  return {
    id,
    job,
    fence,
    attempt,
    input: JSON.parse(input),
    leaseMs,
    timeoutMs: policy.timeoutMs,
    mode,
    nominalAt: nominalAt === null ? null : new Date(nominalAt),
    idempotencyKey: id,
    tags,
    traceparent: trace ?? null,
    ...stored,
  };
}

export function toItem({ key, outcome, value, error, durationMs = 0 }: RemoteItem) {
  const isFailed = error !== undefined;
  return {
    key,
    outcome: outcome ?? (isFailed ? "failed" : "ok"),
    value: isFailed ? null : encodeItem(key, value),
    error: isFailed ? JSON.stringify(toStoredError(error)) : null,
    durationMs: Math.max(0, Math.round(durationMs)),
  };
}
