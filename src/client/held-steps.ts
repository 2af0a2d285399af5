// Gives the handler of a remote worker `ctx.step`, `ctx.sleep`, `ctx.waitFor` and `ctx.call`. It has the journal of local
// handlers, which keeps steps and waits behind the server, under the fence of the run. Earlier ones come with the claim.

import { portableClock } from "../shared/adapters/portable-clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import type { Duration } from "../shared/duration.js";
import { StepNestedError, WaitInStepError } from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { jobName } from "../shared/options.js";
import {
  type NewStep,
  type NewWait,
  type StepExecution,
  StepJournal,
  type StepRecord,
  type WaitRecord,
} from "../worker/handler/step-journal.js";
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
} from "../worker/handler/step-options.js";
import type { BodyOf, ClaimedRun, ResponseOf } from "./wire.js";

export type { CallOptions, ReceivedSignal, SleepOptions, WaitForOptions };
export type RemoteStepOptions = Omit<StepOptions, "tx">;

type Stored = Pick<ResponseOf<"storeSteps">, "steps" | "waits" | "hasMoreSteps">;
type NewWaitBody = NonNullable<BodyOf<"waitRun">["waits"]>[number];

/** The calls that the held run makes for its steps. One that fails with lease_lost throws, and aborts the handler. */
export type HeldStepsParams = {
  readonly run: ClaimedRun;
  readonly signal: AbortSignal;
  store(body: Omit<BodyOf<"storeSteps">, "fence">): Promise<ResponseOf<"storeSteps">>;
  wait(body: Omit<BodyOf<"waitRun">, "fence">): Promise<ResponseOf<"waitRun">>;
  abort(reason: Error): void;
  /** Nothing but waits is open: the run is given back until one of them ends. */
  suspend(retries: readonly string[]): void;
};

/** Calls of an execution that no longer counts. */
const NEVER: Promise<never> = new Promise(() => undefined);

export class HeldSteps implements StepExecution {
  openCalls = 0;
  hasReturned = false;
  suspension: "none" | "suspending" = "none";
  readonly commitPhase = "none";
  readonly #params: HeldStepsParams;
  #journal: StepJournal | null = null;
  /** The steps and waits that came with the claim; null once the journal has them. */
  #first: Stored | null;
  #lastNo = 0;

  constructor(params: HeldStepsParams) {
    this.#params = params;
    const { steps = [], waits = [], hasMoreSteps = false } = params.run;
    this.#first = { steps, waits, hasMoreSteps };
  }

  get stopReason(): Error | null {
    const { signal } = this.#params;
    return signal.aborted ? (signal.reason as Error) : null;
  }

  abort(reason: Error): void {
    this.#params.abort(reason);
  }

