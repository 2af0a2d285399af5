// Injects the faults of a plan when they are due, and keeps their effects on the database and its clock.

import type { VirtualClock } from "../../virtual-clock.js";
import type { EventLog } from "../event-log.js";
import type { Fleet } from "../fleet/fleet.js";
import type { SimulatedProcess } from "../fleet/process.js";
import type { Plan } from "../workload/plan.js";
import { type Fault, faultInWords } from "./catalogue.js";

export type FaultWorld = {
  readonly plan: Plan;
  readonly clock: VirtualClock;
  readonly log: EventLog;
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

  /** The number of restarts of the database. */
  get restarts(): number {
    return this.#restarts;
  }

  /** The error of the database's clock. */
  get databaseOffsetMs(): number {
    return this.#databaseOffsetMs;
  }

  isClockExcused({ isClockWrong }: SimulatedProcess): boolean {
    return isClockWrong || this.#world.nowMs() < this.#databaseSteppedMs + CLOCK_EXCUSE_MS;
  }

  /** Counts a fault of the remote side, which is not in the plan. */
  counted(): void {
    this.#count += 1;
  }

  /** Ends an outage of the database; its clock stays as it is. */
  end(): void {
    this.#downUntilMs = 0;
  }

  /** Applies a due fault of the plan now, or arms it for the next call that fits. */
  inject(fault: Fault): void {
    const { plan, clock: base, log, fleet, nowMs } = this.#world;
    const process = fleet.choose(fault.place, ({ clock }) => !clock.isStopped);
    if (!process) return;
    const { kind, ms } = fault;
    const { clock } = process;
    log.narrate(() => faultInWords(fault, process.label));
    log.mark(`fault ${fault.id} ${kind} at ${process.label}`);
    if (kind === "sleep" || kind.startsWith("clock")) process.isClockWrong = true;
    switch (kind) {
      case "stop":
      case "sleep":
      case "block":
        clock.stop({ isAsleep: kind === "sleep" });
        base.timer(ms, () => {
          clock.resume();
          log.narrate(() => `${process.label} goes on`);
        });
        if (ms > Math.min(...plan.jobs.map(({ leaseMs }) => leaseMs))) log.saw("stop-beyond-lease");
        break;
      case "clock-offset":
      case "clock-step":
        clock.step(ms);
        log.saw(ms < 0 ? "instance-clock-back" : "instance-clock-forward");
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
        log.saw(ms < 0 ? "database-clock-back" : "database-clock-forward");
        break;
      case "database-restart":
        this.#restarts += 1;
        this.#downUntilMs = nowMs() + ms;
        log.saw("database-restart");
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

  /** An armed fault hit a call. */
  struck(fault: Fault, process: SimulatedProcess, verb: string): void {
    const { log, nowMs } = this.#world;
    this.#count += 1;
    log.mark(`fault ${fault.id} strikes ${process.label} ${verb}`);
    log.narrate(() => `fault "${fault.kind}" strikes ${process.label} at ${verb}`);
    if (fault.kind === "answer-late" || fault.kind === "sent-late")
      process.lateUntilMs = Math.max(process.lateUntilMs, nowMs() + fault.ms);
    if (fault.kind === "sent-twice") log.saw("sent-twice");
    if (fault.kind === "busy") log.saw("file-busy");
    if (fault.kind === "disk-full") log.saw("disk-full");
    if (fault.kind === "not-sent" && verb === "claims.exchange") log.saw("unsent-settle");
  }
}
