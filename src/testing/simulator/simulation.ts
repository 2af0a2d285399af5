// Runs one simulation: the processes, their network, the database and time, from the first start to the last check.
// Chaos comes first. In the quiet after it all faults stop, one healthy instance is left, and every run has to end.

import { VirtualClock } from "../virtual-clock.js";
import { Checkers } from "./checkers/checkers.js";
import { ResponseChecker } from "./checkers/responses.js";
import type { Note } from "./checkers/row-changes.js";
import type { RunFacts } from "./checkers/run-places.js";
import { GARBLED } from "./checkers/schedules.js";
import { checkTables } from "./checkers/tables.js";
import { EventLog } from "./event-log.js";
import { FaultInjector } from "./faults/injector.js";
import { type Connection, SimulatedDatabase } from "./fleet/database.js";
import { Fleet } from "./fleet/fleet.js";
import type { SimulatedProcess } from "./fleet/process.js";
import { RemoteSide } from "./fleet/remote-side.js";
import { type WireWorld, wireStore } from "./fleet/wire.js";
import type { Operation } from "./workload/operation.js";
import { type OperationWorld, perform } from "./workload/operations.js";
import type { Plan } from "./workload/plan.js";

/** Changes a transaction right before its commit, so that a test can show that a checker fails. */
export type Tamper = (
  call: { readonly verb: string; readonly params: unknown },
  sql: (text: string) => void,
) => void;

export type SimulationParams = {
  readonly plan: Plan;
  readonly hasStory: boolean;
  readonly tamper?: Tamper | undefined;
};

export type SimulationResult = {
  readonly hash: string;
  readonly log: EventLog;
  readonly virtualMs: number;
  readonly faultCount: number;
  readonly operationCount: number;
  readonly callCount: number;
};

const ASKED_AGAIN_MS = 5_000;
/** The tables are checked once per this many commits. */
const TABLES_EVERY = 1_500;
/** Verbs whose transactions are checked even if they change no row. */
const TOLD_WITHOUT_ROWS = ["claims.exchange", "batches.enqueue", "batches.enqueueChildren"];

export class Simulation {
  readonly #plan: Plan;
  readonly #tamper: Tamper | undefined;
  readonly #clock = new VirtualClock({ isSwift: true });
  readonly #shiftMs: number;
  readonly #startedMs: number;
  readonly #log: EventLog;
  readonly #checkers: Checkers;
  readonly #responses: ResponseChecker;
  readonly #database = SimulatedDatabase.take();
  readonly #fleet: Fleet;
  readonly #faults: FaultInjector;
  readonly #remote: RemoteSide;
  #operationCount = 0;
  #callCount = 0;
  #commitCount = 0;

  constructor({ plan, hasStory, tamper }: SimulationParams) {
    this.#plan = plan;
    this.#tamper = tamper;
    const { startsAt } = plan.setting;
    this.#startedMs = this.#clock.monotonicMs();
    this.#shiftMs = startsAt - this.#clock.wallMs();
    const log = new EventLog({ nowMs: this.#nowMs, startsAt, hasStory });
    const checkers = new Checkers(log);
    this.#log = log;
    this.#checkers = checkers;
    this.#responses = new ResponseChecker(log, checkers);
    const shared = { plan, clock: this.#clock, log, nowMs: this.#nowMs };
    this.#fleet = new Fleet({
      ...shared,
      shiftMs: this.#shiftMs,
      checkers,
      databaseNow: this.#databaseNow,
      connect: (process) => this.#connect(process),
      wire: (store, process) => wireStore(store, process, this.#wireWorld),
      sendsOf: (process) => this.#remote.sendsOf(process),
      isClockExcused: (process) => this.#faults.isClockExcused(process),
    });
    this.#faults = new FaultInjector({ ...shared, fleet: this.#fleet });
    this.#remote = new RemoteSide({
      log,
      seed: plan.seed,
      effects: checkers.effects,
      runs: checkers.runs,
      server: (luck) => this.#server(luck % plan.placeCount),
      nowMs: this.#nowMs,
      elapsedMs: this.#elapsedMs,
      pass: this.#pass,
      isQuiet: () => this.#fleet.survivor !== undefined,
      struck: () => this.#faults.counted(),
    });
  }

