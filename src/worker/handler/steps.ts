// Serves the durable calls of handlers: `ctx.step`, `ctx.sleep`, `ctx.waitFor` and `ctx.call`. Checks what is asked; the book
// of each attempt (step-book.ts) finds, stores and suspends.

import type { EnqueueOptions } from "../../runs/enqueue.js";
import { type RetryOptions, resolveRetry } from "../../runs/rules/retry.js";
import { type Duration, durationMs, readDuration } from "../../shared/duration.js";
import {
  ChildFailedError,
  ConfigurationError,
  type Problem,
  ResultTooLargeError,
  RunCommittedError,
  StepNestedError,
  WaitInStepError,
} from "../../shared/errors.js";
import type { StoredError } from "../../shared/failure.js";
import { readInstant } from "../../shared/instant.js";
import { RESULT_BYTES_MAX } from "../../shared/json.js";
import { requireKey, requireName } from "../../shared/names.js";
import { instantMs, jobName } from "../../shared/options.js";
import type { Ports } from "../../shared/ports.js";
import { gather } from "../../shared/problems.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { NewWait, StepRecord } from "../../store/steps.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import type { FanOut } from "./fan-out.js";
import { currentPart } from "./nesting.js";
import { StepBook } from "./step-book.js";

export type StepOptions = {
  /**
   * Tries of the step itself, which do not count as attempts of the run; its delays suspend the run.
   * @default one try: an error fails the attempt
   */
  readonly retry?: RetryOptions | undefined;
  /** Not supported for steps yet: `ctx.item` has it. */
  readonly tx?: false | undefined;
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

export type StepsParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly emit: Emit;
  readonly fanOut: Pick<FanOut, "call">;
  readonly executor: {
    /** The run sleeps, or is due again at once; `wakeInMs` is null where no time wakes it. */
    suspended(attempt: AttemptView, wakeInMs: number | null): void;
    /** It goes on, after something that it slept for ended at this time. */
    woken(attempt: AttemptView, at: number): void;
    /** The run is no longer held. */
    lostWhileSuspending(attempt: AttemptView, error: unknown): void;
  };
  /** Progress and log lines are stored first, while the attempt still has its fence. */
  readonly reportsStored: (attempt: AttemptView) => Promise<void>;
};

export class Steps {
  readonly #params: StepsParams;

  constructor(params: StepsParams) {
    this.#params = params;
  }

  async step(
    attempt: AttemptView,
    name: string,
    fn: () => unknown,
    options: StepOptions,
  ): Promise<unknown> {
    const part = currentPart();
    if (part) throw new StepNestedError(part);
    const { retry } = readStep(name, fn, options);
    return this.#bookOf(attempt, "ctx.step").step(name, { fn, retry });
  }

  async sleep(attempt: AttemptView, time: Duration | Date, options: SleepOptions): Promise<void> {
    refuseInside("ctx.sleep");
    const { name, ...wait } = readSleep(time, options);
    const asked: NewWait = { name, kind: "sleep", ...wait };
    await this.#bookOf(attempt, "ctx.sleep").wait(name, asked, () => undefined);
  }

  async waitFor(
    attempt: AttemptView,
    signal: string,
    options: WaitForOptions,
  ): Promise<ReceivedSignal | null> {
    refuseInside("ctx.waitFor");
    const { name, ...wait } = readWaitFor(signal, options, attempt);
    const asked: NewWait = { name, kind: "signal", signal, ...wait };
    return this.#bookOf(attempt, "ctx.waitFor").wait(name, asked, toReceived);
  }

  async call(
    attempt: AttemptView,
    job: unknown,
    input: unknown,
    options: CallOptions,
  ): Promise<unknown> {
    refuseInside("ctx.call");
    const { name, isLeft, enqueue } = readCall(job, options);
    const known = jobName(job, "ctx.call(job)");
    const { run, claim } = attempt;
    const parent = { id: run.id, fence: claim.fence };
    const how = { generation: run.extraAttempts, isLeft };
    const asked = { job: known, input, options: enqueue };
    const prepare = () => this.#params.fanOut.call(parent, asked, how);
    return this.#bookOf(attempt, "ctx.call").child(name, known, prepare, toResult);
  }

  #bookOf(attempt: AttemptView, verb: string): StepBook {
    if (attempt.commitPhase !== "none") throw new RunCommittedError(attempt.run.id, verb);
    attempt.book ??= new StepBook(attempt, {
      store: this.#params.store,
      ports: this.#params.ports,
      suspend: (suspending, retries) => void this.#suspend(suspending, retries),
      woken: (resumed, at) => this.#params.executor.woken(resumed, at),
    });
    return attempt.book as StepBook;
  }

  /** The handler no longer counts; the run is held until the database has let it go. */
  async #suspend(attempt: AttemptView, retries: readonly string[]): Promise<void> {
    const { store, ports, holder, executor, reportsStored } = this.#params;
    const { run, claim, book } = attempt;
    const { id, mode, schedule, batch } = run;
    const { fence, isLimited } = claim;
    try {
      if (attempt.hasReported) await reportsStored(attempt);
      const params = {
        ...{ id, fence, mode, schedule, batch, isLimited, holder, retries },
        ranMs: ports.clock.monotonicMs() - attempt.startedMs,
        random: ports.random.next(),
      };
      const answer = await (book as StepBook).suspended(() => store.steps.suspend(params));
      if (answer.result === "suspended") executor.suspended(attempt, answer.wakeInMs);
      else executor.lostWhileSuspending(attempt, null);
    } catch (error) {
      executor.lostWhileSuspending(attempt, error);
    }
  }
}

function refuseInside(verb: string): void {
  const part = currentPart();
  if (part) throw new WaitInStepError(verb, part);
}

/** The result of a called run; throws where it failed. */
function toResult({ name, child, value, error }: StepRecord): unknown {
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

function toReceived({ value }: StepRecord): ReceivedSignal | null {
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
  if (tx !== false) {
    const message =
      "must be left out; use ctx.item(key, (tx) => …, { tx: true }) to store work and its value in one commit";
    problems.push({ field: "ctx.step().tx", message });
  }
  const retry =
    options.retry === undefined
      ? null
      : gather(problems, () => resolveRetry(options.retry, "ctx.step().retry"), null);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { retry };
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
  { run }: Pick<AttemptView, "run">,
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
