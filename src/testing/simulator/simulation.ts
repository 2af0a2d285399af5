// One simulation: the processes, their network, the database and time, from the first start to the
// last check. First chaos, then quiet: all faults stop, one healthy instance is left, and everything
// that was begun has to end.

import type { RunContext } from "../../engine/context.js";
import type { Grant } from "../../store/store.js";
import { SeededChance, VirtualClock } from "../virtual-clock.js";
import { BatchHistory } from "./batch-history.js";
import { CalendarHistory } from "./calendar-history.js";
import { Chronicle } from "./chronicle.js";
import { Clients } from "./clients.js";
import { type Connection, SimulatedDatabase } from "./database.js";
import { mix } from "./draw.js";
import { Effects } from "./effects.js";
import { Elsewhere } from "./elsewhere.js";
import { type Fault, faultInWords } from "./faults.js";
import { FlowHistory } from "./flow-history.js";
import type { HandlerHost } from "./jobs.js";
import { LockHistory } from "./lock-history.js";
import { MonitorHistory } from "./monitor-history.js";
import type { Note } from "./notes.js";
import { type OperationWorld, perform } from "./operations.js";
import { PauseHistory } from "./pause-history.js";
import { jobsAt, type Plan } from "./plan.js";
import { SimulatedProcess } from "./process.js";
import { RunHistory, type Transaction } from "./run-history.js";
import { GARBLED, ScheduleHistory } from "./schedule-history.js";
import { judgeTables } from "./table-checks.js";
import { judgeToldAnswer } from "./telling.js";
import { judgeUserTables } from "./user-checks.js";
import { type WireWorld, wireStore } from "./wire.js";

/** Changes what a transaction does, right before it is committed: so that checkers can be seen to fail. */
export type Tamper = (
  call: { readonly verb: string; readonly params: unknown },
  sql: (text: string) => void,
) => void;

export type SimulationParams = {
  readonly plan: Plan;
  readonly isTold: boolean;
  readonly tamper?: Tamper | undefined;
};

export type SimulationResult = {
  readonly hash: string;
  readonly chronicle: Chronicle;
  readonly virtualMs: number;
  readonly faultCount: number;
  readonly operationCount: number;
  readonly callCount: number;
};

/** After this much quiet every run of the chaos must have ended. */
const QUIET_MAX_MS = 45 * 60_000;
const QUIET_STEP_MS = 5_000;
const ASKED_AGAIN_MS = 5_000;
/** Processes that start this long after a blackout come back from it. */
const BACK_MS = 30_000;
/** A step of the database's clock may end leases that were granted this long before it. */
const CLOCK_EXCUSE_MS = 60_000;
/** All tables are looked at once in so many commits. */
const TABLES_EVERY = 1_500;
/** Verbs that say something by changing nothing. */
const TOLD_WITHOUT_ROWS = ["exchange", "enqueueBatch", "enqueueChildren"];

export class Simulation {
  readonly #plan: Plan;
  readonly #base = new VirtualClock({ isSwift: true });
  readonly #shiftMs: number;
  readonly #chronicle: Chronicle;
  readonly #effects: Effects;
  readonly #runs: RunHistory;
  readonly #schedules: ScheduleHistory;
  readonly #calendars: CalendarHistory;
  readonly #pauses: PauseHistory;
  readonly #monitors: MonitorHistory;
  readonly #locks: LockHistory;
  readonly #batches: BatchHistory;
  readonly #flows: FlowHistory;
  readonly #clients: Clients;
  readonly #elsewhere: Elsewhere;
  readonly #database = SimulatedDatabase.take();
  readonly #tamper: Tamper | undefined;
  readonly #places: (SimulatedProcess | null)[];
  #bootCount = 0;
  #databaseOffsetMs = 0;
  #databaseSteppedMs = Number.NEGATIVE_INFINITY;
  #downUntilMs = 0;
  #awayUntilMs = 0;
  /** What the first processes after a blackout meet. */
  #armedAtStart: Fault | null = null;
  #restartCount = 0;
  #faultCount = 0;
  #operationCount = 0;
  #callCount = 0;
  #commitCount = 0;
  #survivor: SimulatedProcess | undefined;
  readonly #startedMs: number;

