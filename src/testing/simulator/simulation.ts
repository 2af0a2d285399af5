// One simulation: the processes, their network, the database and time, from the first start to the
// last check. First chaos, then quiet: all faults stop, one healthy instance is left, and everything
// that was begun has to end.

import { VirtualClock } from "../virtual-clock.js";
import { Checkers } from "./checkers/checkers.js";
import { Answers } from "./checkers/responses.js";
import type { Note } from "./checkers/row-changes.js";
import { GARBLED } from "./checkers/schedules.js";
import { judgeTables } from "./checkers/tables.js";
import { judgeUserTables } from "./checkers/user-tables.js";
import { EventLog } from "./event-log.js";
import { FaultInjector } from "./faults/injector.js";
import { quieten } from "./faults/quiet.js";
import { type Connection, SimulatedDatabase } from "./fleet/database.js";
import { Fleet } from "./fleet/fleet.js";
import type { SimulatedProcess } from "./fleet/process.js";
import { RemoteSide } from "./fleet/remote-side.js";
import { type WireWorld, wireStore } from "./fleet/wire.js";
import type { Operation } from "./workload/operation.js";
import { type OperationWorld, perform } from "./workload/operations.js";
import type { Plan } from "./workload/plan.js";

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
  readonly chronicle: EventLog;
  readonly virtualMs: number;
  readonly faultCount: number;
  readonly operationCount: number;
  readonly callCount: number;
};

const ASKED_AGAIN_MS = 5_000;
/** All tables are looked at once in so many commits. */
const TABLES_EVERY = 1_500;
/** Verbs that say something by changing nothing. */
const TOLD_WITHOUT_ROWS = ["exchange", "enqueueBatch", "enqueueChildren"];

export class Simulation {
  readonly #plan: Plan;
  readonly #tamper: Tamper | undefined;
  readonly #clock = new VirtualClock({ isSwift: true });
  readonly #shiftMs: number;
  readonly #startedMs: number;
  readonly #chronicle: EventLog;
  readonly #judges: Checkers;
  readonly #answers: Answers;
  readonly #database = SimulatedDatabase.take();
  readonly #fleet: Fleet;
  readonly #troubles: FaultInjector;
  readonly #elsewhere: RemoteSide;
  #operationCount = 0;
  #callCount = 0;
  #commitCount = 0;

  constructor({ plan, isTold, tamper }: SimulationParams) {
    this.#plan = plan;
    this.#tamper = tamper;
    const { startsAt } = plan.setting;
    this.#startedMs = this.#clock.monotonicMs();
    this.#shiftMs = startsAt - this.#clock.wallMs();
    const chronicle = new EventLog({ nowMs: this.#nowMs, startsAt, isTold });
    const judges = new Checkers(chronicle);
    this.#chronicle = chronicle;
    this.#judges = judges;
    this.#answers = new Answers(chronicle, judges);
    const shared = { plan, clock: this.#clock, chronicle, nowMs: this.#nowMs };
    this.#fleet = new Fleet({
      ...shared,
      shiftMs: this.#shiftMs,
      judges,
      databaseNow: this.#databaseNow,
      connect: (process) => this.#connect(process),
      wire: (store, process) => wireStore(store, process, this.#wireWorld),
      sendsOf: (process) => this.#elsewhere.sendsOf(process),
      isClockExcused: (process) => this.#troubles.isClockExcused(process),
    });
    this.#troubles = new FaultInjector({ ...shared, fleet: this.#fleet });
    this.#elsewhere = new RemoteSide({
      chronicle,
      seed: plan.seed,
      effects: judges.effects,
      runs: judges.runs,
      server: (luck) => this.#server(luck % plan.placeCount),
      nowMs: this.#nowMs,
      elapsedMs: this.#elapsedMs,
      pass: this.#pass,
      isQuiet: () => this.#fleet.survivor !== undefined,
      struck: () => this.#troubles.counted(),
    });
  }

