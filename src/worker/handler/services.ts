// Serves the calls of handlers for a worker: items, commits, progress, log lines, heartbeats. One object serves all
// runs. Progress and log lines are stored before their attempt is settled.

import type { Locking } from "../../locks/locking.js";
import { LeaseLostError } from "../../shared/errors.js";
import { delay, momentOf, type Ports } from "../../shared/ports.js";
import type { Settlement } from "../../store/claims.js";
import type { Store } from "../../store/store.js";
import type { Emit, Logger } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import type { Renewed } from "../leases.js";
import { renewTimeoutMs } from "../rules/lease.js";
import { commitRun } from "./commit.js";
import type { ContextServices } from "./context.js";
import type { FanOut } from "./fan-out.js";
import { Items } from "./items.js";
import { LogWriter } from "./logs.js";
import { ProgressWriter } from "./progress-writer.js";
import { Steps, type StepsParams } from "./steps.js";

/** How long an ended attempt waits for its progress and log lines to be stored, before it is settled anyway. */
const REPORTS_TIMEOUT_MS = 5_000;

export type HandlerServicesParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly fanOut: FanOut;
  readonly locking: Pick<Locking, "lock">;
  readonly executor: ServicesExecutor;
};

type SuspendingExecutor = StepsParams["executor"];

/** The executor of the attempts: it has to know what handlers did to their runs and leases. */
export interface ServicesExecutor extends SuspendingExecutor {
  /** `ctx.commit` has completed the run; its handler may still be running. */
  committed(attempt: AttemptView, settlement: Settlement): void;
  /** A handler has renewed leases: with `ctx.heartbeat()`, or by reporting progress. */
  renewed(renewed: Renewed): void;
}

export class HandlerServices {
  readonly #params: HandlerServicesParams;
  readonly #items: Items;
  readonly #progress: ProgressWriter;
  readonly #logs: LogWriter;
  /** The services that a context calls. */
  readonly forContext: ContextServices;

  constructor(params: HandlerServicesParams) {
    this.#params = params;
    const { store, ports, holder, emit, executor } = params;
    const { clock } = ports;
    const shared = { store, holder, clock, emit };
    this.#items = new Items({ store, clock, emit });
    this.#progress = new ProgressWriter({ ...shared, executor });
    this.#logs = new LogWriter(shared);
    this.forContext = {
      log: params.logger,
      nowMs: () => clock.monotonicMs(),
      hasDoneItems: (attempt) => this.#items.hasDone(attempt),
      fanOut: params.fanOut,
      heartbeat: (attempt) => this.#givingWay(this.#renew(attempt)),
      progress: (attempt, reported) => this.#givingWay(this.#progress.report(attempt, reported)),
      keepLine: (attempt, ...line) => this.#logs.keep(attempt, ...line),
      item: (request) => this.#items.item(request),
      commit: (attempt, fn, options) => commitRun(params, attempt, fn, options),
      lock: (name, options, fn) => params.locking.lock(name, options, fn),
      steps: new Steps({ ...params, reportsStored: (attempt) => this.reportsStored(attempt) }),
    };
  }

  /** How many items of this attempt have failed, and were not done by a later call. */
  failedItems(attempt: AttemptView): number {
    return this.#items.failedCount(attempt);
  }

  /** Waits until the progress and log lines of this attempt are stored, or 5 s have passed. */
  async reportsStored(attempt: AttemptView): Promise<void> {
    const done = new AbortController();
    const stored = Promise.all([this.#progress.finish(attempt), this.#logs.finish(attempt)]).catch(
      () => undefined,
    );
    await Promise.race([stored, delay(this.#params.ports.clock, REPORTS_TIMEOUT_MS, done.signal)]);
    done.abort();
    this.forget(attempt);
  }

  /** Drops the progress and log lines of this attempt that are not stored yet. */
  forget(attempt: AttemptView): void {
    if (!attempt.hasReported) return;
    this.#progress.forget(attempt);
    this.#logs.forget(attempt);
  }

  close(): void {
    this.#progress.close();
    this.#logs.close();
  }

  /**
   * Progress is mostly buffered, and a renewal on SQLite never waits. Without this, a handler that only awaits such calls
   * would keep all timers and I/O of the process from their turn.
   */
  async #givingWay(call: Promise<void>): Promise<void> {
    await call;
    await this.#params.ports.clock.giveWay?.();
  }

  async #renew({ run, claim }: AttemptView): Promise<void> {
    const { store, holder, ports, executor } = this.#params;
    const { fence, policy } = claim;
    const sentAt = momentOf(ports.clock);
    const timeoutMs = renewTimeoutMs(policy.leaseMs);
    const result = await store.leases.renew({ holder, fences: [fence], timeoutMs });
    executor.renewed({ sentAt, asked: [fence], ...result });
    const isHeld = result.held.some((each) => each.fence === fence && each.ids.includes(run.id));
    if (!isHeld && !result.unknown.includes(fence)) throw new LeaseLostError(run.id, fence);
  }
}
