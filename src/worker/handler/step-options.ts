// Reads the options of `ctx.step`, `ctx.sleep`, `ctx.waitFor` and `ctx.call`, and converts their stored results for handlers,
// in this process and in remote workers.

import type { EnqueueOptions } from "../../runs/enqueue.js";
import { type RetryOptions, resolveRetry } from "../../runs/rules/retry.js";
import { type Duration, durationMs, readDuration } from "../../shared/duration.js";
import {
  ChildFailedError,
  ConfigurationError,
  type Problem,
  ResultTooLargeError,
} from "../../shared/errors.js";
import type { StoredError } from "../../shared/failure.js";
import { readInstant } from "../../shared/instant.js";
import { RESULT_BYTES_MAX } from "../../shared/json.js";
import { requireKey, requireName } from "../../shared/names.js";
import { instantMs, jobName } from "../../shared/options.js";
import { gather } from "../../shared/problems.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { StepRecord } from "../../store/steps.js";

export type StepOptions = {
  /**
   * Tries of the step itself, which do not count as attempts of the run; its delays suspend the run.
   * @default one try: an error fails the attempt
   */
  readonly retry?: RetryOptions | undefined;
  /** True: `fn(tx)` runs in a transaction, which also stores the step. On SQLite `fn` is synchronous. */
  readonly tx?: boolean | undefined;
};

export type SleepOptions = {
  /** Distinguishes several sleeps of one run. @default "sleep" */
  readonly name?: string | undefined;
};

export type WaitForOptions = {
  /** Which signal of this name. @default the id of the run */
  readonly key?: string | undefined;
  /** After this time the call returns null. @default it waits for ever */
  readonly timeout?: Duration | undefined;
  /** The oldest signal that counts: an instant, or any. @default since the run was created */
  readonly since?: "any" | Date | string | undefined;
  /** Distinguishes several waits for one signal. @default the name of the signal */
  readonly name?: string | undefined;
};

export type CallOptions = Omit<
  EnqueueOptions,
  "key" | "keyFor" | "onDuplicate" | "maxWait" | "tx"
> & {
  /** Distinguishes several calls of one job. @default the name of the job */
  readonly name?: string | undefined;
  /** What becomes of the called run if this one ends first. @default "cancel" */
  readonly onCancel?: "cancel" | "leave" | undefined;
};

/** A signal that a run has waited for. */
export type ReceivedSignal<Value = unknown> = { readonly value: Value; readonly at: Date };

/** The result of a called run; throws where it failed. */
export function toResult({ name, child, value, error }: StepRecord): unknown {
  if (error !== null) {
    const ended = JSON.parse(error) as { status: number; error: string | null };
    const why = ended.error === null ? null : (JSON.parse(ended.error) as StoredError);
    throw new ChildFailedError(String(child), ended.status === 3 ? "cancelled" : "failed", why);
  }
  const result: unknown = JSON.parse(value ?? "null");
  const { $truncated, bytes } = (result ?? {}) as { $truncated?: unknown; bytes?: unknown };
  if ($truncated === true && typeof bytes === "number" && bytes > RESULT_BYTES_MAX)
    throw new ResultTooLargeError(name, bytes, RESULT_BYTES_MAX);
  return result;
}

export function toReceived({ value }: StepRecord): ReceivedSignal | null {
  if (value === null) return null;
  const received = JSON.parse(value) as { value: unknown; at: number };
  return { value: received.value, at: new Date(received.at) };
}

// ── options ──────────────────────────────────────────────────────────────────────────────────────────

/** `#` is kept for the numbers of names that are used again. */
export function requireStepName(name: unknown, field: string): string {
  const known = requireName(name, field);
  if (!known.includes("#")) return known;
  const message = 'must not contain "#", which numbers names that are used again';
  throw new ConfigurationError([{ field, message }]);
}

export function readStep(name: unknown, fn: unknown, options: StepOptions) {
  const problems = refuseUnknownMembers(options, ["retry", "tx"], "ctx.step()");
  gather(problems, () => requireStepName(name, "ctx.step(name)"), "");
  if (typeof fn !== "function")
    problems.push({ field: "ctx.step(fn)", message: "must be a function that does the step" });
  const { tx = false } = options;
  if (typeof tx !== "boolean")
    problems.push({ field: "ctx.step().tx", message: "must be true or false" });
  const retry =
    options.retry === undefined
      ? null
      : gather(problems, () => resolveRetry(options.retry, "ctx.step().retry"), null);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { retry, isTx: tx };
}

export function readSleep(time: unknown, options: SleepOptions) {
  const problems: Problem[] = refuseUnknownMembers(options, ["name"], "ctx.sleep()");
  const name = gather(
    problems,
    () => requireStepName(options.name ?? "sleep", "ctx.sleep().name"),
    "",
  );
  const isDate = time instanceof Date;
  const read = isDate ? readInstant(time) : readDuration(time);
  if (typeof read === "string") problems.push({ field: "ctx.sleep(time)", message: read });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return isDate ? { name, until: Number(read) } : { name, delayMs: Number(read) };
}

export function readCall(job: unknown, options: CallOptions) {
  const known = ["name", "onCancel", "at", "delay", "priority", "queue", "tags"];
  const problems: Problem[] = refuseUnknownMembers(options, known, "ctx.call()");
  const { name, onCancel = "cancel", ...enqueue } = options;
  const given = gather(
    problems,
    () => requireStepName(name ?? jobName(job, "ctx.call(job)"), "ctx.call().name"),
    "",
  );
  if (onCancel !== "cancel" && onCancel !== "leave")
    problems.push({ field: "ctx.call().onCancel", message: 'must be "cancel" or "leave"' });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { name: given, isLeft: onCancel === "leave", enqueue };
}

export function readWaitFor(
  signal: unknown,
  options: WaitForOptions,
  { run }: { readonly run: { readonly id: string; readonly createdAt: number } },
) {
  const known = ["key", "timeout", "since", "name"];
  const problems: Problem[] = refuseUnknownMembers(options, known, "ctx.waitFor()");
  gather(problems, () => requireName(signal, "ctx.waitFor(signal)"), "");
  const { key = run.id, timeout, since } = options;
  gather(problems, () => requireKey(key, "ctx.waitFor().key"), "");
  const name = gather(
    problems,
    () => requireStepName(options.name ?? signal, "ctx.waitFor().name"),
    "",
  );
  const delayMs =
    timeout === undefined
      ? null
      : gather(problems, () => durationMs(timeout, "ctx.waitFor().timeout"), null);
  // A signal with the run's id as its key came after the run, also where the database's clock stepped back meanwhile.
  const oldest = key === run.id ? null : run.createdAt;
  const signalSince =
    since === undefined
      ? oldest
      : since === "any"
        ? null
        : gather(problems, () => instantMs(since, "ctx.waitFor().since"), null);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { name, key, delayMs, signalSince };
}