  constructor({ plan, isTold, tamper }: SimulationParams) {
    this.#plan = plan;
    this.#tamper = tamper;
    this.#startedMs = this.#base.monotonicMs();
    this.#shiftMs = plan.setting.startsAt - this.#base.wallMs();
    this.#chronicle = new Chronicle({
      nowMs: () => this.#nowMs(),
      startsAt: plan.setting.startsAt,
      isTold,
    });
    this.#effects = new Effects(this.#chronicle);
    this.#runs = new RunHistory(this.#chronicle, this.#effects);
    this.#schedules = new ScheduleHistory(this.#chronicle);
    this.#calendars = new CalendarHistory(this.#chronicle, this.#schedules);
    this.#pauses = new PauseHistory(this.#chronicle, this.#runs);
    this.#monitors = new MonitorHistory(this.#chronicle, this.#schedules);
    this.#locks = new LockHistory(this.#chronicle);
    this.#batches = new BatchHistory(this.#chronicle, this.#runs);
    this.#flows = new FlowHistory(this.#chronicle, this.#runs);
    this.#clients = new Clients(this.#chronicle, this.#runs);
    this.#places = Array.from({ length: plan.placeCount }, () => null);
    this.#elsewhere = new Elsewhere({
      chronicle: this.#chronicle,
      seed: plan.seed,
      effects: this.#effects,
      runs: this.#runs,
      server: (luck) => this.#choose(luck % plan.placeCount, isServing),
      nowMs: () => this.#nowMs(),
      elapsedMs: () => this.#elapsedMs(),
      pass: (ms) => new Promise((resolve) => this.#base.timer(ms, resolve)),
      isQuiet: () => this.#survivor !== undefined,
      struck: () => {
        this.#faultCount += 1;
      },
    });
  }

  async run(): Promise<SimulationResult> {
    const { plan } = this;
    this.#chronicle.tell(
      () =>
        `${plan.placeCount} places, polls every ${plan.pollMs} ms, restarts after ${plan.restartMs} ms`,
    );
    for (let place = 0; place < plan.placeCount; place += 1) this.#startPlace(place);
    for (const operation of plan.operations)
      this.#base.timer(operation.afterMs, () => void this.#operate(operation));
    for (const fault of plan.faults) this.#base.timer(fault.afterMs, () => this.#inject(fault));
    await this.#base.advance(plan.chaosMs);
    await this.#quieten();
    this.#judgeEnd();
    for (const process of this.#places) process?.die();
    this.#database.giveBack();
    return {
      hash: this.#chronicle.digest(),
      chronicle: this.#chronicle,
      virtualMs: this.#elapsedMs(),
      faultCount: this.#faultCount,
      operationCount: this.#operationCount,
      callCount: this.#callCount,
    };
  }

  get plan(): Plan {
    return this.#plan;
  }

  // ── processes ──────────────────────────────────────────────────────────────────────────────────

  #startPlace(place: number, jobs = jobsAt(this.#plan, place)): SimulatedProcess {
    this.#bootCount += 1;
    const label = `${"ABCDEFG"[place]}${this.#bootCount}`;
    const process = this.#boot(label, { place, jobs });
    this.#places[place] = process;
    this.#chronicle.mark(`${label} starts`);
    this.#chronicle.tell(() => `${label} starts`);
    const isBack = this.#armedAtStart !== null && this.#nowMs() < this.#awayUntilMs + BACK_MS;
    if (this.#armedAtStart && isBack) process.armed.push(this.#armedAtStart);
    void this.#start(process);
    return process;
  }

  #boot(
    label: string,
    { place, jobs }: { readonly place: number; readonly jobs: Plan["jobs"] },
  ): SimulatedProcess {
    const { seed, pollMs, isNamed, isAlert, hasTarget } = this.#plan;
    const [base, shiftMs] = [this.#base, this.#shiftMs];
    const process = new SimulatedProcess({ label, place, seed, base, shiftMs, jobs });
    process.boot({
      seed,
      pollMs,
      isNamed,
      isAlert,
      hasTarget,
      jobs,
      connection: this.#connect(process),
      databaseNow: () => this.#databaseNow(),
      wire: (store) => wireStore(store, process, this.#wireWorld),
      sends: this.#elsewhere.sendsOf(process),
      host: this.#host(process),
    });
    return process;
  }

  /** As an outside cron has it: a process that lives for one bounded pass. */
  async #callOnce(luck: number): Promise<string> {
    this.#bootCount += 1;
    const process = this.#boot(`T${this.#bootCount}`, { place: -1, jobs: this.#plan.jobs });
    const limit = luck % 4;
    const { fired, executed, dispatched } = await process.holdfast.tick({ limit, budget: "20s" });
    if (fired.length > 0) this.#chronicle.saw("pass-fired");
    if (executed > 0) this.#chronicle.saw("pass-executed");
    if (executed + dispatched > limit)
      this.#chronicle.violate("S7", `A pass of at most ${limit} executed ${executed} runs.`);
    await process.holdfast.stop({ grace: 0 });
    process.die();
    return `${fired.length} fired, ${executed} executed`;
  }

  /** As a supervisor does: a start that fails is tried again. */
  async #start(process: SimulatedProcess): Promise<void> {
    for (;;) {
      try {
        await process.holdfast.start({ worker: { concurrency: this.#plan.concurrency } });
        process.isStarted = true;
        return;
      } catch {
        if (process.isStopping) return;
        await new Promise<void>((resolve) => process.clock.timer(1_000, resolve));
      }
    }
  }

  #host(process: SimulatedProcess): Omit<HandlerHost, "clock" | "seed"> {
    return {
      begun: (ctx) => {
        if (process.isDead) return;
        this.#effects.begun(process.label, ctx);
        this.#judgeStart(process, ctx);
      },
      ended: (ctx) => {
        if (!process.isDead) this.#effects.ended(ctx, this.#nowMs());
      },
      replayed: () => this.#chronicle.saw("item-replayed"),
      crash: () => this.#crash(process, "by a poisonous run"),
    };
  }

  /** Nobody begins what was taken away, as trust ends before the lease does; but for clocks that lie. */
  #judgeStart(process: SimulatedProcess, { runId, fence }: RunContext): void {
    if (this.#runs.runs.get(runId)?.fence === fence) return;
    if (this.#isClockExcused(process)) return;
    this.#chronicle.violate("E", `${process.label} began run ${runId}, which it no longer holds.`);
  }

  #isClockExcused({ isClockWrong }: SimulatedProcess): boolean {
    return isClockWrong || this.#nowMs() < this.#databaseSteppedMs + CLOCK_EXCUSE_MS;
  }

  #crash(process: SimulatedProcess, why: string): void {
    if (process.isDead) return;
    process.die();
    this.#chronicle.mark(`${process.label} crashes`);
    this.#chronicle.tell(() => `${process.label} crashes ${why}`);
    this.#replaceLater(process);
  }

  #stop(process: SimulatedProcess, graceMs: number): void {
    if (process.isStopping || process.isDead) return;
    process.isStopping = true;
    void process.holdfast.stop({ grace: graceMs }).then((report) => {
      if (process.isDead) return;
      this.#chronicle.mark(`${process.label} stopped ${JSON.stringify(report)}`);
      this.#chronicle.tell(() => `${process.label} has stopped: ${JSON.stringify(report)}`);
      if (report.abandoned > 0) this.#chronicle.saw("abandoned-at-stop");
      process.die();
      this.#replaceLater(process);
    });
  }

  #replaceLater(process: SimulatedProcess): void {
    const waitMs = Math.max(this.#plan.restartMs, this.#awayUntilMs - this.#nowMs());
    this.#base.timer(waitMs, () => {
      if (this.#places[process.place] !== process) return;
      // In the quiet one place is left, and its process knows every job.
      if (this.#survivor === undefined) this.#startPlace(process.place);
      else if (this.#survivor === process)
        this.#survivor = this.#startPlace(process.place, this.#plan.jobs);
    });
  }

  // ── the database ───────────────────────────────────────────────────────────────────────────────

  #connect(process: SimulatedProcess): Connection {
    const tamper = this.#tamper;
    return this.#database.connect({
      onCommit: (notes) => this.#committed(process, notes),
      beforeCommit: tamper
        ? (sql) => {
            if (process.current) tamper(process.current, sql);
          }
        : undefined,
    });
  }

  #committed(process: SimulatedProcess, notes: readonly Note[]): void {
    this.#commitCount += 1;
    const { verb, params } = process.current ?? { verb: "?", params: null };
    this.#chronicle.mark(`${process.label} ${verb} ${summary(notes)}`);
    if (notes.length === 0 && !TOLD_WITHOUT_ROWS.includes(verb)) return;
    const transaction: Transaction = {
      process,
      verb,
      params,
      now: this.#databaseNow(),
      worldMs: this.#nowMs(),
      notes,
    };
    const touched = this.#runs.commit(transaction);
    this.#flows.commit(transaction, touched);
    this.#runs.judgeLosses();
    this.#schedules.commit(transaction, touched);
    this.#calendars.commit(transaction);
    this.#pauses.commit(transaction);
    this.#monitors.commit(transaction);
    this.#locks.commit(transaction);
    this.#batches.commit(transaction);
    if (this.#commitCount % TABLES_EVERY === 0) this.#judgeTables();
  }

  #judgeTables(): void {
    judgeTables(this.#database, this.#chronicle);
    judgeUserTables(this.#database, this.#chronicle);
  }

  #databaseNow(): number {
    return this.#nowMs() + this.#databaseOffsetMs;
  }

  // ── the network ────────────────────────────────────────────────────────────────────────────────

  readonly #wireWorld: WireWorld = {
    nowMs: () => this.#nowMs(),
    pass: (ms) => new Promise((resolve) => this.#base.timer(ms, resolve)),
    isDown: () => this.#nowMs() < this.#downUntilMs,
    restarts: () => this.#restartCount,
    latency: () => this.#plan.latency,
    crash: (process, why) => {
      if (why.startsWith("after")) this.#chronicle.saw("crash-after-commit");
      this.#crash(process, why);
    },
    struck: (fault, process, verb) => this.#struck(fault, process, verb),
    answered: (process, { verb, params, answer }) => {
      this.#callCount += 1;
      this.#locks.answered({ verb, answer });
      if (verb === "scheduleStates" || verb === "dueSchedules") this.#noteRead(process, answer);
      else if (verb === "exchange") this.#judgeAnswer(params, answer);
      else if (verb === "commit") this.#judgeCommit(params, answer);
      else if (verb === "progress") judgeToldAnswer(params, answer, this.#chronicle);
      else if (verb === "claimsByToken" && (answer as unknown[]).length > 0)
        this.#chronicle.saw("claim-read-back");
      else if (verb === "writeSchedules") {
        const { changes } = params as { readonly changes: readonly unknown[] };
        if ((answer as unknown[]).length < changes.length) this.#chronicle.saw("tick-raced");
      }
    },
    lost: (process, { verb, params }) => {
      this.#chronicle.mark(`${process.label} ${verb} unknown`);
      if (verb === "exchange") {
        const { limit, settlements } = params as {
          readonly limit: number;
          readonly settlements: readonly unknown[];
        };
        if (limit > 0) this.#chronicle.saw("lost-answer-of-claim");
        if (settlements.length > 0) this.#chronicle.saw("lost-answer-of-settle");
      }
      if (verb === "commit")
        this.#chronicle.saw(this.#isCommitted(params) ? "lost-answer-of-commit" : "lost-commit");
      if (verb === "enqueue") this.#chronicle.saw("lost-answer-of-enqueue");
      if (verb === "writeSchedules") this.#chronicle.saw("lost-answer-of-tick");
    },
    isForgotten: (params) => {
      const text = JSON.stringify([params]);
      return [...this.#runs.removed].some((id) => text.includes(id));
    },
    mark: (event) => this.#chronicle.mark(event),
  };

  #noteRead(process: SimulatedProcess, answer: unknown): void {
    const { now, schedules } = answer as {
      readonly now: number;
      readonly schedules: readonly { readonly id: number; readonly revision: number }[];
    };
    this.#monitors.looked(now);
    for (const state of schedules) this.#schedules.read(process.label, state, now);
  }

  /** What a holder is told of its settlements is what became of them. */
  #judgeAnswer(params: unknown, answer: unknown): void {
    const { settlements } = params as {
      readonly settlements: readonly { readonly id: string; readonly fence: number }[];
    };
    const { stale } = answer as {
      readonly stale: readonly { readonly id: string; readonly fence: number }[];
    };
    const refused = new Set(stale.map(({ id, fence }) => `${id} ${fence}`));
    for (const { id, fence } of settlements) {
      const key = `${id} ${fence}`;
      const end = this.#runs.ends.get(key);
      if (refused.has(key)) {
        this.#chronicle.saw("stale-settle-refused");
        if (end === "reclaimed") this.#chronicle.saw("completion-beaten-by-reaper");
        if (end === "settled" && !this.#runs.removed.has(id))
          this.#chronicle.violate("S3", `Run ${id} was settled under ${fence}, and called stale.`);
      } else if (end !== "settled" && end !== "committed" && !this.#runs.removed.has(id))
        this.#chronicle.violate(
          "S3",
          `Run ${id} was not settled under ${fence}, and nobody said so.`,
        );
    }
  }

  /** The same of a commit. */
  #judgeCommit(params: unknown, answer: unknown): void {
    const { id, fence } = params as Grant;
    const isStale = answer === "stale";
    if (isStale) this.#chronicle.saw("stale-commit-refused");
    if (isStale === this.#isCommitted(params) && !this.#runs.removed.has(id))
      this.#chronicle.violate("S3", `A commit of run ${id} under ${fence} was called ${answer}.`);
  }

  #isCommitted(params: unknown): boolean {
    const { id, fence } = params as Grant;
    return this.#runs.ends.get(`${id} ${fence}`) === "committed";
  }

  // ── faults and operations ──────────────────────────────────────────────────────────────────────

  /** The process at this place, or the next one that fits. */
  #choose(place: number, fits: (process: SimulatedProcess) => boolean): SimulatedProcess | null {
    const { length } = this.#places;
    for (let step = 0; step < length; step += 1) {
      const process = this.#places[(place + step) % length];
      if (process && !process.isDead && fits(process)) return process;
    }
    return null;
  }

  async #operate(operation: Plan["operations"][number]): Promise<void> {
    const process = this.#choose(operation.place, isServing);
    if (!process) {
      // Nobody is there to ask; people try again.
      if (this.#survivor === undefined)
        this.#base.timer(ASKED_AGAIN_MS, () => void this.#operate(operation));
      return;
    }
    this.#operationCount += 1;
    await perform(operation, process, this.#operationWorld);
  }

  get #operationWorld(): OperationWorld {
    return {
      chronicle: this.#chronicle,
      clients: this.#clients,
      runs: this.#runs,
      schedules: this.#schedules,
      calendars: this.#calendars,
      monitors: this.#monitors,
      lockWorld: {
        locks: this.#locks,
        worldMs: () => this.#nowMs(),
        isExcused: (process) => this.#isClockExcused(process),
        crash: (process, why) => this.#crash(process, why),
      },
      nowMs: () => this.#databaseNow(),
      worldMs: () => this.#nowMs(),
      pass: (ms) => new Promise((resolve) => this.#base.timer(ms, resolve)),
      elsewhere: this.#elsewhere,
      callOnce: (luck) => this.#callOnce(luck),
      garble: (process, schedule) => this.#garble(process, schedule),
      crash: (process, why) => this.#crash(process, why),
      stop: (process, graceMs) => this.#stop(process, graceMs),
    };
  }

  /** A newer release has written what the others cannot read. */
  #garble(process: SimulatedProcess, name: string): void {
    process.current = { verb: "garble", params: {} };
    const { handle } = process.connection;
    handle.exec("begin immediate");
    handle
      .prepare(
        `update holdfast_schedule set definition = :definition, version = version + 1, revision = revision + 1
         where name = :name and deleted_at is null`,
      )
      .run({ definition: GARBLED, name });
    handle.exec("commit");
  }

  #inject(fault: Fault): void {
    const process = this.#choose(fault.place, ({ clock }) => !clock.isStopped);
    if (!process) return;
    const { kind, ms } = fault;
    const { clock } = process;
    this.#chronicle.tell(() => faultInWords(fault, process.label));
    this.#chronicle.mark(`fault ${fault.id} ${kind} at ${process.label}`);
    if (kind === "sleep" || kind.startsWith("clock")) process.isClockWrong = true;
    switch (kind) {
      case "stop":
      case "sleep":
      case "block":
        clock.stop({ isAsleep: kind === "sleep" });
        this.#base.timer(ms, () => {
          clock.resume();
          this.#chronicle.tell(() => `${process.label} goes on`);
        });
        if (ms > Math.min(...this.#plan.jobs.map(({ leaseMs }) => leaseMs)))
          this.#chronicle.saw("stop-beyond-lease");
        break;
      case "clock-offset":
      case "clock-step":
        clock.step(ms);
        this.#chronicle.saw(ms < 0 ? "instance-clock-back" : "instance-clock-forward");
        break;
      case "clock-drift":
        clock.drift(ms / 100_000);
        break;
      case "cut-off":
        process.cutOffUntilMs = this.#nowMs() + ms;
        break;
      case "database-step":
        this.#databaseOffsetMs += ms;
        this.#databaseSteppedMs = this.#nowMs();
        this.#chronicle.saw(ms < 0 ? "database-clock-back" : "database-clock-forward");
        break;
      case "database-restart":
        this.#restartCount += 1;
        this.#downUntilMs = this.#nowMs() + ms;
        this.#chronicle.saw("database-restart");
        break;
      case "blackout":
        this.#blackout(fault);
        break;
      default:
        process.armed.push(fault);
        return;
    }
    this.#faultCount += 1;
  }

  /** Whoever comes back first finds much to do, and may fail at it. */
  #blackout(fault: Fault): void {
    this.#awayUntilMs = this.#nowMs() + fault.ms;
    const isHard = fault.id % 2 === 0;
    this.#armedAtStart = isHard ? { ...fault, kind: "not-sent", verbs: ["dueSchedules"] } : null;
    for (const process of [...this.#places]) if (process) this.#crash(process, "in a blackout");
  }

  #struck(fault: Fault, process: SimulatedProcess, verb: string): void {
    this.#faultCount += 1;
    this.#chronicle.mark(`fault ${fault.id} strikes ${process.label} ${verb}`);
    this.#chronicle.tell(() => `fault "${fault.kind}" strikes ${process.label} at ${verb}`);
    if (fault.kind === "answer-late" || fault.kind === "sent-late")
      process.lateUntilMs = Math.max(process.lateUntilMs, this.#nowMs() + fault.ms);
    if (fault.kind === "sent-twice") this.#chronicle.saw("sent-twice");
    if (fault.kind === "busy") this.#chronicle.saw("file-busy");
    if (fault.kind === "disk-full") this.#chronicle.saw("disk-full");
    if (fault.kind === "not-sent" && verb === "exchange") this.#chronicle.saw("unsent-settle");
  }

  // ── quiet ──────────────────────────────────────────────────────────────────────────────────────

  async #quieten(): Promise<void> {
    this.#downUntilMs = 0;
    // A blackout is over too: who is restarted in the quiet neither stays away nor meets what comes with it.
    this.#awayUntilMs = 0;
    const survivor = this.#chooseSurvivor();
    this.#survivor = survivor;
    for (const process of this.#places)
      if (process && process !== survivor && !process.isDead) process.die();
    this.#chronicle.tell(() => `From here on nothing goes wrong; ${survivor.label} is left.`);
    survivor.armed.length = 0;
    survivor.connection.troubles.length = 0;
    survivor.cutOffUntilMs = 0;
    survivor.clock.mend();
    const left = () => this.#unended();
    const begun = new Set(left());
    await this.#base.advance(2_000);
    const deadline = this.#elapsedMs() + QUIET_MAX_MS;
    while (this.#elapsedMs() < deadline && left().some((id) => begun.has(id))) {
      this.#resume();
      if (left().some((id) => this.#runs.runs.get(id)?.job === "remote"))
        void this.#elsewhere.finish();
      await this.#base.advance(QUIET_STEP_MS);
    }
    await this.#base.advance(1_000);
    for (const id of left()
      .filter((each) => begun.has(each))
      .slice(0, 3)) {
      const run = this.#runs.runs.get(id);
      this.#chronicle.violate(
        "L",
        `Run ${id} (${run?.job}, ${run?.isGated ? "gated" : `in ${run?.places}`}) has not ended ` +
          `${QUIET_MAX_MS / 60_000} min after faults stopped.`,
      );
    }
    this.#judgeLiveness();
  }

  /** Until it is done: whoever is asked may crash by a poisonous run first. */
  #resume(): void {
    const process = this.#survivor;
    if (!process?.isStarted || process.isDead) return;
    if (this.#pauses.isOn) void process.holdfast.resume().catch(() => undefined);
    for (const queue of ["side", "default"]) {
      if (!this.#runs.isQueuePaused(queue)) continue;
      void process.store.pauseQueue({ queue, isPaused: false }).catch(() => undefined);
    }
  }

  /** A process that has lived through it and no longer suffers from it, or a fresh one. */
  #chooseSurvivor(): SimulatedProcess {
    const { seed, oldPlace, jobs } = this.#plan;
    const chance = new SeededChance(mix(seed, "survivor")).next();
    const fits = (process: SimulatedProcess) =>
      process.place !== oldPlace && isServing(process) && process.lateUntilMs <= this.#nowMs();
    const found = chance < 0.5 ? this.#choose(0, fits) : null;
    if (found) return found;
    const place = oldPlace === 0 ? 1 : 0;
    this.#places[place]?.die();
    return this.#startPlace(place, jobs);
  }

  #unended(): string[] {
    const ids: string[] = [];
    for (const run of this.#runs.runs.values()) if (!this.#runs.isTerminal(run)) ids.push(run.id);
    return ids;
  }

  #judgeLiveness(): void {
    const pollMs = this.#plan.pollMs * 1.2 + 1_000;
    for (const text of this.#schedules.overdue(this.#databaseNow() - pollMs))
      this.#chronicle.violate("L", text);
    const now = this.#databaseNow();
    for (const { fence, until, process } of this.#runs.leases.values()) {
      if (process?.isDead !== false && until + pollMs < now)
        this.#chronicle.violate("L", `Fence ${fence} of the dead ${process?.label} still stands.`);
    }
  }

  #judgeEnd(): void {
    this.#clients.judgeAll();
    this.#elsewhere.judgeEnd(this.#database);
    this.#judgeTables();
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────

  #nowMs(): number {
    return this.#base.wallMs() + this.#shiftMs;
  }

  #elapsedMs(): number {
    return this.#base.monotonicMs() - this.#startedMs;
  }
}

function isServing({ isStarted, isStopping, clock }: SimulatedProcess): boolean {
  return isStarted && !isStopping && !clock.isStopped;
}

/** What a transaction did, without texts that differ between machines. */
function summary(notes: readonly Note[]): string {
  let text = "";
  for (const note of notes) {
    const [kind, first, second] = note;
    text += `${kind} ${first} ${kind === "instance+" || kind === "policy+" ? "" : second};`;
  }
  return text;
}
