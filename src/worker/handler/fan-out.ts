// Enqueues the children of a run: `ctx.enqueue` and `ctx.enqueueBatch`. Checks and builds them; the store accepts
// them only under the fence of the parent.

import {
  accepted,
  type Enqueued,
  type EnqueueOptions,
  newRun,
  newRunSoon,
  uncheckedRun,
  type WakeHint,
  wakeHintOf,
} from "../../runs/enqueue.js";
import type { Job } from "../../runs/job.js";
import type { JobDefinition } from "../../runs/rules/job.js";
import type { RunId } from "../../runs/rules/run.js";
import { ConfigurationError, LeaseLostError } from "../../shared/errors.js";
import { describeFailure } from "../../shared/failure.js";
import { requireName } from "../../shared/names.js";
import { jobName } from "../../shared/options.js";
import type { Clock } from "../../shared/ports.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { BatchAnswer, BatchError } from "../../store/batches.js";
import type { Grant } from "../../store/claims.js";
import type { EnqueueResult, NewRun } from "../../store/enqueue.js";
import type { OpenWaits } from "../../store/steps.js";
import type { Store } from "../../store/store.js";
import type { Tracing } from "../../telemetry/tracing.js";

/** One child of a batch: its job, its input, and the options of an enqueue. */
export type BatchEntry<Input = unknown> = EnqueueOptions & {
  readonly job: Job<Input, unknown> | string;
  readonly input: Input;
};

/** The input of the run that comes after a batch. */
export type BatchCounts = {
  readonly scheduled: number;
  readonly errors: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
};

export type BatchOptions = {
  /**
   * Distinguishes several batches of one run.
   * @default "batch"
   */
  readonly name?: string | undefined;
  /** Gets one run when the last child has ended, with the counts as its input. */
  readonly then?: Job<BatchCounts, unknown> | string | undefined;
};

const NAME_DEFAULT = "batch";
const ENTRIES_MAX = 100_000;
/** All errors are stored together: this much of each message is enough to find the mistake. */
const MESSAGE_LENGTH_MAX = 500;

export type FanOutParams = {
  readonly store: Store;
  readonly tracing: Tracing | null;
  readonly clock: Clock;
  readonly newId: () => RunId;
  /** Finds a job by its name, declared by this process or announced by another. */
  readonly definitionOf: (job: string) => Promise<JobDefinition>;
  /** Called after a commit. */
  readonly onStored: (stored: WakeHint) => void;
};

export class FanOut {
  readonly #params: FanOutParams;
  readonly #children: ChildEnqueuer;

  constructor(params: FanOutParams) {
    this.#params = params;
    this.#children = new ChildEnqueuer(params.store);
  }

