// Reads the options of a job into its definition, and the policy that is stored with every run. Pure: the handler is only
// carried.

import {
  type Retention,
  type RetentionOptions,
  readRetention,
} from "../../operations/rules/retention.js";
import { type Duration, durationMs } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { requireName, requirePriority } from "../../shared/names.js";
import { gather } from "../../shared/problems.js";
import { isStandardSchema, jsonSchemaOf, type StandardSchema } from "../../shared/schema.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import { LEASE_DEFAULT_MS, LEASE_MIN_MS, TIMEOUT_DEFAULT_MS } from "../../worker/rules/lease.js";
import {
  type ConcurrencyOptions,
  type Limits,
  NO_LIMITS,
  type RateOptions,
  resolveLimits,
} from "../../worker/rules/limits.js";
import { type RetryOptions, resolveRetry } from "./retry.js";
import { ON_LOST, type OnLost, type Policy } from "./run.js";

/** Jobs that the library brings; remote workers never get them, even if they are off. */
export const BUILT_IN_JOBS: readonly string[] = ["shell", "http"];

export type JobOptions = {
  /** Any Standard Schema (zod, valibot, arktype …): checks and types the input. */
  readonly input?: StandardSchema | undefined;
  /** The queue of its runs, unless the enqueue names another. @default "default" */
  readonly queue?: string | undefined;
  /** −100 … 100, larger is more urgent; one step is worth one minute of waiting. @default 0 */
  readonly priority?: number | undefined;
  /**
   * How long a worker may stay silent before its run is given to another worker.
   * A shorter lease recovers sooner from a crash; a longer one tolerates longer pauses.
   * @default "30s"
   */
  readonly lease?: Duration | undefined;
  /** How long one attempt may take, from its claim. @default "2h" */
  readonly timeout?: Duration | undefined;
  /** @default { attempts: 5, delay: "10s", factor: 2, max: "10m", jitter: 0.5 } */
  readonly retry?: RetryOptions | undefined;
  /** Whether a run whose worker stopped responding is retried, or fails. @default "retry" */
  readonly onLost?: OnLost | undefined;
  /** The target, one of `new Holdfast({ workers })`, that its runs are sent to; in place of `run`. */
  readonly worker?: string | undefined;
  /** How many of its runs are held at once, over all instances; per key if one is given. */
  readonly concurrency?: ConcurrencyOptions | undefined;
  /** How many of its runs are claimed within a stretch of time, over all instances; each begins at once or within a stated bound. */
  readonly rate?: RateOptions | undefined;
  /**
   * How long its ended runs are kept, or how many of them: "7d", { count: 1000 }, or both. Shorter than the
   * retention of the instance. @default that of the instance
   */
  readonly retention?: Duration | RetentionOptions | undefined;
  /** The version of the input's shape; stored with every run. @default 1 */
  readonly version?: number | undefined;
  /** Upgrades an input of an earlier version: stored runs outlive code. */
  readonly upcast?: ((input: unknown, version: number) => unknown) | undefined;
};

/** A checked job with all defaults. */
export type JobDefinition = {
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly version: number;
  readonly policy: Policy;
  /** The target of its runs; null: the claiming instance executes them. */
  readonly worker: string | null;
  readonly limits: Limits;
  /** Null: the retention of the instance. */
  readonly retention: Retention | null;
  readonly schema: StandardSchema | undefined;
  /** The schema as JSON Schema text, if its library can export it: for callers without the code. */
  readonly inputSchema: string | null;
  readonly upcast: ((input: unknown, version: number) => unknown) | undefined;
};

const KNOWN_OPTIONS = [
  "input",
  "queue",
  "priority",
  "lease",
  "timeout",
  "retry",
  "onLost",
  "worker",
  "concurrency",
  "rate",
  "retention",
  "version",
  "upcast",
  "run",
  "logs",
  "onStart",
  "onSuccess",
  "onFailure",
  "middleware",
] as const;

export const DEFAULT_QUEUE = "default";

/** Throws one error that names every wrong option. */
export function defineJob(name: string, options: JobOptions): JobDefinition {
  const problems: Problem[] = [];
  const read = <T>(take: () => T, fallback: T): T => gather(problems, take, fallback);
  const field = (member: string) => `job("${name}").${member}`;

  const checkedName = read(() => requireName(name, "job name"), "");
  problems.push(...refuseUnknownMembers(options, KNOWN_OPTIONS, `job("${name}")`));
  const leaseMs = read(
    () => durationMs(options.lease ?? LEASE_DEFAULT_MS, field("lease"), { min: LEASE_MIN_MS }),
    LEASE_DEFAULT_MS,
  );
  const timeoutMs = read(
    () => durationMs(options.timeout ?? TIMEOUT_DEFAULT_MS, field("timeout"), { min: 1 }),
    TIMEOUT_DEFAULT_MS,
  );
  const retry = read(() => resolveRetry(options.retry, field("retry")), undefined);
  const limits = read(() => resolveLimits(options, field), NO_LIMITS);
  const retention = read(() => readRetention(options.retention, field("retention")), null);
  const queue = read(
    () => requireName(options.queue ?? DEFAULT_QUEUE, field("queue")),
    DEFAULT_QUEUE,
  );
  const priority = read(() => requirePriority(options.priority ?? 0, field("priority")), 0);
  const worker = read(
    () => (options.worker === undefined ? null : requireName(options.worker, field("worker"))),
    null,
  );
  if (worker !== null && "run" in options && options.run !== undefined) {
    problems.push({
      field: `${field("worker")} and ${field("run")}`,
      message: "exclude each other: a run is sent to a worker, or executed here",
    });
  }
  const { onLost = "retry", version = 1, input: schema, upcast } = options;
  if (!ON_LOST.includes(onLost)) {
    problems.push({ field: field("onLost"), message: 'must be "retry" or "fail"' });
  }
  if (!Number.isInteger(version) || version < 1 || version > 1_000_000) {
    problems.push({
      field: field("version"),
      message: "must be a whole number from 1, for example 2",
    });
  }
  if (schema !== undefined && !isStandardSchema(schema)) {
    problems.push({
      field: field("input"),
      message: "must be a Standard Schema, for example z.object({ id: z.string() })",
    });
  }
  if (upcast !== undefined && typeof upcast !== "function") {
    problems.push({
      field: field("upcast"),
      message: "must be a function (input, version) => input",
    });
  }
  if (problems.length > 0 || !retry) throw new ConfigurationError(problems);
  return {
    name: checkedName,
    queue,
    priority,
    version,
    policy: { leaseMs, timeoutMs, retry, onLost },
    worker,
    limits,
    retention,
    schema,
    inputSchema: schema === undefined ? null : jsonSchemaOf(schema),
    upcast,
  };
}
