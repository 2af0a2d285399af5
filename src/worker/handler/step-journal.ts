// Keeps the steps and waits of one execution: finds the results of earlier executions, returns them in the order in
// which they were recorded, and suspends the run when every open call of its handler is a wait. Decides nothing about
// the run: the store does, under the fence. Essay: docs/decisions/0015-durable-waits.md.

import type { RetryPolicy } from "../../runs/rules/retry.js";
import { delayAfterMs } from "../../runs/rules/retry.js";
import {
  changeOf,
  STEPS_MAX,
  type StepAsk,
  StepNames,
  type WaitKind,
} from "../../runs/rules/steps.js";
import {
  LeaseLostError,
  RetryLater,
  SignalTakenError,
  StepChangedError,
  StepNameOpenError,
  StepsTooManyError,
  SuspendedError,
} from "../../shared/errors.js";
import { describeFailure, OWN_FOLDER } from "../../shared/failure.js";
import { encodeStep } from "../../shared/json.js";
import type { Ports, Timer } from "../../shared/ports.js";
import { retryWhileUnavailable } from "../../shared/retry-while-unavailable.js";
import type { Grant } from "../../store/claims.js";
import type {
  Collected,
  NewStep,
  NewWait,
  OpenWaits,
  StepRecord,
  Suspended,
  WaitRecord,
} from "../../store/steps.js";
import type { AttemptView } from "../attempt-view.js";
import { classifyFailure } from "../rules/classify.js";
import { AnswerQueue } from "./answer-queue.js";

export type { NewStep, NewWait, StepRecord, WaitRecord };

/** The execution as its journal knows and changes it. */
export type StepExecution = Pick<
  AttemptView,
  "openCalls" | "hasReturned" | "suspension" | "commitPhase" | "stopReason" | "abort"
>;

/** Where steps and waits are kept: in the database, or behind a server. Every call carries the fence. */
export type StepStore = {
  finish(steps: readonly NewStep[]): Promise<readonly number[] | "stale">;
  wait(waits: readonly NewWait[]): Promise<OpenWaits | "stale">;
  collect(): Promise<Collected | "stale">;
  list(after: number): Promise<{ readonly steps: readonly StepRecord[]; readonly isAll: boolean }>;
};

export type JournalTools = {
  readonly grant: Grant;
  readonly store: StepStore;
  readonly ports: Pick<Ports, "clock" | "random">;
  /** No earlier execution has stored anything. */
  readonly isFirst: boolean;
  /** Ends the execution once its waits are all that is left. */
  suspend(retries: readonly string[]): void;
  /** Called once in an execution that something has woken: when that was, by the database's clock. */
  woken(at: number): void;
};

/** A call of the handler, from its name to its end. */
type Call = { readonly name: string; end(): void };

/** A wait that the handler awaits in this execution. */
type Pending = {
  readonly kind: WaitKind;
  readonly until: number | null;
  ended(record: StepRecord): void;
  /** Of a retry: its delay is over. */
  due(): void;
};

/** A try of a step. */
export type StepTry = { readonly name: string; readonly tries: number; readonly startedMs: number };

export type StepWork = {
  readonly fn: () => unknown;
  readonly retry: RetryPolicy | null;
  /** Does the work and stores its value in one commit, instead of `fn` and a store of its own. */
  readonly transact?: (step: StepTry) => Promise<{ readonly no: number; readonly value: string }>;
};