  /** The methods of the handler's context. */
  get methods() {
    return {
      step: <Value>(
        name: string,
        fn: () => Value | Promise<Value>,
        options: RemoteStepOptions = {},
      ) => this.#durable(() => this.#step(name, fn, options) as Promise<Value>),
      sleep: (time: Duration | Date, options: SleepOptions = {}) =>
        this.#durable(() => this.#sleep(time, options)),
      waitFor: <Value = unknown>(signal: string, options: WaitForOptions = {}) =>
        this.#durable(
          () => this.#waitFor(signal, options) as Promise<ReceivedSignal<Value> | null>,
        ),
      call: <Result = unknown>(job: string, input: unknown, options: CallOptions = {}) =>
        this.#durable(() => this.#call(job, input, options) as Promise<Result>),
    };
  }

  /** A call that is not durable: while it is open, the run is not suspended. */
  async open<T>(call: () => Promise<T>): Promise<T> {
    if (this.suspension !== "none") return NEVER;
    this.openCalls += 1;
    try {
      return await call();
    } finally {
      this.openCalls -= 1;
      this.#journal?.changed();
    }
  }

  #durable<T>(call: () => Promise<T>): Promise<T> {
    if (this.suspension !== "none") return NEVER;
    const answer = call();
    // The handler may have ended without awaiting it: a failure then has no listener.
    answer.catch(() => undefined);
    return answer;
  }

  async #step(name: string, fn: () => unknown, options: RemoteStepOptions): Promise<unknown> {
    if (insideStep?.getStore()) throw new StepNestedError("a step");
    const { retry } = readStep(name, fn, options);
    const inside = () => (insideStep ? insideStep.run(true, fn) : fn());
    return this.#opened.step(name, { fn: inside, retry });
  }

  async #sleep(time: Duration | Date, options: SleepOptions): Promise<void> {
    refuseInside("ctx.sleep");
    const { name, ...wait } = readSleep(time, options);
    await this.#opened.wait(name, { name, kind: "sleep", ...wait }, () => undefined);
  }

  async #waitFor(signal: string, options: WaitForOptions): Promise<ReceivedSignal | null> {
    refuseInside("ctx.waitFor");
    const { run } = this.#params;
    // Only the server knows when the run was created, from which on signals count.
    const read = readWaitFor(signal, options, { run: { id: run.id, createdAt: 0 } });
    const { name, key, delayMs } = read;
    const { since } = options;
    const text = since instanceof Date ? since.toISOString() : since;
    const asked: Asked = { name, kind: "signal", signal, key, delayMs, sinceText: text };
    return this.#opened.wait(name, asked, toReceived);
  }

  async #call(job: unknown, input: unknown, options: CallOptions): Promise<unknown> {
    refuseInside("ctx.call");
    const { name, isLeft, enqueue } = readCall(job, options);
    const known = jobName(job, "ctx.call(job)");
    const { at, delay, priority, queue, tags } = enqueue;
    const body = given({
      ...{ kind: "run" as const, job: known, input, onCancel: isLeft ? "leave" : "cancel" },
      ...{ at: at instanceof Date ? at.toISOString() : at, delay, priority, queue },
      tags: tags && [...tags],
    });
    const make = async (named: string) => this.#begun([{ ...body, name: named } as NewWaitBody]);
    return this.#opened.child(name, known, async () => make, toResult);
  }

  get #opened(): StepJournal {
    const { run, suspend } = this.#params;
    if (this.#journal) return this.#journal;
    const { steps, waits, hasMoreSteps } = this.#first ?? {};
    const isFirst = steps?.length === 0 && waits?.length === 0 && !hasMoreSteps;
    // Nothing came with the claim: what is read later comes from the server.
    if (isFirst) this.#first = null;
    this.#journal = new StepJournal(this, {
      grant: { id: run.id, fence: run.fence },
      ports: { clock: portableClock, random: systemRandom },
      isFirst,
      store: {
        finish: async (done) => this.#finish(done),
        wait: async (begun) => this.#begun(begun.map(toBody)),
        collect: async () => this.#collect(),
        list: async (after) => this.#list(after),
      },
      suspend,
      woken: () => undefined,
    });
    return this.#journal;
  }

  // ── the server keeps the steps. Times are counted from each response on: clocks need not agree ─────────

  async #finish(done: readonly NewStep[]): Promise<readonly number[]> {
    const steps = done.map(({ name, value, tries, ranMs }) => ({
      ...{ name, value: JSON.parse(value) as unknown, tries, durationMs: ranMs },
    }));
    const { stored } = await this.#params.store({ steps });
    const numbers = new Map(stored.map(({ name, no }) => [name, no]));
    return done.map(({ name }) => numbers.get(name) as number);
  }

  async #begun(waits: readonly NewWaitBody[]) {
    const { waits: open } = await this.#params.wait({ waits: [...waits], suspend: false });
    return { now: 0, waits: open.map(toWait) };
  }

  async #collect() {
    if (this.#first && !this.#isLeftOut(this.#first))
      return { now: 0, waits: this.#first.waits.map(toWait), ended: [] };
    const found = await this.#page(this.#lastNo);
    return { now: 0, waits: found.waits.map(toWait), ended: found.steps };
  }

  /** The claim left out what is stored, as it is too long. */
  #isLeftOut({ steps, hasMoreSteps }: Stored): boolean {
    return steps.length === 0 && hasMoreSteps;
  }

  async #list(after: number) {
    const first = this.#first;
    this.#first = null;
    if (first && !this.#isLeftOut(first)) {
      const steps = first.steps.map(toRecord);
      this.#lastNo = steps.at(-1)?.no ?? 0;
      return { steps, isAll: !first.hasMoreSteps };
    }
    const { steps, hasMoreSteps } = await this.#page(after);
    return { steps, isAll: !hasMoreSteps };
  }

  async #page(after: number) {
    const { steps, waits, hasMoreSteps } = await this.#params.store({ after });
    this.#lastNo = Math.max(this.#lastNo, steps.at(-1)?.no ?? 0);
    return { steps: steps.map(toRecord), waits, hasMoreSteps };
  }
}

