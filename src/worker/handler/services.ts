// Serves the calls of handlers for a worker: items, commits, progress, log lines, heartbeats. One object serves all
// runs. Progress and log lines are stored before their attempt is settled.

import { LeaseLostError } from "../../shared/errors.js";
import { describeFailure } from "../../shared/failure.js";
import { delay, momentOf, type Ports } from "../../shared/ports.js";
import type { Store } from "../../store/store.js";
import type { Emit, Logger } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import type { Renewed } from "../leases.js";
import { renewTimeoutMs } from "../rules/lease.js";
import { Commits, type CommitsParams } from "./commit.js";
import type { ContextServices } from "./context.js";
import type { FanOut } from "./fan-out.js";
import { Items } from "./items.js";
import { LogKeeper } from "./logs.js";
import { ProgressBoard } from "./progress-writer.js";

/** How long an ended attempt waits for its progress and log lines to be stored, before it is settled anyway. */
const REPORTS_PATIENCE_MS = 5_000;

export type HandlerServicesParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly fanOut: FanOut;
  readonly onCommitted: CommitsParams["onCommitted"];
  /** Called with the result of a renewal: progress renews the lease too. */
  readonly onRenewed: (answer: Renewed) => void;
};

export class HandlerServices {
  readonly #params: HandlerServicesParams;
  readonly #items: Items;
  readonly #progress: ProgressBoard;
  readonly #logs: LogKeeper;
  /** The services that a context calls. */
  readonly forContext: ContextServices;

  constructor(params: HandlerServicesParams) {
    this.#params = params;
    const { store, ports, holder, emit, onRenewed } = params;
    const { clock } = ports;
    const onFailed = (what: string) => (error: unknown, retryInMs: number) =>
      emit("store.failed", { what, error: describeFailure(error), retryInMs }, error);
    const shared = { store, holder, clock };
    const commits = new Commits(params);
    this.#items = new Items({ store, clock, emit });
    this.#progress = new ProgressBoard({ ...shared, onRenewed, onFailed: onFailed("progress") });
    this.#logs = new LogKeeper({ ...shared, onFailed: onFailed("log lines of runs") });
    this.forContext = {
      log: params.logger,
      fanOut: params.fanOut,
      heartbeat: (attempt) => this.#beat(attempt),
      progress: (attempt, reported) => this.#progress.report(attempt, reported),
      keepLine: (attempt, ...line) => this.#logs.keep(attempt, ...line),
      item: (asked) => this.#items.item(asked),
      commit: (attempt, fn, options) => commits.commit(attempt, fn, options),
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
    await Promise.race([stored, delay(this.#params.ports.clock, REPORTS_PATIENCE_MS, done.signal)]);
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

  async #beat({ run, claim }: AttemptView): Promise<void> {
    const { store, holder, ports, onRenewed } = this.#params;
    const { fence, policy } = claim;
    const sentAt = momentOf(ports.clock);
    const timeoutMs = renewTimeoutMs(policy.leaseMs);
    const answer = await store.renew({ holder, fences: [fence], timeoutMs });
    onRenewed({ sentAt, asked: [fence], ...answer });
    const isHeld = answer.held.some((each) => each.fence === fence && each.ids.includes(run.id));
    if (!isHeld && !answer.unknown.includes(fence)) throw new LeaseLostError(run.id, fence);
  }
}