/** A timer waits for the rest of a deadline, and may fire early. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export class StepJournal {
  readonly #attempt: StepExecution;
  readonly #tools: JournalTools;
  readonly #names = new StepNames();
  readonly #recorded = new Map<string, StepRecord>();
  /** The largest number of what is recorded, as far as this execution knows. */
  #lastNo = 0;
  readonly #open = new Map<string, WaitRecord>();
  readonly #pending = new Map<string, Pending>();
  readonly #answers: AnswerQueue;
  #isCheckScheduled = false;
  #loading: Promise<void> | null = null;
  #timer: Timer | null = null;
  /** The database's time when the waits were last read, and this instance's. */
  #readAt = { now: 0, monotonicMs: 0 };
  /** The store handles one write of a run at a time. */
  #lastWrite: Promise<unknown> = Promise.resolve();
  #finishing: NewStep[] = [];
  #finished: Promise<ReadonlyMap<string, number>> | null = null;
  #registering: NewWait[] = [];
  #registered: Promise<void> | null = null;

  constructor(attempt: StepExecution, tools: JournalTools) {
    this.#attempt = attempt;
    this.#tools = tools;
    this.#answers = new AnswerQueue(tools.ports.clock, () => this.#isOver);
  }

  // ── calls of the handler ─────────────────────────────────────────────────────────────────────────

  /** Runs the function until it has succeeded once in the life of the run. */
  async step(base: string, work: StepWork): Promise<unknown> {
    const call = this.#begin(base);
    try {
      const ended = await this.#find(call.name, { kind: "step" });
      if (ended) return await this.#deliver(call, ended.no, () => parsed(ended.value));
      return await this.#do(call, work);
    } catch (error) {
      call.end();
      throw error;
    }
  }

  /** A wait that the store can end. `read` converts its record to the value for the handler. */
  async wait<T>(base: string, wait: NewWait, read: (record: StepRecord) => T): Promise<T> {
    const call = this.#begin(base);
    try {
      const { kind, signal = null, key = null } = wait;
      const ask: StepAsk = { kind: kind as StepAsk["kind"], signal, key };
      const ended = await this.#find(call.name, ask);
      if (ended) return await this.#deliver(call, ended.no, () => read(ended));
      if (!this.#open.has(call.name)) {
        if (kind === "signal") this.#refuseTaken(String(signal), String(key));
        await this.#register({ ...wait, name: call.name });
      }
      return await this.#untilEnded(call, read);
    } catch (error) {
      call.end();
      throw error;
    }
  }

  /**
   * The same for a call of another run; `prepare` checks it and returns the function that stores the child and its
   * wait.
   */
  async child<T>(
    base: string,
    job: string,
    prepare: () => Promise<(name: string) => Promise<OpenWaits | "stale">>,
    read: (record: StepRecord) => T,
  ): Promise<T> {
    const call = this.#begin(base);
    try {
      const ended = await this.#find(call.name, { kind: "run", key: job });
      if (ended) return await this.#deliver(call, ended.no, () => read(ended));
      if (!this.#open.has(call.name)) {
        const make = await prepare();
        this.#sawOpen(await this.#inTurn(() => this.#held(() => make(call.name))));
      }
      return await this.#untilEnded(call, read);
    } catch (error) {
      call.end();
      throw error;
    }
  }

  #begin(base: string): Call {
    const name = this.#names.take(base);
    if (name === null) throw new StepNameOpenError(base);
    this.#attempt.openCalls += 1;
    let hasEnded = false;
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#names.ended(base);
      this.#attempt.openCalls -= 1;
      this.changed();
    };
    return { name, end };
  }

  /** The record of this name must match the present call of the handler. */
  async #find(name: string, asked: StepAsk): Promise<StepRecord | undefined> {
    this.#loading ??= this.#load();
    await this.#loading;
    const ended = this.#recorded.get(name);
    const open = this.#open.get(name);
    const stored = ended ?? (open && { ...open, kind: open.kind === "retry" ? "step" : open.kind });
    const change = stored && changeOf(stored as StepAsk, asked);
    if (change) throw new StepChangedError(name, change.stored, change.asked);
    if (!stored && this.#count >= STEPS_MAX)
      throw new StepsTooManyError(this.#tools.grant.id, STEPS_MAX);
    return ended;
  }

  get #count(): number {
    return this.#recorded.size + this.#open.size;
  }

  #refuseTaken(signal: string, key: string): void {
    for (const each of this.#recorded.values()) {
      const isSame = each.kind === "signal" && each.signal === signal && each.key === key;
      if (isSame && each.value !== null) throw new SignalTakenError(signal, key);
    }
  }

  // ── steps ────────────────────────────────────────────────────────────────────────────────────────

  async #do(call: Call, { fn, retry, transact }: StepWork): Promise<unknown> {
    const { clock, random } = this.#tools.ports;
    for (;;) {
      const open = this.#open.get(call.name);
      if (open && this.#leftMs(open.until) > 0) await this.#untilDue(call);
      const { stopReason } = this.#attempt;
      if (stopReason) throw stopReason;
      const tries = (this.#open.get(call.name)?.tries ?? 0) + 1;
      const startedMs = clock.monotonicMs();
      try {
        const { no, value } = transact
          ? await this.#together(transact, { name: call.name, tries, startedMs })
          : await this.#alone(fn, { name: call.name, tries, startedMs });
        return await this.#deliver(call, no, () => parsed(value));
      } catch (error) {
        const delayMs = retry && this.#retryInMs(error, retry, tries, () => random.next());
        if (delayMs === null) throw error;
        const failure = JSON.stringify(describeFailure(error, OWN_FOLDER));
        await this.#register({ name: call.name, kind: "retry", delayMs, tries, error: failure });
      }
    }
  }

  async #together(transact: NonNullable<StepWork["transact"]>, step: StepTry) {
    const { no, value } = await transact(step);
    await this.#inTurn(() => this.#catchUp(no));
    this.#sawStep(step.name, no, value);
    return { no, value };
  }

  async #alone(fn: () => unknown, { name, tries, startedMs }: StepTry) {
    const value = encodeStep(name, await fn());
    const ranMs = this.#tools.ports.clock.monotonicMs() - startedMs;
    return { no: await this.#finish({ name, value, tries, ranMs }), value };
  }

  /** Null: the error fails the attempt. */
  #retryInMs(
    error: unknown,
    retry: RetryPolicy,
    tries: number,
    random: () => number,
  ): number | null {
    if (this.#attempt.stopReason || error instanceof LeaseLostError || isLater(error)) return null;
    const { class: failureClass, retryAfterMs } = classifyFailure(error);
    if (failureClass === "permanent" || tries >= retry.attempts) return null;
    const asked = Number.isFinite(retryAfterMs) ? { retryAfterMs: Number(retryAfterMs) } : {};
    const isBeyondMax = retry.honoursRetryAfterBeyondMax ?? false;
    return Math.max(1, delayAfterMs({ ...asked, retry, attempt: tries, isBeyondMax }, random));
  }

  /** Steps that end together are stored together. */
  async #finish(step: NewStep): Promise<number> {
    this.#finishing.push(step);
    this.#finished ??= this.#inTurn(async () => {
      const steps = this.#finishing;
      this.#finishing = [];
      this.#finished = null;
      const numbers = await this.#held(() => this.#tools.store.finish(steps));
      await this.#catchUp(Math.min(...numbers));
      return new Map(steps.map(({ name }, at) => [name, numbers[at] as number]));
    });
    const no = (await this.#finished).get(step.name) as number;
    this.#sawStep(step.name, no, step.value);
    return no;
  }

  #sawStep(name: string, no: number, value: string): void {
    this.#open.delete(name);
    this.#record({
      ...{ name, no, kind: "step", value, error: null, signal: null, key: null, child: null },
      ...{ fence: this.#tools.grant.fence, tries: 1, startedAt: 0, endedAt: 0 },
    });
  }

  #record(record: StepRecord): void {
    this.#recorded.set(record.name, record);
    this.#lastNo = Math.max(this.#lastNo, record.no);
  }

  // ── waits ────────────────────────────────────────────────────────────────────────────────────────

  /** Waits that are begun together are stored together. */
  async #register(wait: NewWait): Promise<void> {
    this.#registering.push(wait);
    this.#registered ??= this.#inTurn(async () => {
      const waits = this.#registering;
      this.#registering = [];
      this.#registered = null;
      this.#sawOpen(await this.#held(() => this.#tools.store.wait(waits)));
    });
    await this.#registered;
  }

  #untilEnded<T>(call: Call, read: (record: StepRecord) => T): Promise<T> {
    const open = this.#open.get(call.name);
    return new Promise((resolve, reject) => {
      this.#pend(call, {
        kind: open?.kind ?? "sleep",
        until: open?.until ?? null,
        due: () => undefined,
        ended: (record) => {
          this.#deliver(call, record.no, () => read(record)).then(resolve, reject);
        },
      });
    });
  }

  #untilDue(call: Call): Promise<void> {
    const open = this.#open.get(call.name);
    return new Promise((resolve) => {
      const until = open?.until ?? null;
      this.#pend(call, { kind: "retry", until, ended: () => undefined, due: resolve });
    });
  }

  /** From here on the call does not keep the run from being suspended. */
  #pend({ name }: Call, pending: Pending): void {
    this.#pending.set(name, pending);
    this.#attempt.openCalls -= 1;
    this.changed();
  }

  #unpend(name: string): Pending | undefined {
    const pending = this.#pending.get(name);
    if (!pending) return undefined;
    this.#pending.delete(name);
    this.#attempt.openCalls += 1;
    return pending;
  }

  /** Sleeps and retries that are due while a step is still open end in place. */
  #armTimer(): void {
    this.#timer?.cancel();
    this.#timer = null;
    const untils = [...this.#pending.values()].map(({ until }) => this.#leftMs(until));
    const leftMs = Math.min(...untils, Number.POSITIVE_INFINITY);
    if (!Number.isFinite(leftMs)) return;
    const waitMs = Math.min(Math.max(1, leftMs), TIMER_MAX_MS);
    this.#timer = this.#tools.ports.clock.timer(waitMs, () => void this.#endInPlace());
  }

  async #endInPlace(): Promise<void> {
    this.#timer = null;
    if (this.#isOver) return;
    for (const [name, { kind, until }] of [...this.#pending])
      if (kind === "retry" && this.#leftMs(until) <= 0) this.#unpend(name)?.due();
    const hasDue = [...this.#pending.values()].some(({ until }) => this.#leftMs(until) <= 0);
    try {
      if (hasDue) await this.#inTurn(() => this.#collectInPlace());
    } catch {
      // The run reads its waits again when it is suspended or resumed.
    }
    this.changed();
  }

  async #collectInPlace(): Promise<void> {
    const collected = await this.#collect();
    const numbers = collected.ended.map(({ no }) => no);
    if (numbers.length > 0) await this.#catchUp(Math.min(...numbers));
    this.#saw(collected);
  }

  /** Until this instant, by the database's clock as this instance knows it. */
  #leftMs(until: number | null): number {
    if (until === null) return Number.POSITIVE_INFINITY;
    const { now, monotonicMs } = this.#readAt;
    return until - now - (this.#tools.ports.clock.monotonicMs() - monotonicMs);
  }

  // ── reading and writing ──────────────────────────────────────────────────────────────────────────

  /** The first execution of a run has stored nothing yet. */
  async #load(): Promise<void> {
    if (this.#tools.isFirst) return;
    const collected = await this.#inTurn(() => this.#collect());
    const wokenAt = firstEnd(collected);
    if (wokenAt !== null) this.#tools.woken(wokenAt);
    for (let after = 0, isAll = false; !isAll; ) {
      const page = await retryWhileUnavailable(this.#tools.ports.clock, () =>
        this.#tools.store.list(after),
      );
      for (const record of page.steps) this.#record(record);
      after = page.steps.at(-1)?.no ?? after;
      isAll = page.isAll;
    }
    this.#saw(collected);
  }

  /**
   * A request that reaches the database twice may record ends of which this execution gets no answer. Later executions
   * receive them before the answer with this number, so this one does too.
   */
  async #catchUp(no: number): Promise<void> {
    for (let isAll = false; !isAll && this.#lastNo + 1 < no; ) {
      const page = await retryWhileUnavailable(this.#tools.ports.clock, () =>
        this.#tools.store.list(this.#lastNo),
      );
      const missed = page.steps.filter((each) => each.no < no);
      for (const record of missed) this.#ended(record);
      isAll = page.isAll || missed.length === 0;
    }
  }

  #collect(): Promise<Collected> {
    return this.#held(() => this.#tools.store.collect());
  }

  #saw(collected: Collected): void {
    this.#sawOpen(collected);
    for (const record of collected.ended) this.#ended(record);
  }

  #ended(record: StepRecord): void {
    this.#open.delete(record.name);
    this.#record(record);
    this.#unpend(record.name)?.ended(record);
  }

  #sawOpen({ now, waits }: OpenWaits): void {
    this.#readAt = { now, monotonicMs: this.#tools.ports.clock.monotonicMs() };
    for (const wait of waits) this.#open.set(wait.name, wait);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#lastWrite.then(work, work);
    this.#lastWrite = mine.catch(() => undefined);
    return mine;
  }

  async #held<T>(send: () => Promise<T | "stale">): Promise<T> {
    const answer = await retryWhileUnavailable(this.#tools.ports.clock, send);
    const { id, fence } = this.#tools.grant;
    if (answer === "stale") throw new LeaseLostError(id, fence);
    return answer;
  }

  // ── giving answers back ──────────────────────────────────────────────────────────────────────────

  /** The handler receives results one by one, in the order of their numbers, and gets a turn after each. */
  #deliver<T>(call: Call, no: number, read: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        call.end();
        try {
          resolve(read());
        } catch (error) {
          reject(error);
        }
      };
      this.#answers.add(no, settle);
    });
  }

  // ── suspension ───────────────────────────────────────────────────────────────────────────────────

  get #isOver(): boolean {
    const { suspension, hasReturned, commitPhase, stopReason } = this.#attempt;
    if (suspension !== "none" || hasReturned || commitPhase === "done") return true;
    return stopReason instanceof LeaseLostError;
  }

  /** A call has ended, or a wait has begun: after a turn of the handler, the run may be suspended. */
  changed(): void {
    if (this.#isCheckScheduled) return;
    this.#isCheckScheduled = true;
    this.#tools.ports.clock.soon(() => {
      this.#isCheckScheduled = false;
      this.#check();
    });
  }

  #check(): void {
    if (this.#isOver || this.#pending.size === 0) {
      this.#timer?.cancel();
      return;
    }
    const { openCalls, commitPhase } = this.#attempt;
    if (openCalls > 0 || !this.#answers.isEmpty || commitPhase !== "none") {
      this.#armTimer();
      return;
    }
    this.#timer?.cancel();
    const retries = [...this.#pending].flatMap(([name, { kind }]) =>
      kind === "retry" ? [name] : [],
    );
    this.#attempt.suspension = "suspending";
    this.#attempt.abort(new SuspendedError(this.#tools.grant.id));
    this.#tools.suspend(retries);
  }

  /** Sends the suspension after the writes of this run that are in flight. */
  async suspended(send: () => Promise<Suspended>): Promise<Suspended> {
    return this.#inTurn(() => retryWhileUnavailable(this.#tools.ports.clock, send));
  }
}

/** When the first of what is over has ended; null: the run was woken for nothing. A signal may be older than its wait. */
export function firstEnd({ ended, waits, now }: Collected): number | null {
  const retries = waits.filter(({ kind, until }) => kind === "retry" && Number(until) <= now);
  const ends = [
    ...ended.map(({ startedAt, endedAt }) => Math.max(startedAt, endedAt)),
    ...retries.map(({ until }) => Number(until)),
  ];
  return ends.length === 0 ? null : Math.min(...ends);
}

function parsed(value: string | null): unknown {
  return value === null ? undefined : JSON.parse(value);
}

function isLater(error: unknown): boolean {
  try {
    return error instanceof RetryLater;
  } catch {
    return false; // A Proxy may throw when its prototype is read.
  }
}
