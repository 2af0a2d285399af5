// Provides `createTestHoldfast`: the real `Holdfast` on a database in memory, in the time of the test. Nothing is
// mocked: ticks, claims, leases and retries use the same code and the same SQL as in production.

import type { Holdfast } from "../holdfast.js";
import type { HoldfastOptions, StartOptions } from "../instance/config.js";
import type { Job } from "../runs/job.js";
import type { RunId } from "../runs/rules/run.js";
import type { RunListOptions } from "../runs/runs.js";
import type { SignalOptions, SignalSent } from "../runs/signals.js";
import type { Run, RunDetails } from "../runs/view.js";
import type { Explanation } from "../schedules/explainer.js";
import type { TickListOptions } from "../schedules/options.js";
import type { Tick } from "../schedules/view.js";
import { type Duration, durationMs, formatDuration } from "../shared/duration.js";
import { ConfigurationError, ScheduleNotFoundError } from "../shared/errors.js";
import { readInstant } from "../shared/instant.js";
import { refuseUnknownMembers, suggest } from "../shared/suggest.js";
import type { SqliteHandle } from "../store/sqlite/connection/handle.js";
import type { Logger } from "../telemetry/log.js";
import type { RunContext } from "../worker/handler/context.js";
import type { StopReport } from "../worker/worker.js";
import { contains, fail, inWords, listed, shown } from "./kit-assertions.js";
import { type AnyHandler, type Call, KitHandlers } from "./kit-handlers.js";
import { KitDatabase, type Member, type TestHoldfastOptions } from "./kit-instance.js";
import { HeldTooLongError, VirtualClock } from "./virtual-clock.js";

export type TestOptions<App = undefined> = {
  /** Where time begins. @default "2026-01-15T12:00:00Z" */
  readonly now?: Date | string | undefined;
  /** Declares jobs and schedules, as the application does; called again after a restart. */
  readonly setup?: ((holdfast: Holdfast, kit: TestKit<unknown>) => App | Promise<App>) | undefined;
  /** Options of `new Holdfast(…)`. Runs and ticks are kept unless a retention is set. */
  readonly options?: TestHoldfastOptions | undefined;
  /** Jitter and ids follow from it: the same seed is the same test. @default 7 */
  readonly seed?: number | undefined;
  /** How much real time a handler may take before the test gives up. @default "3s" */
  readonly patience?: Duration | undefined;
  /** Called with every new time before anything happens at it, for the clock of a test framework. */
  readonly onTime?: ((now: Date) => void) | undefined;
};

export type RestartOptions = {
  /** How long no instance runs. @default 0 */
  readonly downFor?: Duration | undefined;
  /** True: ends like a killed process; its runs are neither ended nor handed back. @default false */
  readonly isKilled?: boolean | undefined;
};

/** How `untilIdle` has ended. */
export type Idle = {
  /** Live runs that only a signal brings on: `waitingFor` of each says which. Empty if all runs have ended. */
  readonly waiting: readonly RunDetails[];
};

export type RunFilter = Omit<RunListOptions, "limit" | "cursor">;

/** A line of the log: warnings, errors, and the lines of handlers from `ctx.log`. */
export type LogLine = {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
};

type Named = string | { readonly name: string };

const OPTIONS = ["now", "setup", "options", "seed", "patience", "onTime"];
const PAGE = 1_000;
const WITHIN = "1d";

