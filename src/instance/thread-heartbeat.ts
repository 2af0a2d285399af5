// Sends lease heartbeats from a thread of its own, so that a handler that blocks the event loop keeps its run. The main
// thread posts its leases at every claim, before a handler can block anything, and when a remote worker takes a run over;
// the thread renews them on request. If the thread ends, the main thread renews by itself. Loaded only on request.

import { once } from "node:events";
import { Worker as Thread } from "node:worker_threads";
import { ConfigurationError, StoreUnavailableError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { type Clock, delay, type Timer } from "../shared/ports.js";
import type { RenewParams, RenewResult } from "../store/leases.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { LeaseHeartbeat } from "../worker/passes.js";
import { renewEveryMs, renewTimeoutMs } from "../worker/rules/lease.js";
import type { Config } from "./config.js";

// ── messages between the two threads ─────────────────────────────────────────────────────────────

export type HeldLease = { readonly fence: number; readonly leaseMs: number };

/** The `workerData` of the thread. */
export type ThreadData = Pick<Config, "schema" | "synchronous"> & {
  readonly database: string;
  readonly holder: number;
};

export type ToThread =
  | { readonly kind: "held"; readonly leases: readonly HeldLease[] }
  | {
      readonly kind: "renew";
      readonly id: number;
      readonly params: RenewParams;
      readonly leases: readonly HeldLease[];
    }
  | { readonly kind: "close" };

export type FromThread =
  | { readonly kind: "ready" }
  | { readonly kind: "blocked"; readonly blockedMs: number }
  | { readonly kind: "renewed"; readonly id: number; readonly answer: RenewResult }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };

// ── the main thread ──────────────────────────────────────────────────────────────────────────────

type PendingRenewal = {
  readonly resolve: (answer: RenewResult) => void;
  readonly reject: (error: Error) => void;
};

const CLOSE_TIMEOUT_MS = 2_000;

export async function threadHeartbeat(params: {
  readonly config: Config;
  readonly holder: number;
  readonly store: Store;
  readonly clock: Clock;
  readonly held: () => readonly HeldLease[];
  readonly emit: Emit;
}): Promise<LeaseHeartbeat> {
  const { config, holder, clock } = params;
  const { schema, synchronous } = config;
  const database = addressOf(config);
  const workerData: ThreadData = { database, schema, synchronous, holder };
  // With its folder: in the published package this module is in another folder (scripts/build.mjs).
  const thread = new Thread(new URL("../instance/heartbeat-thread.js", import.meta.url), {
    workerData,
    execArgv: [],
  });
  // Other work of an instance keeps the process alive; the heartbeat alone does not.
  thread.unref();
  // Rejects if the thread ends before it is ready.
  await once(thread, "message");
  const heartbeat = new ThreadHeartbeat(thread, params);
  return {
    isOnMainThread: false,
    changed: () => heartbeat.changed(),
    renew: (each) => heartbeat.renew(each),
    close: () => heartbeat.close(clock),
  };
}

/** The thread opens a connection of its own, so it needs an address. */
function addressOf({ database }: Config): string {
  if (typeof database === "string" && database !== "sqlite::memory:") return database;
  throw new ConfigurationError([
    {
      field: "start().worker.heartbeat",
      message:
        '"thread" opens a connection of its own: give `database` as a URL ("sqlite:app.db", "postgres://…"), or use "main"',
    },
  ]);
}

class ThreadHeartbeat {
  readonly #thread: Thread;
  readonly #store: Store;
  readonly #held: () => readonly HeldLease[];
  readonly #pending = new Map<number, PendingRenewal>();
  #count = 0;
  #isOver = false;
  #isClosing = false;

