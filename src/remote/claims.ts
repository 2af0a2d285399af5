// Claims of workers elsewhere: each waits for a while where there is nothing, and answers the same when it is asked
// again under the same name. Whoever claims is announced as an instance, and looks after what is due.

import { createHash } from "node:crypto";
import type { RunId } from "../runs/rules/run.js";
import { keptMessage } from "../runs/rules/run-logs.js";
import { InstanceTakenError } from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { encodeItem } from "../shared/json.js";
import { delay, type Ports } from "../shared/ports.js";
import type { KeptLevel } from "../store/logs.js";
import { countOf } from "../store/record.js";
import type { Claim, ClaimedRun, ExchangeParams, Store } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import { promoteOnce, reapOnce } from "../worker/passes.js";
import { factsOf } from "../worker/settlement.js";

/** How often a claim that waits looks again when nothing wakes it. */
const LOOK_EVERY_MS = 1_000;
/** Instances whose numbers are remembered, for so long after they were used. A name is its owner's for longer. */
const HOLDERS_MAX = 10_000;
const HOLDER_MS = 30_000;
const POLL_MS = 60_000;

type Seen = Awaited<ReturnType<Store["poll"]>>;

/** Who calls over the network, and what it is limited to. */
export type RemoteCaller = {
  /** Whose credential it is: names of workers and the runs that they claim belong to it. */
  readonly by: string;
  /** The name that the worker claimed under; left out: any worker with this credential. */
  readonly instance?: string;
  /** What the credential is limited to. Left out: all. */
  readonly jobs?: readonly string[];
  readonly queues?: readonly string[];
};

/** Callers of the library itself, which may do everything. */
const CODE: RemoteCaller = { by: "code" };

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
  readonly #holders = new Map<string, { no: Promise<number>; works: string; usedMs: number }>();
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

  async claim(params: RemoteClaimParams, caller = CODE): Promise<readonly Claim[]> {
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
   * The number of a remote worker's instance, which is announced when it first calls. Throws an
   * `InstanceTakenError` where a live instance of another owner has the name.
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
    const no = await store.announceRemote({ instanceId: instance, by, works, pollMs: POLL_MS });
    if (no === null) throw new InstanceTakenError(instance);
    return no;
  }

  async #claim(
    params: RemoteClaimParams & { readonly token: string; readonly caller: RemoteCaller },
  ): Promise<readonly Claim[]> {
    const store = await this.#store();
    const { instance, token, claimId, jobs, limit, waitMs = 0, signal, caller } = params;
    const { clock } = this.#ports;
    const queues = caller.queues ?? null;
    const holder = await this.holder(store, instance, { caller, jobs });
    const earlier = claimId === undefined ? [] : await store.claimsByToken({ holder, token });
    if (earlier.length > 0) return this.#begun(store, earlier);
    const untilMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const seen = await this.#lookAfter(store, { holder, jobs, queues });
      const isNamed = claimId !== undefined;
      const claims = await this.#take(store, seen, { holder, token, isNamed, jobs, queues, limit });
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
    order: Pick<ExchangeParams, "holder" | "token" | "isNamed" | "jobs" | "queues" | "limit">,
  ): Promise<readonly Claim[]> {
    const { chance } = this.#ports;
    const kinds = seen.halt ? [] : seen.hasSuspect ? [true, false] : [false];
    if (seen.hasReady && chance.next() < 0.5) kinds.reverse();
    for (const wantsSuspect of kinds) {
      const { claims } = await store.exchange({
        ...order,
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
  async #lookAfter(
    store: Store,
    own: Pick<ExchangeParams, "holder" | "jobs" | "queues">,
  ): Promise<Seen> {
    const poll = () => store.poll({ ...own, isScheduler: false });
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

// What goes to workers elsewhere and comes from them: a run as they get it, and what they say about it in the
// words of the store.

/** A run as a worker elsewhere gets it. */
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
  /** The W3C trace context to go on with; null where nobody traced its enqueue. */
  readonly traceparent: string | null;
};

export type RemoteItem = {
  readonly key: string;
  readonly outcome?: string;
  readonly value?: unknown;
  readonly error?: RemoteError;
  readonly durationMs?: number;
};

export type RemoteError = {
  readonly code?: string | undefined;
  readonly message: string;
  readonly stack?: string | undefined;
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

export function toRemoteRuns(claim: Claim): RemoteRun[] {
  const { job, fence, attempt, leaseMs, policy } = claim;
  return claim.runs.map(({ id, input, mode, nominalAt, tags, trace }) => ({
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
  }));
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

export function toStoredError({ code = "REMOTE", message, stack }: RemoteError): StoredError {
  return {
    code,
    name: "RemoteError",
    message: keptMessage(message),
    ...(stack === undefined ? {} : { stack: keptMessage(stack) }),
  };
}