  async run(): Promise<SimulationResult> {
    const plan = this.#plan;
    const log = this.#log;
    log.narrate(
      () =>
        `${plan.placeCount} places, polls every ${plan.pollMs} ms, restarts after ${plan.restartMs} ms`,
    );
    this.#fleet.startAll();
    for (const operation of plan.operations)
      this.#clock.timer(operation.afterMs, () => void this.#operate(operation));
    for (const fault of plan.faults)
      this.#clock.timer(fault.afterMs, () => this.#faults.inject(fault));
    await this.#clock.advance(plan.chaosMs);
    this.#faults.end();
    await quieten({
      clock: this.#clock,
      log,
      checkers: this.#checkers,
      fleet: this.#fleet,
      remote: this.#remote,
      pollMs: plan.pollMs,
      databaseNow: this.#databaseNow,
    });
    this.#checkEnd();
    this.#fleet.endAll();
    this.#database.giveBack();
    return {
      hash: log.digest(),
      log,
      virtualMs: this.#elapsedMs(),
      faultCount: this.#faults.count,
      operationCount: this.#operationCount,
      callCount: this.#callCount,
    };
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
    this.#log.mark(`${process.label} ${verb} ${summary(notes)}`);
    if (notes.length === 0 && !TOLD_WITHOUT_ROWS.includes(verb)) return;
    const [now, worldMs] = [this.#databaseNow(), this.#nowMs()];
    this.#checkers.commit({ process, verb, params, now, worldMs, notes });
    if (this.#commitCount % TABLES_EVERY === 0) this.#checkTables();
  }

  #checkTables(): void {
    checkTables(this.#database, this.#log);
  }

  #checkEnd(): void {
    this.#checkers.clients.checkAll();
    this.#remote.checkEnd(this.#database);
    this.#checkTables();
  }

  // ── the network ────────────────────────────────────────────────────────────────────────────────

  readonly #wireWorld: WireWorld = {
    nowMs: () => this.#nowMs(),
    pass: (ms) => this.#pass(ms),
    isDown: () => this.#faults.isDown,
    restarts: () => this.#faults.restarts,
    latency: () => this.#plan.latency,
    crash: (process, why) => {
      if (why.startsWith("after")) this.#log.saw("crash-after-commit");
      this.#fleet.crash(process, why);
    },
    struck: (fault, process, verb) => this.#faults.struck(fault, process, verb),
    answered: (process, call) => {
      this.#callCount += 1;
      this.#responses.answered(process, call);
    },
    lost: (process, call) => {
      this.#log.mark(`${process.label} ${call.verb} unknown`);
      this.#responses.lost(call);
    },
    isForgotten: (params) => {
      const text = JSON.stringify([params]);
      return [...this.#checkers.runs.removed].some((id) => text.includes(id));
    },
    mark: (event) => this.#log.mark(event),
  };

  // ── operations ─────────────────────────────────────────────────────────────────────────────────

  /** Returns the serving process at this place, or at the next place that has one. */
  #server(place: number): SimulatedProcess | null {
    return this.#fleet.choose(place, ({ isServing }) => isServing);
  }

