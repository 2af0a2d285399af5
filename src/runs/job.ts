// `holdfast.job(…)`: what users hold of a job, and how an enqueue becomes a stored run.

import { createHash } from "node:crypto";
import { type Duration, durationMs } from "../shared/duration.js";
import {
  BatchRefusedError,
  ConfigurationError,
  KeyConflictError,
  type Problem,
} from "../shared/errors.js";
import { readInstant } from "../shared/instant.js";
import { canonicalJson, encodeInput } from "../shared/json.js";
import { requireKey, requireName, requirePriority, requireTags } from "../shared/names.js";
import { gather } from "../shared/problems.js";
import {
  type InferInput,
  requireValid,
  type StandardSchema,
  validateInput,
} from "../shared/schema.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { EnqueueAnswer, NewKey, NewRun, WithinParams } from "../store/store.js";
import { flowKeyOf, isLimited } from "../worker/rules/limits.js";
import type { JobDefinition } from "./rules/job.js";
import type { RunId } from "./rules/run.js";

export type EnqueueOptions = {
  /** The same key and input is the same run for every caller; with another input it is refused. */
  readonly key?: string | undefined;
  /** How long the key stands for its run: so long, or until the run has ended. @default until the run is pruned */
  readonly keyFor?: Duration | "live" | undefined;
  /**
   * What a key that is taken does to its run while that has not begun: nothing, give it this input and
   * time, or this time alone. Once it has begun, a new run takes over the key. @default "return"
   */
  readonly onDuplicate?: OnDuplicate | undefined;
  /**
   * With `delay` and `onDuplicate: "postpone"` or `"replace"`: calls move the run no further than this after it was
   * enqueued, so that a steady stream of calls cannot put it off for ever. @default no bound
   */
  readonly maxWait?: Duration | undefined;
  /** Not before this instant. */
  readonly at?: Date | string | undefined;
  /** Not before this much time has passed. */
  readonly delay?: Duration | undefined;
  readonly priority?: number | undefined;
  readonly queue?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /**
   * Your open transaction: the run is stored in it, and is there once you commit. On PostgreSQL of
   * pg, Drizzle, Kysely, Knex, Prisma or postgres.js; on SQLite the handle itself.
   */
  readonly tx?: object | undefined;
};

export type OnDuplicate = (typeof ON_DUPLICATE)[number];

export type Enqueued = { readonly id: RunId; readonly deduplicated: boolean };

const ON_DUPLICATE = ["return", "replace", "postpone"] as const;
const ENQUEUE_MEMBERS = [
  "key",
  "keyFor",
  "onDuplicate",
  "maxWait",
  "at",
  "delay",
  "priority",
  "queue",
  "tags",
  "tx",
];
const BATCH_MAX = 100_000;

/** Sends runs to the store; what a job needs of its instance. */
export type Sender = {
  one(run: NewRun): Promise<EnqueueAnswer>;
  many(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]>;
  /** Inside the caller's transaction. */
  within(params: WithinParams): Promise<readonly EnqueueAnswer[]>;
  withinSync(params: WithinParams): readonly EnqueueAnswer[];
  newId(): RunId;
};

export class Job<Input, Result = unknown> {
  /** As it was declared. */
  readonly name: string;
  readonly #definition: JobDefinition;
  readonly #sender: Sender;
  /** Only for types: what `runs.get(id).result` will be. */
  declare readonly result: Result;

  constructor(definition: JobDefinition, sender: Sender) {
    this.name = definition.name;
    this.#definition = definition;
    this.#sender = sender;
  }

