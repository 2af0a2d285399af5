// Runs the loop of a remote worker for the client: claims with a long poll, renews its leases in batches, executes runs, and
// drains on stop. A claim keeps its id until a response arrives, so that runs from a lost response are found again.

import { retryDelayMs } from "../runs/rules/retry.js";
import { ABORT_GRACE_MS } from "../runs/rules/run.js";
import { portableClock } from "../shared/adapters/portable-clock.js";
import { systemIds, systemRandom } from "../shared/adapters/random.js";
import { CancelledError, ConfigurationError } from "../shared/errors.js";
import { delay } from "../shared/ports.js";
import { RequestRefusedError, WorkerStoppedError } from "./errors.js";
import { type Handler, HeldRun } from "./held-run.js";
import type { Wire } from "./wire.js";

export type WorkOptions = {
  /** The handler of each job. */
  readonly jobs: Readonly<Record<string, Handler>>;
  /** Runs at the same time, 1 … 100. @default 1 */
  readonly concurrency?: number | undefined;
  /** The name of this worker, shown as the holder of its runs. @default a random one */
  readonly instance?: string | undefined;
  /** Ends the loop: no new claims, then it drains. */
  readonly signal?: AbortSignal | undefined;
  /** How long running handlers may go on after a stop before their signal aborts. @default 20 s */
  readonly graceMs?: number | undefined;
  /** How long a claim waits at the server for a run; a stop waits for the claim. @default 5 s */
  readonly waitMs?: number | undefined;
  /** Called with the error of a failed call; the loop goes on by itself. */
  readonly onError?: ((error: unknown) => void) | undefined;
};

const ids = systemIds();
const CLAIM = { method: "POST", path: "/api/worker/claim" } as const;
const HEARTBEAT = { method: "POST", path: "/api/worker/heartbeat" } as const;
const BACKOFF = { attempts: 1, delayMs: 250, factor: 2, maxMs: 10_000, jitter: 0.5 };
const BEAT_AGAIN_MS = 500;
const IDLE_MS = 3_600_000;

/** Resolves after a stop, when every run has ended or was abandoned. */
export async function work(wire: Wire, options: WorkOptions): Promise<void> {
  await new WorkLoop(wire, options).run();
}

class WorkLoop {
  readonly #wire: Wire;
  readonly #options: WorkOptions;
  readonly #instance: string;
  readonly #concurrency: number;
  readonly #held = new Map<HeldRun, Promise<void>>();
  #changed = new AbortController();
  #isOver = false;

  constructor(wire: Wire, options: WorkOptions) {
    this.#wire = wire;
    this.#options = options;
    this.#instance = options.instance ?? `worker-${ids.unique()}`;
    this.#concurrency = readConcurrency(options);
  }

  async run(): Promise<void> {
    const beating = this.#keepRenewing();
    try {
      await this.#keepClaiming();
      await this.#drain();
    } finally {
      this.#isOver = true;
      this.#change();
      await beating;
    }
  }