  async run(): Promise<SimulationResult> {
    const plan = this.#plan;
    const chronicle = this.#chronicle;
    chronicle.tell(
      () =>
        `${plan.placeCount} places, polls every ${plan.pollMs} ms, restarts after ${plan.restartMs} ms`,
    );
    this.#fleet.startAll();
    for (const operation of plan.operations)
      this.#clock.timer(operation.afterMs, () => void this.#operate(operation));
    for (const fault of plan.faults)
      this.#clock.timer(fault.afterMs, () => this.#troubles.inject(fault));
    await this.#clock.advance(plan.chaosMs);
    this.#troubles.end();
    await quieten({
      clock: this.#clock,
      chronicle,
      judges: this.#judges,
      fleet: this.#fleet,
      elsewhere: this.#elsewhere,
      pollMs: plan.pollMs,
      databaseNow: this.#databaseNow,
    });
    this.#judgeEnd();
    this.#fleet.endAll();
    this.#database.giveBack();
    return {
      hash: chronicle.digest(),
      chronicle,
      virtualMs: this.#elapsedMs(),
      faultCount: this.#troubles.count,
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
    this.#chronicle.mark(`${process.label} ${verb} ${summary(notes)}`);
    if (notes.length === 0 && !TOLD_WITHOUT_ROWS.includes(verb)) return;
    const [now, worldMs] = [this.#databaseNow(), this.#nowMs()];
    this.#judges.commit({ process, verb, params, now, worldMs, notes });
    if (this.#commitCount % TABLES_EVERY === 0) this.#judgeTables();
  }

  #judgeTables(): void {
    judgeTables(this.#database, this.#chronicle);
    judgeUserTables(this.#database, this.#chronicle);
  }

  #judgeEnd(): void {
    this.#judges.clients.judgeAll();
    this.#elsewhere.judgeEnd(this.#database);
    this.#judgeTables();
  }

  // ── the network ────────────────────────────────────────────────────────────────────────────────

  readonly #wireWorld: WireWorld = {
    nowMs: () => this.#nowMs(),
    pass: (ms) => this.#pass(ms),
    isDown: () => this.#troubles.isDown,
    restarts: () => this.#troubles.restarts,
    latency: () => this.#plan.latency,
    crash: (process, why) => {
      if (why.startsWith("after")) this.#chronicle.saw("crash-after-commit");
      this.#fleet.crash(process, why);
    },
    struck: (fault, process, verb) => this.#troubles.struck(fault, process, verb),
    answered: (process, call) => {
      this.#callCount += 1;
      this.#answers.answered(process, call);
    },
    lost: (process, call) => {
      this.#chronicle.mark(`${process.label} ${call.verb} unknown`);
      this.#answers.lost(call);
    },
    isForgotten: (params) => {
      const text = JSON.stringify([params]);
      return [...this.#judges.runs.removed].some((id) => text.includes(id));
    },
    mark: (event) => this.#chronicle.mark(event),
  };

  // ── operations ─────────────────────────────────────────────────────────────────────────────────

  /** Who serves at this place, or at the next one where somebody does. */
  #server(place: number): SimulatedProcess | null {
    return this.#fleet.choose(place, ({ isServing }) => isServing);
  }

  async #operate(operation: Operation): Promise<void> {
    const process = this.#server(operation.place);
    if (!process) {
      // Nobody is there to ask; people try again.
      if (this.#fleet.survivor === undefined)
        this.#clock.timer(ASKED_AGAIN_MS, () => void this.#operate(operation));
      return;
    }
    this.#operationCount += 1;
    await perform(operation, process, this.#operationWorld);
  }

  get #operationWorld(): OperationWorld {
    const { clients, runs, schedules, calendars, monitors, locks } = this.#judges;
    const crash = (process: SimulatedProcess, why: string) => this.#fleet.crash(process, why);
    return {
      chronicle: this.#chronicle,
      clients,
      runs,
      schedules,
      calendars,
      monitors,
      lockWorld: {
        locks,
        worldMs: this.#nowMs,
        isExcused: (process) => this.#troubles.isClockExcused(process),
        crash,
      },
      nowMs: this.#databaseNow,
      worldMs: this.#nowMs,
      pass: this.#pass,
      elsewhere: this.#elsewhere,
      callOnce: (luck) => this.#fleet.callOnce(luck),
      garble,
      crash,
      stop: (process, graceMs) => this.#fleet.stop(process, graceMs),
    };
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────

  readonly #nowMs = (): number => this.#clock.wallMs() + this.#shiftMs;

  readonly #databaseNow = (): number => this.#nowMs() + this.#troubles.databaseOffsetMs;

  readonly #elapsedMs = (): number => this.#clock.monotonicMs() - this.#startedMs;

  readonly #pass = (ms: number): Promise<void> =>
    new Promise((resolve) => this.#clock.timer(ms, resolve));
}

/** A newer release has written what the others cannot read. */
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

/** What a transaction did, without texts that differ between machines. */
function summary(notes: readonly Note[]): string {
  let text = "";
  for (const note of notes) {
    const [kind, first, second] = note;
    text += `${kind} ${first} ${kind === "instance+" || kind === "policy+" ? "" : second};`;
  }
  return text;
}