  /** Stores one run; resolves after its commit, or, with `tx`, when it is part of that transaction. */
  async enqueue(input: Input, options: EnqueueOptions = {}): Promise<Enqueued> {
    const run = await newRun({
      definition: this.#definition,
      input,
      options,
      id: this.#sender.newId(),
    });
    return accepted(run, await send(this.#sender, run, options.tx));
  }

  /** On SQLite: stores one run inside the transaction that is open on `tx`, without waiting. */
  enqueueSync(input: Input, options: EnqueueOptions & { readonly tx: object }): Enqueued {
    const definition = this.#definition;
    const tx = requireTx(options);
    const run = newRunNow({ definition, input, options, id: this.#sender.newId() });
    const [answer] = this.#sender.withinSync({ tx, runs: [run] });
    return accepted(run, answer as EnqueueAnswer);
  }

  /** Stores all runs or none; answers in the order of the inputs. */
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
          id: this.#sender.newId(),
        });
        runs.push(run instanceof Promise ? await run : run);
        txs.add(each.tx);
      } catch (error) {
        throw new BatchRefusedError(index, error);
      }
    }
    const tx = oneTx(txs);
    const answers = await (tx === undefined
      ? this.#sender.many(runs)
      : this.#sender.within({ tx, runs }));
    return runs.map((run, index) => {
      try {
        return accepted(run, answers[index] as EnqueueAnswer);
      } catch (error) {
        throw new BatchRefusedError(index, error);
      }
    });
  }
}

/** Sends one run by itself, or as part of the caller's transaction. */
export function send(sender: Sender, run: NewRun, tx: object | undefined): Promise<EnqueueAnswer> {
  if (tx === undefined) return sender.one(run);
  return sender.within({ tx, runs: [run] }).then(([answer]) => answer as EnqueueAnswer);
}

function requireTx({ tx }: EnqueueOptions): object {
  if (tx !== undefined) return tx;
  const message = "is needed: the SQLite handle on which your transaction is open";
  throw new ConfigurationError([{ field: "enqueueSync().tx", message }]);
}

/** A batch is all or none, so all of it goes into one transaction. */
function oneTx(txs: ReadonlySet<object | undefined>): object | undefined {
  const [tx, ...others] = txs;
  if (others.length === 0) return tx;
  const message = "must be the same for all runs of a batch";
  throw new ConfigurationError([{ field: "enqueueMany().tx", message }]);
}

export type JobOf<Schema extends StandardSchema, Result> = Job<InferInput<Schema>, Result>;

/** A conflict is the caller's mistake; anything else is the run that stands for this call. */
export function accepted(run: NewRun, answer: EnqueueAnswer): Enqueued {
  if (!("conflict" in answer)) return answer;
  throw new KeyConflictError({ job: run.job, key: run.key?.key ?? "", runId: answer.conflict });
}

export type NewRunParams = {
  readonly definition: JobDefinition;
  readonly input: unknown;
  readonly options: EnqueueOptions;
  readonly id: RunId;
};

/**
 * Checks an enqueue whole, and makes the run that will be stored: the caller's value, not the
 * schema's output, as it is parsed again when it runs.
 */
export async function newRun(params: NewRunParams): Promise<NewRun> {
  const { schema } = params.definition;
  if (schema) await validateInput(schema, params.input);
  return uncheckedRun(params);
}

/** For many: waiting a turn for each input that no schema checks would take longer than the rest. */
export function newRunSoon(params: NewRunParams): NewRun | Promise<NewRun> {
  return params.definition.schema ? newRun(params) : uncheckedRun(params);
}

/** For callers that cannot wait: a schema that has to wait is refused. */
function newRunNow(params: NewRunParams): NewRun {
  const { schema, name } = params.definition;
  const checked = schema ? schema["~standard"].validate(params.input) : { value: null };
  if (checked instanceof Promise) {
    checked.catch(() => undefined);
    const message = `the schema of "${name}" answers later; use \`await job.enqueue(input, { tx })\``;
    throw new ConfigurationError([{ field: "enqueueSync()", message }]);
  }
  requireValid(checked);
  return uncheckedRun(params);
}

/** Without a look at the input by its schema. */
export function uncheckedRun({ definition, input, options, id }: NewRunParams): NewRun {
  const { key, dueAt, delayMs, tags, queue, priority } = readOptions(options);
  const json = encodeInput(input);
  const { limits } = definition;
  return {
    id,
    job: definition.name,
    policy: definition.policy,
    version: definition.version,
    mode: "enqueued",
    input: json,
    dueAt,
    delayMs,
    tags,
    queue: queue ?? definition.queue,
    priority: priority ?? definition.priority,
    key: key === null ? null : { ...key, inputHash: inputHash(json) },
    ...(isLimited(limits) ? { flow: flowKeyOf(limits, json) } : {}),
  };
}