/** Makes a Holdfast for a test, opened and with `setup` done, but not started. */
export async function createTestHoldfast<App = undefined>(
  options: TestOptions<App> = {},
): Promise<TestKit<App>> {
  const problems = refuseUnknownMembers(options, OPTIONS, "createTestHoldfast()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const kit = new TestKit<App>(options);
  await kit.open();
  return kit;
}

export class TestKit<App = undefined> {
  /** Warnings and errors of the library, and the lines of handlers. */
  readonly log: LogLine[] = [];
  /**
   * The class for an application that makes its own instance: use it instead of `Holdfast`, and the
   * instances of the application run in this test, whatever database they name.
   */
  readonly Holdfast: new (
    options?: HoldfastOptions,
  ) => Holdfast;
  readonly #clock: VirtualClock;
  readonly #handlers: KitHandlers;
  readonly #database: KitDatabase;
  readonly #reader: Holdfast;
  readonly #setup: TestOptions<App>["setup"];
  #members: Member[] = [];
  #app: App | undefined;
  #startOptions: StartOptions = {};
  #isMoving = false;
  #isStuck = false;

  /** @internal Use `createTestHoldfast`. */
  constructor(options: TestOptions<App>) {
    const { onTime, seed = 7, patience = "3s" } = options;
    this.#clock = new VirtualClock({
      ...(options.now === undefined ? {} : { startAt: instantMs(options.now, "now") }),
      ...(onTime ? { onTime: (nowMs) => onTime(new Date(nowMs)) } : {}),
      isWhole: true,
      isSwift: true,
      patienceMs: durationMs(patience, "patience", { min: 1 }),
    });
    this.#setup = options.setup;
    this.#handlers = new KitHandlers(this.#clock);
    this.#database = new KitDatabase({
      clock: this.#clock,
      handlers: this.#handlers,
      seed,
      logger: this.#logger(),
      options: options.options ?? {},
    });
    this.#reader = this.#database.reader();
    this.Holdfast = this.#database.holdfastClass((member) => this.#members.push(member));
    onTime?.(this.now());
  }

  /** @internal */
  async open(): Promise<void> {
    await this.#database.opened();
    if (this.#setup) await this.#make();
  }

  /** The instance; the newest one where there are several. */
  get holdfast(): Holdfast {
    if (this.#members.length === 0) new this.Holdfast();
    return (this.#members.at(-1) as Member).holdfast;
  }

  /**
   * The handle of the test's database, for the application's own tables: its writes in a transaction
   * there and its `enqueue` with `{ tx: kit.database }` commit together.
   */
  get database(): SqliteHandle {
    return this.#database.handle;
  }

  /** The result of `setup`. */
  get app(): App {
    return this.#app as App;
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────

  /** The time of the test. */
  now(): Date {
    return new Date(this.#clock.wallMs());
  }

  /** Lets this much time pass: everything that becomes due happens, in its order. */
  advance(duration: Duration): Promise<void> {
    const ms = durationMs(duration, "advance()");
    return this.#move(() => this.#clock.advance(ms));
  }

  /** Lets time pass until this instant. */
  advanceTo(instant: Date | string): Promise<void> {
    const ms = instantMs(instant, "advanceTo()") - this.#clock.wallMs();
    if (ms < 0) throw wrong("advanceTo()", `is in the past: it is ${this.now().toISOString()}`);
    return this.#move(() => this.#clock.advance(ms));
  }

  /** Lets time pass until the promise settles, for instance `holdfast.runs.wait(id)`. */
  until<T>(promise: Promise<T>, { within = WITHIN }: { within?: Duration } = {}): Promise<T> {
    const withinMs = durationMs(within, "until().within");
    return this.#move(() => this.#clock.until(promise, { withinMs }));
  }

  /**
   * Lets time pass until no run waits or runs: retries, delays and durable sleeps included. It stops where only a signal
   * brings on what is left, and returns those runs; a signal's timeout is waited for.
   */
  untilIdle({ within = WITHIN }: { within?: Duration } = {}): Promise<Idle> {
    const withinMs = durationMs(within, "untilIdle().within");
    return this.#move(async () => {
      const deadline = this.#clock.wallMs() + withinMs;
      await this.#clock.rest();
      while (await this.#isBusy()) {
        if (await this.#clock.step(deadline)) continue;
        throw new Error(
          `Not idle after ${formatDuration(withinMs)} of virtual time:\n${listed((await this.#live()).map(inWords))}`,
        );
      }
      return { waiting: await this.#live() };
    });
  }

  /** Sends a signal, as `holdfast.signal` does: runs that wait for it go on as soon as time passes. */
  signal(name: string, options: SignalOptions): Promise<SignalSent> {
    return this.holdfast.signal(name, options);
  }

  /** Waits for virtual time to pass, also in a handler; rejects when the signal aborts. */
  readonly sleep = (duration: Duration, signal?: AbortSignal): Promise<void> =>
    this.#handlers.sleep(durationMs(duration, "sleep()"), signal);

  /** For a handler that waits for virtual time: while the promise is pending, the handler does not stop time. */
  readonly letTimePass = <T>(promise: Promise<T>): Promise<T> =>
    this.#handlers.letTimePass(promise);

  /** A handler that never ends by itself, but obeys its signal: for tests of timeouts and kills. */
  readonly hang = (_input: unknown, ctx: RunContext): Promise<never> => {
    const { signal } = ctx;
    const aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return this.letTimePass(aborted);
  };

  // ── life ───────────────────────────────────────────────────────────────────────────────────────

  /** Starts the instance, and executes everything that is due now. */
  async start(options: StartOptions = {}): Promise<void> {
    this.#startOptions = { worker: true, scheduler: true, ...options };
    await this.holdfast.start(this.#startOptions);
    await this.#move(() => this.#clock.rest());
  }

  /** Stops every instance gracefully. Their data can still be read. */
  async stop(): Promise<StopReport> {
    const stops = this.#members.map(({ holdfast }) => holdfast.stop());
    const reports = await this.#move(() => this.#clock.until(Promise.all(stops)));
    const sum = (name: keyof StopReport) => reports.reduce((total, each) => total + each[name], 0);
    const report = {
      finished: sum("finished"),
      handedBack: sum("handedBack"),
      abandoned: sum("abandoned"),
    };
    this.#members = [];
    return report;
  }

  /** Ends the instance, lets `downFor` pass without one, and starts a new one with the same `setup`. */
  async restart({ downFor = 0, isKilled = false }: RestartOptions = {}): Promise<void> {
    if (!this.#setup)
      throw wrong("restart()", "needs the option `setup`, which declares the jobs again");
    if (isKilled) this.#kill();
    else await this.stop();
    await this.advance(downFor);
    await this.#make();
    await this.start(this.#startOptions);
  }

  /** Stops all instances and forgets the database. Call it at the end of a test. */
  async close(): Promise<void> {
    try {
      if (!this.#isStuck && !this.#isMoving) await this.stop();
    } finally {
      this.#kill();
      await this.#reader.stop();
      await this.#database.close();
    }
  }

  // ── handlers ───────────────────────────────────────────────────────────────────────────────────

  /** Returns every call of a handler so far, in order, for one job or for all. */
  calls(job?: Named): readonly Call[] {
    if (job === undefined) return [...this.#handlers.calls];
    const name = this.#known(job);
    return this.#handlers.calls.filter((call) => call.job === name);
  }

  /** Gives the job this handler from its next call on; its options stay. */
  replace<Input, Result>(
    job: string | Job<Input, Result>,
    handler: (input: Input, ctx: RunContext) => unknown,
  ): void {
    this.#handlers.replace(this.#known(job), handler as AnyHandler);
  }

  /** Gives the job its own handler again. */
  restore(job: Named): void {
    this.#handlers.restore(this.#known(job));
  }

  // ── reads ──────────────────────────────────────────────────────────────────────────────────────

  /** Returns all runs that match, oldest first. */
  async runs(filter: RunFilter = {}): Promise<readonly Run[]> {
    const found: Run[] = [];
    let cursor: string | null = null;
    do {
      const page = await this.#reader.runs.list({
        ...filter,
        limit: PAGE,
        ...(cursor === null ? {} : { cursor }),
      });
      found.push(...page.runs);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return found.reverse();
  }

  /** Returns the inputs with which a job was enqueued, in order. */
  async enqueued<Input = unknown>(job: string | Job<Input>): Promise<readonly Input[]> {
    const runs = await this.runs({ job: this.#name(job), mode: "enqueued" });
    return runs.map(({ input }) => input as Input);
  }

  /** Returns the ledger of a schedule, oldest tick first: the outcome of each tick, and its reason. */
  async ticks(
    schedule: string,
    filter: Omit<TickListOptions, "limit" | "cursor"> = {},
  ): Promise<readonly Tick[]> {
    const found: Tick[] = [];
    let cursor: string | null = null;
    do {
      const page = await this.#reader.schedules.ticks(schedule, {
        ...filter,
        limit: PAGE,
        ...(cursor === null ? {} : { cursor }),
      });
      found.push(...page.ticks);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return found.reverse();
  }

  /** Returns the time of the first handler call for each scheduled run of a schedule, in order. */
  async ranAt(schedule: string): Promise<readonly Date[]> {
    if (!(await this.#reader.schedules.get(schedule))) throw new ScheduleNotFoundError(schedule);
    const runs = await this.runs({ schedule, mode: "scheduled" });
    const ids = new Set<RunId>(runs.map(({ id }) => id));
    const begun: Date[] = [];
    for (const { runId, startedAt } of this.#handlers.calls)
      if (ids.delete(runId)) begun.push(startedAt);
    return begun;
  }

  /** Explains why there was a run at an instant, or why not. */
  explain(schedule: string, at: Date | string): Promise<Explanation> {
    return this.#reader.schedules.explain(schedule, at);
  }

  // ── assertions ─────────────────────────────────────────────────────────────────────────────────

  /** Asserts that the job was enqueued with an input that has at least these members, once or more, or `times` times. */
  async assertEnqueued(
    job: Named,
    input?: unknown,
    { times }: { readonly times?: number } = {},
  ): Promise<void> {
    const name = this.#name(job);
    const all = await this.enqueued(name);
    const count = all.filter((each) => input === undefined || contains(each, input)).length;
    if (times === undefined ? count > 0 : count === times) return;
    const what = input === undefined ? "" : ` with ${shown(input)}`;
    const wanted = times === undefined ? "at least one run" : `${times} runs`;
    fail({
      message: `Expected ${wanted} of "${name}" to be enqueued${what}, but there were ${count}. Enqueued:\n${listed(all)}`,
      actual: all,
      expected: input === undefined ? [] : [input],
      operator: "assertEnqueued",
      from: this.assertEnqueued,
    });
  }

  /** Asserts that the runs of the schedule began at these instants, and at no others. */
  async assertRanAt(schedule: string, instants: readonly (Date | string)[]): Promise<void> {
    const expected = instants.map((each) => iso(instantMs(each, "assertRanAt()")));
    const actual = (await this.ranAt(schedule)).map((each) => iso(each.getTime()));
    if (actual.length === expected.length && actual.every((each, at) => each === expected[at]))
      return;
    const missing = expected.filter((each) => !actual.includes(each));
    const extra = actual.filter((each) => !expected.includes(each));
    const parts = [`Schedule "${schedule}" did not run when expected.`];
    if (extra.length > 0) parts.push(`It also ran at:\n${listed(extra)}`);
    if (missing.length > 0) parts.push(`It did not run at:\n${listed(missing)}`);
    const [first] = missing;
    const why = first === undefined ? "" : (await this.explain(schedule, first)).text;
    if (why !== "") parts.push(`${first}: ${why}`);
    fail({
      message: parts.join("\n"),
      actual,
      expected,
      operator: "assertRanAt",
      from: this.assertRanAt,
    });
  }

  /** Asserts that no run has failed; failed attempts that were retried do not matter. */
  async assertNoFailures(): Promise<void> {
    const failed = await this.runs({ status: "failed" });
    if (failed.length === 0) return;
    fail({
      message: `${failed.length} runs failed:\n${listed(failed.map(inWords))}`,
      actual: failed.map(inWords),
      expected: [],
      operator: "assertNoFailures",
      from: this.assertNoFailures,
    });
  }

  // ── inside ─────────────────────────────────────────────────────────────────────────────────────

  async #make(): Promise<void> {
    const holdfast = new this.Holdfast();
    this.#app = await this.#setup?.(holdfast, this as TestKit<unknown>);
  }

  #kill(): void {
    for (const member of this.#members) member.kill();
    this.#members = [];
    this.#handlers.abandon();
  }

  async #isBusy(): Promise<boolean> {
    if (this.#database.isAllAsleep) return false;
    for (const status of ["pending", "running"] as const) {
      const { runs } = await this.#reader.runs.list({ status, limit: 1 });
      if (runs.length > 0) return true;
    }
    return false;
  }

  /** Returns runs that have not ended, each with its reason, oldest first. */
  async #live(): Promise<readonly RunDetails[]> {
    const live: Run[] = [];
    for (const status of ["pending", "running"] as const)
      live.push(...(await this.runs({ status })));
    const read = await Promise.all(live.map(({ id }) => this.#reader.runs.get(id)));
    return read.filter((run) => run !== null);
  }

  /** Only one call moves time at once: a second one would not know what time it is. */
  async #move<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isMoving)
      throw new Error(
        "Time is already moving: await the call before. In a handler, use kit.sleep() instead.",
      );
    this.#isMoving = true;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof HeldTooLongError)) throw error;
      this.#isStuck = true;
      throw new Error(
        `${error.held.join(" and ")} has not ended within ${formatDuration(error.patienceMs)} of real time. ` +
          "Time stands still while a handler works. If it waits for time to pass, let it wait with kit.sleep() " +
          "or kit.letTimePass(); if it only needs longer, raise the option `patience`.",
        { cause: error },
      );
    } finally {
      this.#isMoving = false;
    }
  }

  #name(job: Named): string {
    return typeof job === "string" ? job : job.name;
  }

  #known(job: Named): string {
    const name = this.#name(job);
    const { declared } = this.#handlers;
    if (declared.includes(name)) return name;
    const meant = suggest(name, declared);
    const hint =
      meant === undefined
        ? `There are: ${declared.join(", ") || "none"}.`
        : `Did you mean "${meant}"?`;
    throw wrong("job", `no job "${name}" with a handler was declared. ${hint}`);
  }

  #logger(): Logger {
    const at = (level: LogLine["level"]) => (fields: object, message: string) =>
      void this.log.push({ level, message, fields: { ...fields } });
    return {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      // Lines of the library below a warning would only fill the memory.
      isLevelEnabled: (level) => level === "warn" || level === "error",
    };
  }
}

function instantMs(value: Date | string, field: string): number {
  const read = readInstant(value);
  if (typeof read === "string") throw wrong(field, read);
  return read;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function wrong(field: string, message: string): ConfigurationError {
  return new ConfigurationError([{ field, message }]);
}