  constructor(
    thread: Thread,
    params: {
      readonly store: Store;
      readonly held: () => readonly HeldLease[];
      readonly emit: Emit;
    },
  ) {
    this.#thread = thread;
    this.#store = params.store;
    this.#held = params.held;
    thread.on("message", (message: FromThread) => {
      if (message.kind === "blocked") params.emit("loop.blocked", { blockedMs: message.blockedMs });
      else if (message.kind !== "ready") this.#received(message);
    });
    let cause: unknown = new Error("The thread of the heartbeat has ended.");
    thread.on("error", (error) => {
      cause = error;
    });
    thread.on("exit", () => {
      this.#isOver = true;
      const failure = new StoreUnavailableError({ tried: "renew leases from a thread", cause });
      for (const { reject } of this.#pending.values()) reject(failure);
      this.#pending.clear();
      if (this.#isClosing) return;
      const facts = { what: "heartbeat thread", error: describeFailure(cause), retryInMs: 0 };
      params.emit("store.failed", facts, cause);
    });
  }

  changed(): void {
    if (!this.#isOver) this.#post({ kind: "held", leases: this.#held() });
  }

  renew(params: RenewParams): Promise<RenewResult> {
    if (this.#isOver) return this.#store.leases.renew(params);
    this.#count += 1;
    const id = this.#count;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#post({ kind: "renew", id, params, leases: this.#held() });
    });
  }

  /** Lets the thread close its connection; terminates it after a time limit. */
  async close(clock: Clock): Promise<void> {
    this.#isClosing = true;
    if (this.#isOver) return;
    const gone = once(this.#thread, "exit");
    this.#post({ kind: "close" });
    const done = new AbortController();
    await Promise.race([gone, delay(clock, CLOSE_TIMEOUT_MS, done.signal)]);
    done.abort();
    await this.#thread.terminate();
  }

  #received(message: Extract<FromThread, { readonly id: number }>): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === "renewed") pending?.resolve(message.answer);
    else {
      const cause = new Error(message.message);
      pending?.reject(new StoreUnavailableError({ tried: "renew leases from a thread", cause }));
    }
  }

  #post(message: ToThread): void {
    this.#thread.postMessage(message);
  }
}

// ── the thread ───────────────────────────────────────────────────────────────────────────────────

/** A silent main thread keeps a run for this many lengths of its lease. */
export const SILENT_LEASES_MAX = 10;
const RETRY_MS = 250;

/**
 * Renews leases for a main thread that is blocked. While the main thread sends messages, this renews on request only.
 * When it falls silent, this renews its last known leases, up to ten lengths of each: a handler that computes for long
 * keeps its run, and a process that hangs does not keep it for ever. The database enforces the time limit of a run.
 */
export class StandbyHeartbeat {
  readonly #store: { readonly leases: Pick<Store["leases"], "renew"> };
  readonly #clock: Clock;
  readonly #holder: number;
  #leases: readonly HeldLease[] = [];
  #seenMs: number;
  #isStandingIn = false;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(params: {
    readonly store: { readonly leases: Pick<Store["leases"], "renew"> };
    readonly clock: Clock;
    readonly holder: number;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#holder = params.holder;
    this.#seenMs = this.#clock.monotonicMs();
  }

  /** The main thread is alive and holds these leases. Returns for how long it was silent if this had to stand in. */
  held(leases: readonly HeldLease[]): number | null {
    const nowMs = this.#clock.monotonicMs();
    const silentMs = this.#isStandingIn ? nowMs - this.#seenMs : null;
    this.#leases = leases;
    this.#seenMs = nowMs;
    this.#isStandingIn = false;
    this.#plan(this.#shortestMs() / 2);
    return silentMs;
  }

  renew(params: RenewParams): Promise<RenewResult> {
    return this.#store.leases.renew(params);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #shortestMs(): number {
    return Math.min(...this.#leases.map(({ leaseMs }) => leaseMs));
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#isClosed || this.#leases.length === 0) return;
    this.#timer = this.#clock.timer(delayMs, () => void this.#standIn());
  }

  async #standIn(): Promise<void> {
    const seenMs = this.#seenMs;
    const silentMs = this.#clock.monotonicMs() - seenMs;
    this.#leases = this.#leases.filter(({ leaseMs }) => silentMs < leaseMs * SILENT_LEASES_MAX);
    if (this.#leases.length === 0) return;
    this.#isStandingIn = true;
    const shortestMs = this.#shortestMs();
    let nextMs = renewEveryMs(shortestMs);
    try {
      const fences = this.#leases.map(({ fence }) => fence);
      const timeoutMs = renewTimeoutMs(shortestMs);
      await this.#store.leases.renew({ holder: this.#holder, fences, timeoutMs });
    } catch {
      // Not reported: the main thread gets the error when it requests a renewal again.
      nextMs = RETRY_MS;
    }
    // If the main thread sent a message meanwhile, `held` has planned the next renewal.
    if (this.#seenMs === seenMs) this.#plan(nextMs);
  }
}