const NO_OPTIONS = {
  key: null,
  dueAt: null,
  delayMs: 0,
  priority: null,
  queue: null,
  tags: [],
} as const;

function readOptions(options: EnqueueOptions): {
  readonly key: Omit<NewKey, "inputHash"> | null;
  readonly dueAt: number | null;
  readonly delayMs: number;
  readonly priority: number | null;
  readonly queue: string | null;
  readonly tags: readonly string[];
} {
  const members = Object.keys(options);
  if (members.length === 0) return NO_OPTIONS;
  const problems: Problem[] = refuseUnknownMembers(options, ENQUEUE_MEMBERS, "enqueue()");
  const read = <Value, T>(value: Value | undefined, take: (value: Value) => T): T | null =>
    value === undefined ? null : gather<T | null>(problems, () => take(value), null);
  if (options.at !== undefined && options.delay !== undefined) {
    problems.push({
      field: "enqueue().at and enqueue().delay",
      message: "exclude each other; give one of them",
    });
  }
  for (const member of ["keyFor", "onDuplicate"] as const) {
    if (options[member] !== undefined && options.key === undefined)
      problems.push({
        field: `enqueue().${member}`,
        message: 'needs a key, such as key: "order-7"',
      });
  }
  const name = read(options.key, (value) => requireKey(value, "enqueue().key"));
  const lastsMs = read(options.keyFor, keyForMs) ?? undefined;
  const onDuplicate = read(options.onDuplicate, duplicateRule) ?? undefined;
  const dueAt = read(options.at, instantMs);
  const delayMs = read(options.delay, (value) => durationMs(value, "enqueue().delay")) ?? 0;
  const maxWaitMs = read(options.maxWait, (value) => maxWait(value, options, delayMs)) ?? undefined;
  const key = name === null ? null : { key: name, lastsMs, onDuplicate, maxWaitMs };
  const priority = read(options.priority, (value) => requirePriority(value, "enqueue().priority"));
  const queue = read(options.queue, (value) => requireName(value, "enqueue().queue"));
  const tags = read(options.tags, (value) => requireTags(value, "enqueue().tags")) ?? [];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { key, dueAt, delayMs, priority, queue, tags };
}

function keyForMs(value: Duration | "live"): number | "live" {
  return value === "live" ? value : durationMs(value, "enqueue().keyFor", { min: 1 });
}

function maxWait(value: Duration, { onDuplicate, at }: EnqueueOptions, delayMs: number): number {
  const field = "enqueue().maxWait";
  const refuse = (message: string) => new ConfigurationError([{ field, message }]);
  const waitMs = durationMs(value, field, { min: 1 });
  if (onDuplicate !== "postpone" && onDuplicate !== "replace")
    throw refuse('needs onDuplicate: "postpone" or "replace"; other calls move no run');
  if (at !== undefined) throw refuse("needs delay instead of at: it bounds a time that moves");
  if (waitMs < delayMs) throw refuse("must not be shorter than the delay");
  return waitMs;
}

function duplicateRule(value: OnDuplicate): "replace" | "postpone" | undefined {
  if (!ON_DUPLICATE.includes(value)) {
    const message = 'must be "return", "replace" or "postpone"';
    throw new ConfigurationError([{ field: "enqueue().onDuplicate", message }]);
  }
  return value === "return" ? undefined : value;
}

function instantMs(value: Date | string): number {
  const instant = readInstant(value);
  if (typeof instant === "string")
    throw new ConfigurationError([{ field: "enqueue().at", message: instant }]);
  return instant;
}

/** Equal inputs have equal hashes, whatever the order of their members. */
export function inputHash(inputJson: string): string {
  return createHash("sha256").update(canonicalJson(inputJson)).digest("base64url");
}