/** A wait for a signal, with the oldest one that counts as the handler gave it. */
type Asked = NewWait & { readonly sinceText?: string | undefined };

function toBody(wait: NewWait): NewWaitBody {
  const { name, kind, delayMs, until, signal, key, tries = 1, error } = wait;
  if (kind === "retry") {
    const body = { kind, name, delayMs: Math.round(delayMs ?? 0), tries };
    if (error == null) return body;
    const { code, message, stack } = JSON.parse(error) as StoredError;
    return { ...body, error: given({ code, message, stack }) };
  }
  if (kind === "sleep")
    return until == null
      ? { kind, name, time: delayMs ?? 0 }
      : { kind, name, until: new Date(until).toISOString() };
  const { sinceText: since } = wait as Asked;
  const timeout = delayMs ?? undefined;
  return given({
    kind,
    name,
    signal: String(signal),
    key: String(key),
    timeout,
    since,
  }) as NewWaitBody;
}

function toWait(wait: Stored["waits"][number]): WaitRecord {
  const { name, kind, leftMs, signal, key, run, tries } = wait;
  return { name, kind, since: 0, until: leftMs, signal, key, child: run, tries };
}

function toRecord(step: Stored["steps"][number]): StepRecord {
  const { name, no, kind, error, signal, key, run } = step;
  return {
    ...{ name, no, kind, signal, key, child: run, fence: 0, tries: 1, startedAt: 0, endedAt: 0 },
    value: textOf(step),
    error:
      error === null
        ? null
        : JSON.stringify({
            status: error.status === "cancelled" ? 3 : 2,
            error: error.error === null ? null : JSON.stringify(error.error),
          }),
  };
}

function textOf({ kind, value, error }: Stored["steps"][number]): string | null {
  if (kind === "sleep" || error !== null) return null;
  if (kind !== "signal") return JSON.stringify(value ?? null);
  if (value === null) return null;
  const { value: sent, at } = value as { readonly value: unknown; readonly at: string };
  return JSON.stringify({ value: sent, at: Date.parse(at) });
}

function given<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}

// ── calls inside of a step ───────────────────────────────────────────────────────────────────────

type Inside = { run<T>(value: true, fn: () => T): T; getStore(): true | undefined };

/** Null where the runtime cannot tell. The client must never import a built-in module: it also runs outside of Node. */
const insideStep = ((): Inside | null => {
  type Builtins = { getBuiltinModule?: (id: string) => { AsyncLocalStorage: new () => Inside } };
  const { process } = globalThis as { readonly process?: Builtins };
  const hooks = process?.getBuiltinModule?.("node:async_hooks");
  return hooks ? new hooks.AsyncLocalStorage() : null;
})();

function refuseInside(verb: string): void {
  if (insideStep?.getStore()) throw new WaitInStepError(verb, "a step");
}
