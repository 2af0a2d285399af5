// Defines the object that `holdfast.job(…)` returns, and the view of a job that `holdfast.jobs()` returns. A Job
// checks its inputs and hands runs to the enqueuer; it holds no state of its own.

import { writeDuration } from "../shared/duration.js";
import { BatchRefusedError, ConfigurationError } from "../shared/errors.js";
import type { InferInput, StandardSchema } from "../shared/schema.js";
import type { EnqueueResult, NewRun } from "../store/enqueue.js";
import type { JobAnnouncement } from "../store/jobs.js";
import {
  accepted,
  type Enqueued,
  type EnqueueOptions,
  type Enqueuer,
  newRun,
  newRunNow,
  newRunSoon,
} from "./enqueue.js";
import type { JobDefinition } from "./rules/job.js";
import type { OnLost } from "./rules/run.js";

const BATCH_MAX = 100_000;

export class Job<Input, Result = unknown> {
  /** As it was declared. */
  readonly name: string;
  readonly #definition: JobDefinition;
  readonly #enqueuer: Enqueuer;
  /** Only for types: what `runs.get(id).result` will be. */
  declare readonly result: Result;

  constructor(definition: JobDefinition, enqueuer: Enqueuer) {
    this.name = definition.name;
    this.#definition = definition;
    this.#enqueuer = enqueuer;
  }

  /** Stores one run; resolves after its commit, or, with `tx`, when it is part of that transaction. */
  async enqueue(input: Input, options: EnqueueOptions = {}): Promise<Enqueued> {
    const run = await newRun({
      definition: this.#definition,
      input,
      options,
      id: this.#enqueuer.newId(),
    });
    return accepted(run, await this.#enqueuer.store(run, options.tx));
  }

  /** On SQLite: stores one run inside the transaction that is open on `tx`, without waiting. */
  enqueueSync(input: Input, options: EnqueueOptions & { readonly tx: object }): Enqueued {
    const definition = this.#definition;
    const tx = requireTx(options);
    const run = newRunNow({ definition, input, options, id: this.#enqueuer.newId() });
    const [result] = this.#enqueuer.withinSync({ tx, runs: [run] });
    return accepted(run, result as EnqueueResult);
  }

  /** Stores all runs or none; returns them in the order of the inputs. */
  async enqueueMany(
    inputs: readonly Input[],
    options: EnqueueOptions | ((input: Input, index: number) => EnqueueOptions) = {},
  ): Promise<readonly Enqueued[]> {
    if (!Array.isArray(inputs) || inputs.length > BATCH_MAX) {
      throw new ConfigurationError([
        { field: "enqueueMany(inputs)", message: `must be a list of at most ${BATCH_MAX} inputs` },
      ]);
    }
    const runs: NewRun[] = [];
    const txs = new Set<object | undefined>();
    for (const [index, input] of inputs.entries()) {
      try {
        const each = typeof options === "function" ? options(input, index) : options;
        const run = newRunSoon({
          definition: this.#definition,
          input,
          options: each,
          id: this.#enqueuer.newId(),
        });
        runs.push(run instanceof Promise ? await run : run);
        txs.add(each.tx);
      } catch (error) {
        throw new BatchRefusedError(index, error);
      }
    }
    const tx = oneTx(txs);
    const results = await (tx === undefined
      ? this.#enqueuer.many(runs)
      : this.#enqueuer.within({ tx, runs }));
    return runs.map((run, index) => {
      try {
        return accepted(run, results[index] as EnqueueResult);
      } catch (error) {
        throw new BatchRefusedError(index, error);
      }
    });
  }
}

export type JobOf<Schema extends StandardSchema, Result> = Job<InferInput<Schema>, Result>;

function requireTx({ tx }: EnqueueOptions): object {
  if (tx !== undefined) return tx;
  const message = "is needed: the SQLite handle on which your transaction is open";
  throw new ConfigurationError([{ field: "enqueueSync().tx", message }]);
}

/** A batch is all or none, so it needs one transaction. */
function oneTx(txs: ReadonlySet<object | undefined>): object | undefined {
  const [tx, ...others] = txs;
  if (others.length === 0) return tx;
  const message = "must be the same for all runs of a batch";
  throw new ConfigurationError([{ field: "enqueueMany().tx", message }]);
}

// ── announced jobs ───────────────────────────────────────────────────────────────────────────────

/** A job as an instance announced it, with durations as people write them. */
export type AnnouncedJob = {
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly version: number;
  readonly policy: {
    readonly lease: string;
    readonly timeout: string;
    readonly retry: {
      readonly attempts: number;
      readonly delay: string;
      readonly factor: number;
      readonly max: string;
      readonly jitter: number;
    };
    readonly onLost: OnLost;
  };
  /** The JSON Schema of the input; null if the schema library cannot export it. */
  readonly inputSchema: unknown;
};

export function toAnnouncedJob({ policy, inputSchema, ...job }: JobAnnouncement): AnnouncedJob {
  const { leaseMs, timeoutMs, retry, onLost } = policy;
  const { delayMs, maxMs, attempts, factor, jitter } = retry;
  return {
    ...job,
    policy: {
      lease: writeDuration(leaseMs),
      timeout: writeDuration(timeoutMs),
      retry: {
        attempts,
        delay: writeDuration(delayMs),
        factor,
        max: writeDuration(maxMs),
        jitter,
      },
      onLost,
    },
    inputSchema: inputSchema ? (JSON.parse(inputSchema) as unknown) : null,
  };
}
