// The heartbeat from a thread of its own, seen from the main thread: what is held is told at every claim,
// before a handler can block anything, and when a worker elsewhere takes a run over; renewals are asked of the thread and answered by it. If the thread
// ends, the main thread sends the heartbeats itself. Loaded only where it is asked for.

import { once } from "node:events";
import { Worker as Thread } from "node:worker_threads";
import { ConfigurationError, StoreUnavailableError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { type Clock, delay } from "../shared/ports.js";
import type { RenewAnswer, RenewParams, Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { LeaseHeartbeat } from "../worker/passes.js";
import type { Config } from "./config.js";
import type { HeldLease } from "./standby-heartbeat.js";

/** What the thread is made with. */
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
  | { readonly kind: "renewed"; readonly id: number; readonly answer: RenewAnswer }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };

type Asked = {
  readonly resolve: (answer: RenewAnswer) => void;
  readonly reject: (error: Error) => void;
};

const CLOSE_PATIENCE_MS = 2_000;

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
  // By its folder: as it is published, this module is in another one (scripts/build.mjs).
  const thread = new Thread(new URL("../instance/heartbeat-thread.js", import.meta.url), {
    workerData,
    execArgv: [],
  });
  // An instance keeps the process alive by what it does; its heartbeat alone does not.
  thread.unref();
  // Rejects with whatever ends it before it is ready.
  await once(thread, "message");
  const heartbeat = new ThreadHeartbeat(thread, params);
  return {
    isOnMainThread: false,
    changed: () => heartbeat.changed(),
    renew: (each) => heartbeat.renew(each),
    close: () => heartbeat.close(clock),
  };
}

/** A thread has connections of its own, so it needs to know where to. */
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
  readonly #asked = new Map<number, Asked>();
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
      else if (message.kind !== "ready") this.#answered(message);
    });
    let cause: unknown = new Error("The thread of the heartbeat has ended.");
    thread.on("error", (error) => {
      cause = error;
    });
    thread.on("exit", () => {
      this.#isOver = true;
      const failure = new StoreUnavailableError({ tried: "renew leases from a thread", cause });
      for (const { reject } of this.#asked.values()) reject(failure);
      this.#asked.clear();
      if (this.#isClosing) return;
      const facts = { what: "heartbeat thread", error: describeFailure(cause), retryInMs: 0 };
      params.emit("store.failed", facts, cause);
    });
  }

  changed(): void {
    if (!this.#isOver) this.#post({ kind: "held", leases: this.#held() });
  }

  renew(params: RenewParams): Promise<RenewAnswer> {
    if (this.#isOver) return this.#store.renew(params);
    this.#count += 1;
    const id = this.#count;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#post({ kind: "renew", id, params, leases: this.#held() });
    });
  }

  /** In good order if it can, so that its connection says goodbye. */
  async close(clock: Clock): Promise<void> {
    this.#isClosing = true;
    if (this.#isOver) return;
    const gone = once(this.#thread, "exit");
    this.#post({ kind: "close" });
    const done = new AbortController();
    await Promise.race([gone, delay(clock, CLOSE_PATIENCE_MS, done.signal)]);
    done.abort();
    await this.#thread.terminate();
  }

  #answered(message: Extract<FromThread, { readonly id: number }>): void {
    const asked = this.#asked.get(message.id);
    this.#asked.delete(message.id);
    if (message.kind === "renewed") asked?.resolve(message.answer);
    else {
      const cause = new Error(message.message);
      asked?.reject(new StoreUnavailableError({ tried: "renew leases from a thread", cause }));
    }
  }

  #post(message: ToThread): void {
    this.#thread.postMessage(message);
  }
}