  async enqueue(
    parent: Grant,
    child: { readonly job: unknown; readonly input: unknown; readonly options: EnqueueOptions },
  ): Promise<Enqueued> {
    const { input, options } = child;
    const name = jobName(child.job, "ctx.enqueue(job)");
    const definition = await this.#params.definitionOf(name);
    const run = await newRun({ definition, input, options, id: this.#params.newId() });
    const { tracing } = this.#params;
    const result = await (tracing
      ? tracing.enqueue([run], ([traced = run]) => this.#children.one(parent, traced))
      : this.#children.one(parent, run));
    if (result === "stale") throw new LeaseLostError(parent.id, parent.fence);
    this.#stored([run]);
    return accepted(run, result);
  }

  /**
   * Checks a call of another run and makes that run; the function that it returns stores it with the parent's wait. It may
   * be repeated: the wait has one child.
   */
  async call(
    parent: Grant,
    asked: { readonly job: string; readonly input: unknown; readonly options: EnqueueOptions },
    { generation, isLeft }: { readonly generation: number; readonly isLeft: boolean },
  ): Promise<(name: string) => Promise<OpenWaits | "stale">> {
    const { job, input, options } = asked;
    const { definitionOf, newId, store, tracing } = this.#params;
    const definition = await definitionOf(job);
    const run = await newRun({ definition, input, options, id: newId() });
    const send = (name: string, child: NewRun) =>
      store.batches.call({ parent, name, generation, child, isLeft });
    return async (name) => {
      const answer = await (tracing
        ? tracing.enqueue([run], ([traced = run]) => send(name, traced))
        : send(name, run));
      if (answer !== "stale") this.#stored([run]);
      return answer;
    };
  }

  /** Every entry is checked before any is stored. Wrong entries are listed in the result; the others are stored. */
  async enqueueBatch(
    parent: Grant,
    batch: { readonly name: string; readonly entries: unknown; readonly after: unknown },
  ): Promise<BatchAnswer> {
    const { name } = batch;
    const entries = readEntries(batch.entries);
    const definitionOf = once(this.#params.definitionOf);
    const after = await this.#continuation(batch.after, definitionOf);
    const children: { index: number; run: NewRun }[] = [];
    const errors: BatchError[] = [];
    for (const [index, entry] of entries.entries()) {
      try {
        children.push({ index, run: await this.#child(entry, definitionOf) });
      } catch (error) {
        errors.push({ index, ...briefly(error) });
      }
    }
    const { store, tracing } = this.#params;
    const result = await (tracing && children.length > 0
      ? tracing.enqueue(
          children.map(({ run }) => run),
          (traced) =>
            store.batches.enqueue({
              ...{ parent, name, errors, after },
              children: children.map(({ index, run }, at) => ({ index, run: traced[at] ?? run })),
            }),
        )
      : store.batches.enqueue({ parent, name, children, errors, after }));
    if (result === "stale") throw new LeaseLostError(parent.id, parent.fence);
    this.#stored(children.map(({ run }) => run));
    return result;
  }

  async #child(entry: unknown, definitionOf: FanOutParams["definitionOf"]): Promise<NewRun> {
    const { job, input, ...options } = requireEntry(entry);
    refuseRival(options);
    const definition = await definitionOf(jobName(job, "entry.job"));
    return newRunSoon({ definition, input, options, id: this.#params.newId() });
  }

  /** Its input is not known yet: it is checked when it runs, as every stored input is. */
  async #continuation(
    job: unknown,
    definitionOf: FanOutParams["definitionOf"],
  ): Promise<NewRun | null> {
    if (job === undefined) return null;
    const definition = await definitionOf(jobName(job, "enqueueBatch().then"));
    return uncheckedRun({ definition, input: null, options: {}, id: this.#params.newId() });
  }

  #stored(runs: readonly NewRun[]): void {
    const { clock, onStored } = this.#params;
    // Without children the `then` run is ready at once.
    onStored(runs.length === 0 ? { dueInMs: 0 } : wakeHintOf(runs, clock.wallMs()));
  }
}

/** Checks the options of a batch, without its entries. */
export function readBatchOptions(options: BatchOptions): { name: string; after: unknown } {
  const problems = refuseUnknownMembers(options, ["name", "then"], "enqueueBatch()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const name = requireName(options.name ?? NAME_DEFAULT, "enqueueBatch().name");
  return { name, after: options.then };
}

function readEntries(entries: unknown): readonly unknown[] {
  if (Array.isArray(entries) && entries.length <= ENTRIES_MAX) return Array.from(entries);
  throw new ConfigurationError([
    {
      field: "enqueueBatch(entries)",
      message: `must be a list of at most ${ENTRIES_MAX} entries such as { job: study, input: { market: "eu" } }`,
    },
  ]);
}

function requireEntry(entry: unknown): BatchEntry {
  if (typeof entry === "object" && entry !== null && !Array.isArray(entry))
    return entry as BatchEntry;
  throw new ConfigurationError([
    {
      field: "entry",
      message: 'must be an object such as { job: study, input: { market: "eu" } }',
    },
  ]);
}

/** The other run may not be a child of this batch: its end would not be counted. */
function refuseRival({ onDuplicate }: EnqueueOptions): void {
  if (onDuplicate === undefined || onDuplicate === "return") return;
  const message = `cannot be "${onDuplicate}" in a batch; leave it out, or use ctx.enqueue()`;
  throw new ConfigurationError([{ field: "entry.onDuplicate", message }]);
}

function briefly(error: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = describeFailure(error);
  return { code, message: message.slice(0, MESSAGE_LENGTH_MAX) };
}

/** A long list names few jobs: each is looked up once. */
function once(definitionOf: FanOutParams["definitionOf"]): FanOutParams["definitionOf"] {
  const known = new Map<string, Promise<JobDefinition>>();
  return (name) => {
    const found = known.get(name) ?? definitionOf(name);
    known.set(name, found);
    return found;
  };
}

// ── storing children ─────────────────────────────────────────────────────────────────────────────
// Calls of `ctx.enqueue` by one run that come together share a transaction, which is under the fence of that run. A
// single call is sent at once.

/** Each is a transaction of its own, on PostgreSQL on a connection of its own. */
const IN_FLIGHT_MAX = 2;
const BATCH_MAX = 1_000;

type PendingChild = {
  readonly run: NewRun;
  readonly resolve: (result: EnqueueResult | "stale") => void;
  readonly reject: (error: unknown) => void;
};

class ChildEnqueuer {
  readonly #store: Store;
  readonly #pending = new Map<
    string,
    { readonly parent: Grant; readonly children: PendingChild[] }
  >();
  #inFlight = 0;
  #isScheduled = false;

  constructor(store: Store) {
    this.#store = store;
  }

  one(parent: Grant, run: NewRun): Promise<EnqueueResult | "stale"> {
    return new Promise((resolve, reject) => {
      const name = `${parent.id} ${parent.fence}`;
      const waiting = this.#pending.get(name) ?? { parent, children: [] };
      this.#pending.set(name, waiting);
      waiting.children.push({ run, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // A microtask later, so that calls made together share a transaction.
    queueMicrotask(() => {
      this.#isScheduled = false;
      while (this.#inFlight < IN_FLIGHT_MAX && this.#pending.size > 0) void this.#sendFirst();
    });
  }

  async #sendFirst(): Promise<void> {
    const [name, { parent, children }] = this.#pending.entries().next().value as [
      string,
      { parent: Grant; children: PendingChild[] },
    ];
    const batch = children.splice(0, BATCH_MAX);
    if (children.length === 0) this.#pending.delete(name);
    this.#inFlight += 1;
    try {
      const runs = batch.map(({ run }) => run);
      const results = await this.#store.batches.enqueueChildren({ parent, runs });
      batch.forEach(({ resolve }, at) => {
        resolve(results === "stale" ? results : (results[at] as EnqueueResult));
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      this.#inFlight -= 1;
      if (this.#pending.size > 0) this.#schedule();
    }
  }
}