  get #isStopping(): boolean {
    return this.#options.signal?.aborted === true;
  }

  // ── claiming ───────────────────────────────────────────────────────────────────────────────────

  async #keepClaiming(): Promise<void> {
    let claimId = ids.unique();
    for (let failures = 0; !this.#isStopping; ) {
      const limit = this.#concurrency - this.#held.size;
      if (limit < 1) {
        await this.#pause(IDLE_MS);
        continue;
      }
      try {
        await this.#claim(claimId, limit);
        claimId = ids.unique();
        failures = 0;
      } catch (error) {
        if (isForGood(error)) throw error;
        this.#reportError(error);
        failures += 1;
        const pauseMs = retryDelayMs(BACKOFF, failures, () => systemRandom.next());
        await delay(portableClock, pauseMs, this.#options.signal);
      }
    }
  }

  async #claim(claimId: string, limit: number): Promise<void> {
    const { jobs, waitMs = 5_000 } = this.#options;
    const sentMs = portableClock.monotonicMs();
    const { runs } = await this.#wire.call<"claimRuns">({
      place: CLAIM,
      body: { instance: this.#instance, claimId, jobs: Object.keys(jobs), limit, waitMs },
      isRepeatable: true,
      tries: 1,
      timeoutMs: waitMs + 30_000,
    });
    // The lease begins when the server claims the run, at most a moment before the response, not when the long poll began.
    const heldSinceMs = Math.max(sentMs, portableClock.monotonicMs() - 1_000);
    for (const run of runs) {
      const held = new HeldRun({
        run,
        instance: this.#instance,
        wire: this.#wire,
        sentMs: heldSinceMs,
      });
      if (this.#isStopping) this.#keep(held, held.release());
      else this.#begin(held);
    }
  }

  #begin(held: HeldRun): void {
    const handler = this.#options.jobs[held.run.job] as Handler;
    this.#keep(held, held.execute(handler));
  }

  #keep(held: HeldRun, ending: Promise<void>): void {
    const ended = ending
      .catch((error: unknown) => this.#reportError(error))
      .finally(() => {
        this.#held.delete(held);
        this.#change();
      });
    this.#held.set(held, ended);
    this.#change();
  }

  // ── renewing ───────────────────────────────────────────────────────────────────────────────────

  async #keepRenewing(): Promise<void> {
    let beatMs = portableClock.monotonicMs();
    let hasRenewed = true;
    while (!this.#isOver) {
      const third = Math.min(...[...this.#held.keys()].map(({ leaseMs }) => leaseMs / 3), IDLE_MS);
      const dueMs = beatMs + (hasRenewed ? third : Math.min(third, BEAT_AGAIN_MS));
      const nowMs = portableClock.monotonicMs();
      // A run that begins meanwhile may have a shorter lease: then it is looked at again.
      if (dueMs > nowMs) await this.#pause(dueMs - nowMs);
      else {
        beatMs = nowMs;
        hasRenewed = this.#held.size === 0 || (await this.#beat(third));
      }
    }
  }

  async #beat(timeoutMs: number): Promise<boolean> {
    const held = [...this.#held.keys()];
    const byId = new Map(held.map((each) => [each.run.id, each]));
    const sentMs = portableClock.monotonicMs();
    try {
      const renewed = await this.#wire.call<"beatRuns">({
        place: HEARTBEAT,
        body: {
          instance: this.#instance,
          runs: held.map(({ run: { id, fence } }) => ({ id, fence })),
        },
        isRepeatable: true,
        tries: 1,
        timeoutMs,
      });
      for (const { id, leaseMs, cancel } of renewed.held) {
        byId.get(id)?.renewed(leaseMs, sentMs);
        if (cancel) byId.get(id)?.abort(new CancelledError(id));
      }
      for (const id of renewed.lost) byId.get(id)?.lost();
      return true;
    } catch (error) {
      this.#reportError(error);
      return false;
    } finally {
      for (const each of held) each.stopIfSilent(portableClock.monotonicMs());
    }
  }

  // ── stopping ───────────────────────────────────────────────────────────────────────────────────

  /** Runs that do not end after their signal aborts are abandoned: their leases expire by themselves. */
  async #drain(): Promise<void> {
    const { graceMs = 20_000 } = this.#options;
    await this.#endedWithin(graceMs);
    for (const held of this.#held.keys()) held.abort(new WorkerStoppedError());
    await this.#endedWithin(ABORT_GRACE_MS);
  }

  async #endedWithin(waitMs: number): Promise<void> {
    if (this.#held.size === 0) return;
    const over = new AbortController();
    const ended = Promise.all(this.#held.values()).then(() => over.abort());
    await Promise.race([ended, delay(portableClock, waitMs, over.signal)]);
  }

  /** Waits until a run begins or ends, a stop arrives, or the time is over. */
  async #pause(waitMs: number): Promise<void> {
    const { signal } = this.#options;
    const changed = this.#changed;
    const wake = () => changed.abort();
    if (!this.#isStopping) signal?.addEventListener("abort", wake, { once: true });
    await delay(portableClock, waitMs, changed.signal);
    signal?.removeEventListener("abort", wake);
    if (changed === this.#changed && changed.signal.aborted) this.#changed = new AbortController();
  }

  #change(): void {
    const changed = this.#changed;
    this.#changed = new AbortController();
    changed.abort();
  }

  #reportError(error: unknown): void {
    try {
      this.#options.onError?.(error);
    } catch {
      // An error of the listener must not end the loop.
    }
  }
}

/** A wrong secret, a closed scope, a wrong body: a repetition would not help. */
function isForGood(error: unknown): boolean {
  if (!(error instanceof RequestRefusedError)) return false;
  return error.status >= 400 && error.status < 500 && ![408, 425, 429].includes(error.status);
}

function readConcurrency({ jobs, concurrency = 1 }: WorkOptions): number {
  const problems = [];
  if (Object.keys(jobs).length === 0)
    problems.push({
      field: "work().jobs",
      message: "must name a job, for example { study: async (input, ctx) => result }",
    });
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 100)
    problems.push({ field: "work().concurrency", message: "must be a whole number, 1 … 100" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return concurrency;
}