  async #operate(operation: Operation): Promise<void> {
    const process = this.#server(operation.place);
    if (!process) {
      // No process serves; callers try again.
      if (this.#fleet.survivor === undefined)
        this.#clock.timer(ASKED_AGAIN_MS, () => void this.#operate(operation));
      return;
    }
    this.#operationCount += 1;
    await perform(operation, process, this.#operationWorld);
  }

  get #operationWorld(): OperationWorld {
    const { clients, runs, schedules, calendars, monitors, locks, waits } = this.#checkers;
    const crash = (process: SimulatedProcess, why: string) => this.#fleet.crash(process, why);
    return {
      log: this.#log,
      clients,
      runs,
      schedules,
      calendars,
      monitors,
      waits,
      lockWorld: {
        locks,
        worldMs: this.#nowMs,
        isExcused: (process) => this.#faults.isClockExcused(process),
        crash,
      },
      nowMs: this.#databaseNow,
      worldMs: this.#nowMs,
      pass: this.#pass,
      remote: this.#remote,
      callOnce: (luck) => this.#fleet.callOnce(luck),
      garble,
      crash,
      stop: (process, graceMs) => this.#fleet.stop(process, graceMs),
    };
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────

  readonly #nowMs = (): number => this.#clock.wallMs() + this.#shiftMs;

  readonly #databaseNow = (): number => this.#nowMs() + this.#faults.databaseOffsetMs;

  readonly #elapsedMs = (): number => this.#clock.monotonicMs() - this.#startedMs;

  readonly #pass = (ms: number): Promise<void> =>
    new Promise((resolve) => this.#clock.timer(ms, resolve));
}

/** Writes a definition that only a newer release could read. */
function garble(process: SimulatedProcess, name: string): void {
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

/** Describes a transaction without texts that differ between machines. */
function summary(notes: readonly Note[]): string {
  let text = "";
  for (const note of notes) {
    const [kind, first, second] = note;
    text += `${kind} ${first} ${kind === "instance+" || kind === "policy+" ? "" : second};`;
  }
  return text;
}

// ── the quiet end ──────────────────────────────────────────────────────────────────────────────────

export type QuietWorld = {
  readonly clock: VirtualClock;
  readonly log: EventLog;
  readonly checkers: Checkers;
  readonly fleet: Fleet;
  readonly remote: RemoteSide;
  readonly pollMs: number;
  databaseNow(): number;
};

/** After this much quiet every run of the chaos must have ended. */
const QUIET_MAX_MS = 45 * 60_000;
const QUIET_STEP_MS = 5_000;
const FIRST_MS = 2_000;
const LAST_MS = 1_000;
const TOLD_MAX = 3;

/** Lets time pass until all runs have ended, and reports those that have not. */
export async function quieten(world: QuietWorld): Promise<void> {
  const { clock, log, checkers, fleet, remote } = world;
  const survivor = fleet.leaveOne();
  log.narrate(() => `From here on nothing goes wrong; ${survivor.label} is left.`);
  const begun = new Set(checkers.runs.unended());
  const isLeft = () => checkers.runs.unended().some((run) => begun.has(run));
  await clock.advance(FIRST_MS);
  const deadline = clock.monotonicMs() + QUIET_MAX_MS;
  while (clock.monotonicMs() < deadline && isLeft()) {
    resume(world);
    if (checkers.runs.unended().some(({ job }) => job === "remote")) void remote.finish();
    sendSignals(world);
    await clock.advance(QUIET_STEP_MS);
  }
  await clock.advance(LAST_MS);
  checkEnds(world, begun);
  checkLiveness(world);
}

/** Resumes everything that is paused. Called until it succeeds, because a poison run may crash the process first. */
function resume({ fleet, checkers }: QuietWorld): void {
  const process = fleet.survivor;
  if (!process?.isStarted || process.isDead) return;
  if (checkers.pauses.isOn) void process.holdfast.resume().catch(() => undefined);
  for (const queue of ["side", "default"]) {
    if (!checkers.runs.isQueuePaused(queue)) continue;
    void process.store.queues.pause({ queue, isPaused: false }).catch(() => undefined);
  }
}

/** Sends the signals that nobody has sent; one that was sent in the chaos must have arrived by itself. */
function sendSignals({ fleet, checkers }: QuietWorld): void {
  const process = fleet.survivor;
  if (!process?.isStarted || process.isDead) return;
  for (const { name, key } of checkers.waits.unsent())
    void process.holdfast.signal(name, { key, value: "in the quiet" }).catch(() => undefined);
}

function checkEnds({ checkers, log }: QuietWorld, begun: ReadonlySet<RunFacts>): void {
  const left = checkers.runs.unended().filter((run) => begun.has(run));
  for (const { id, job, isGated, places } of left.slice(0, TOLD_MAX))
    log.violate(
      "L",
      `Run ${id} (${job}, ${isGated ? "gated" : `in ${places}`}) has not ended ` +
        `${QUIET_MAX_MS / 60_000} min after faults stopped.`,
    );
}

function checkLiveness({ checkers, log, pollMs, databaseNow }: QuietWorld): void {
  const lateMs = pollMs * 1.2 + 1_000;
  const now = databaseNow();
  for (const text of checkers.schedules.overdue(now - lateMs)) log.violate("L", text);
  for (const run of checkers.waits.overdue(now - lateMs))
    log.violate("L", `Run ${run} sleeps for longer than its first deadline.`);
  for (const { fence, until, process } of checkers.runs.leases.values()) {
    if (process?.isDead !== false && until + lateMs < now)
      log.violate("L", `Fence ${fence} of the dead ${process?.label} still stands.`);
  }
}
