// Serves the durable calls of handlers: `ctx.step`, `ctx.sleep`, `ctx.waitFor` and `ctx.call`. The options are read by
// step-options.ts; the journal of each attempt (step-journal.ts) finds, stores and suspends.

import type { Duration } from "../../shared/duration.js";
import { RunCommittedError, StepNestedError, WaitInStepError } from "../../shared/errors.js";
import { jobName } from "../../shared/options.js";
import type { Ports } from "../../shared/ports.js";
import type { NewWait } from "../../store/steps.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import { type AttemptView, isFirstGrant } from "../attempt-view.js";
import type { FanOut } from "./fan-out.js";
import { currentPart, insideOf } from "./nesting.js";
import { StepJournal, type StepTry } from "./step-journal.js";
import {
  type CallOptions,
  type ReceivedSignal,
  readCall,
  readSleep,
  readStep,
  readWaitFor,
  type SleepOptions,
  type StepOptions,
  toReceived,
  toResult,
  type WaitForOptions,
} from "./step-options.js";
import { transactStep } from "./step-transaction.js";

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
    fn: (tx: never) => unknown,
    options: StepOptions,
  ): Promise<unknown> {
    const part = currentPart();
    if (part) throw new StepNestedError(part);
    const { retry, isTx } = readStep(name, fn, options);
    const inside = (tx?: unknown) => insideOf("a step", () => fn(tx as never));
    const { store, ports, emit } = this.#params;
    const transact = (step: StepTry) =>
      transactStep({ store, clock: ports.clock, emit, attempt, fn: inside, step });
    const work = { fn: inside, retry, ...(isTx ? { transact } : {}) };
    return this.#journalOf(attempt, "ctx.step").step(name, work);
  }

  async sleep(attempt: AttemptView, time: Duration | Date, options: SleepOptions): Promise<void> {
    refuseInside("ctx.sleep");
    const { name, ...wait } = readSleep(time, options);
    const asked: NewWait = { name, kind: "sleep", ...wait };
    await this.#journalOf(attempt, "ctx.sleep").wait(name, asked, () => undefined);
  }

  async waitFor(
    attempt: AttemptView,
    signal: string,
    options: WaitForOptions,
  ): Promise<ReceivedSignal | null> {
    refuseInside("ctx.waitFor");
    const { name, ...wait } = readWaitFor(signal, options, attempt);
    const asked: NewWait = { name, kind: "signal", signal, ...wait };
    return this.#journalOf(attempt, "ctx.waitFor").wait(name, asked, toReceived);
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
    return this.#journalOf(attempt, "ctx.call").child(name, known, prepare, toResult);
  }

  #journalOf(attempt: AttemptView, verb: string): StepJournal {
    if (attempt.commitPhase !== "none") throw new RunCommittedError(attempt.run.id, verb);
    attempt.journal ??= this.#newJournal(attempt);
    return attempt.journal as StepJournal;
  }

  #newJournal(attempt: AttemptView): StepJournal {
    const { store, ports, executor } = this.#params;
    const grant = { id: attempt.run.id, fence: attempt.claim.fence };
    const written = { ...grant, generation: attempt.run.extraAttempts };
    return new StepJournal(attempt, {
      ...{ grant, ports, isFirst: isFirstGrant(attempt) },
      store: {
        finish: (steps) => store.steps.finish({ ...written, steps }),
        wait: (waits) => store.steps.wait({ ...written, waits }),
        collect: () => store.steps.collect(written),
        list: (after) => store.steps.list({ id: grant.id, after }),
      },
      suspend: (retries) => void this.#suspend(attempt, retries),
      woken: (at) => executor.woken(attempt, at),
    });
  }

  /** The handler no longer counts; the run is held until the database has released it. */
  async #suspend(attempt: AttemptView, retries: readonly string[]): Promise<void> {
    const { store, ports, holder, executor, reportsStored } = this.#params;
    const { run, claim, journal } = attempt;
    const { id, mode, schedule, batch } = run;
    const { fence, isLimited } = claim;
    try {
      if (attempt.hasReported) await reportsStored(attempt);
      const params = {
        ...{ id, fence, mode, schedule, batch, isLimited, holder, retries },
        ranMs: ports.clock.monotonicMs() - attempt.startedMs,
        random: ports.random.next(),
      };
      const answer = await (journal as StepJournal).suspended(() => store.steps.suspend(params));
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
