// What goes wrong in one simulation: the faults of its plan as they come due, and what they have done to
// the database and its clock.

import type { VirtualClock } from "../../virtual-clock.js";
import type { EventLog } from "../event-log.js";
import type { Fleet } from "../fleet/fleet.js";
import type { SimulatedProcess } from "../fleet/process.js";
import type { Plan } from "../workload/plan.js";
import { type Fault, faultInWords } from "./catalogue.js";

export type FaultWorld = {
  readonly plan: Plan;
  readonly clock: VirtualClock;
  readonly chronicle: EventLog;
  readonly fleet: Fleet;
  nowMs(): number;
};

/** A step of the database's clock may end leases that were granted this long before it. */
const CLOCK_EXCUSE_MS = 60_000;

export class FaultInjector {
  readonly #world: FaultWorld;
  #count = 0;
  #downUntilMs = 0;
  #restarts = 0;
  #databaseOffsetMs = 0;
  #databaseSteppedMs = Number.NEGATIVE_INFINITY;

  constructor(world: FaultWorld) {
    this.#world = world;
  }

  /** The faults that had an effect. */
  get count(): number {
    return this.#count;
  }

  /** Whether the database is away. */
  get isDown(): boolean {
    return this.#world.nowMs() < this.#downUntilMs;
  }

  /** Of the database. */
  get restarts(): number {
    return this.#restarts;
  }

  /** How far the database's clock is off. */
  get databaseOffsetMs(): number {
    return this.#databaseOffsetMs;
  }

  isClockExcused({ isClockWrong }: SimulatedProcess): boolean {
    return isClockWrong || this.#world.nowMs() < this.#databaseSteppedMs + CLOCK_EXCUSE_MS;
  }

  /** A fault elsewhere, that no plan has. */
  counted(): void {
    this.#count += 1;
  }

  /** The database is back; its clock stays as it is. */
  end(): void {
    this.#downUntilMs = 0;
  }

  /** A fault of the plan is due: it strikes now, or the next call that it fits. */
  inject(fault: Fault): void {
    const { plan, clock: base, chronicle, fleet, nowMs } = this.#world;
    const process = fleet.choose(fault.place, ({ clock }) => !clock.isStopped);
    if (!process) return;
    const { kind, ms } = fault;
    const { clock } = process;
    chronicle.tell(() => faultInWords(fault, process.label));
    chronicle.mark(`fault ${fault.id} ${kind} at ${process.label}`);
    if (kind === "sleep" || kind.startsWith("clock")) process.isClockWrong = true;
    switch (kind) {
      case "stop":
      case "sleep":
      case "block":
        clock.stop({ isAsleep: kind === "sleep" });
        base.timer(ms, () => {
          clock.resume();
          chronicle.tell(() => `${process.label} goes on`);
        });
        if (ms > Math.min(...plan.jobs.map(({ leaseMs }) => leaseMs)))
          chronicle.saw("stop-beyond-lease");
        break;
      case "clock-offset":
      case "clock-step":
        clock.step(ms);
        chronicle.saw(ms < 0 ? "instance-clock-back" : "instance-clock-forward");
        break;
      case "clock-drift":
        clock.drift(ms / 100_000);
        break;
      case "cut-off":
        process.cutOffUntilMs = nowMs() + ms;
        break;
      case "database-step":
        this.#databaseOffsetMs += ms;
        this.#databaseSteppedMs = nowMs();
        chronicle.saw(ms < 0 ? "database-clock-back" : "database-clock-forward");
        break;
      case "database-restart":
        this.#restarts += 1;
        this.#downUntilMs = nowMs() + ms;
        chronicle.saw("database-restart");
        break;
      case "blackout":
        fleet.blackout(fault);
        break;
      default:
        process.armed.push(fault);
        return;
    }
    this.#count += 1;
  }

  /** A call met the fault that was waiting for it. */
  struck(fault: Fault, process: SimulatedProcess, verb: string): void {
    const { chronicle, nowMs } = this.#world;
    this.#count += 1;
    chronicle.mark(`fault ${fault.id} strikes ${process.label} ${verb}`);
    chronicle.tell(() => `fault "${fault.kind}" strikes ${process.label} at ${verb}`);
    if (fault.kind === "answer-late" || fault.kind === "sent-late")
      process.lateUntilMs = Math.max(process.lateUntilMs, nowMs() + fault.ms);
    if (fault.kind === "sent-twice") chronicle.saw("sent-twice");
    if (fault.kind === "busy") chronicle.saw("file-busy");
    if (fault.kind === "disk-full") chronicle.saw("disk-full");
    if (fault.kind === "not-sent" && verb === "exchange") chronicle.saw("unsent-settle");
  }
}
