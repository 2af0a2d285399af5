// Supervises the processes of one simulation: it replaces dead ones, until in the quiet only one is left.

import type { Sends } from "../../../remote/dispatching.js";
import type { Store } from "../../../store/store.js";
import type { RunContext } from "../../../worker/handler/context.js";
import { SeededRandom, type VirtualClock } from "../../virtual-clock.js";
import type { Checkers } from "../checkers/checkers.js";
import { short } from "../checkers/effects.js";
import type { EventLog } from "../event-log.js";
import type { Fault } from "../faults/catalogue.js";
import { mix } from "../random.js";
import type { HandlerHost } from "../workload/jobs.js";
import { jobsAt, type Plan } from "../workload/plan.js";
import type { Connection } from "./database.js";
import { SimulatedProcess } from "./process.js";

export type FleetWorld = {
  readonly plan: Plan;
  readonly clock: VirtualClock;
  /** The difference between the simulated time and the virtual clock. */
  readonly shiftMs: number;
  readonly log: EventLog;
  readonly checkers: Checkers;
  nowMs(): number;
  databaseNow(): number;
  connect(process: SimulatedProcess): Connection;
  wire(store: Store, process: SimulatedProcess): Store;
  sendsOf(process: SimulatedProcess): Sends;
  /** Whether clocks are so wrong that this process may err about its leases. */
  isClockExcused(process: SimulatedProcess): boolean;
};

/** Processes that start within this time after a blackout get the fault that follows it. */
const BACK_MS = 30_000;
const STARTED_AGAIN_MS = 1_000;

export class Fleet {
  readonly #world: FleetWorld;
  readonly #places: (SimulatedProcess | null)[];
  #bootCount = 0;
  #awayUntilMs = 0;
  /** The fault that hits the first processes after a blackout. */
  #armedAtStart: Fault | null = null;
  #survivor: SimulatedProcess | undefined;

  constructor(world: FleetWorld) {
    this.#world = world;
    this.#places = Array.from({ length: world.plan.placeCount }, () => null);
  }

  /** The only process in the quiet. */
  get survivor(): SimulatedProcess | undefined {
    return this.#survivor;
  }

  startAll(): void {
    for (const place of this.#places.keys()) this.#startPlace(place);
  }

  endAll(): void {
    for (const process of this.#places) process?.die();
  }

  /** Returns the process at this place, or the next one that fits. */
  choose(place: number, fits: (process: SimulatedProcess) => boolean): SimulatedProcess | null {
    const { length } = this.#places;
    for (let step = 0; step < length; step += 1) {
      const process = this.#places[(place + step) % length];
      if (process && !process.isDead && fits(process)) return process;
    }
    return null;
  }

  crash(process: SimulatedProcess, why: string): void {
    if (process.isDead) return;
    const { log } = this.#world;
    process.die();
    log.mark(`${process.label} crashes`);
    log.narrate(() => `${process.label} crashes ${why}`);
    this.#replaceLater(process);
  }

  stop(process: SimulatedProcess, graceMs: number): void {
    if (process.isStopping || process.isDead) return;
    const { log } = this.#world;
    process.isStopping = true;
    void process.holdfast.stop({ grace: graceMs }).then((report) => {
      if (process.isDead) return;
      log.mark(`${process.label} stopped ${JSON.stringify(report)}`);
      log.narrate(() => `${process.label} has stopped: ${JSON.stringify(report)}`);
      if (report.abandoned > 0) log.saw("abandoned-at-stop");
      process.die();
      this.#replaceLater(process);
    });
  }

  /** Crashes all processes at once. The first ones to return find much work, and may fail at it. */
  blackout(fault: Fault): void {
    this.#awayUntilMs = this.#world.nowMs() + fault.ms;
    const isHard = fault.id % 2 === 0;
    this.#armedAtStart = isHard ? { ...fault, kind: "not-sent", verbs: ["schedules.due"] } : null;
    for (const process of [...this.#places]) if (process) this.crash(process, "in a blackout");
  }

  /** Runs a process for one bounded pass, as an external cron does. */
  async callOnce(luck: number): Promise<string> {
    const { log, plan } = this.#world;
    this.#bootCount += 1;
    const process = this.#boot(`T${this.#bootCount}`, -1, plan.jobs);
    const limit = luck % 4;
    const { fired, executed, dispatched } = await process.holdfast.tick({ limit, budget: "20s" });
    if (fired.length > 0) log.saw("pass-fired");
    if (executed > 0) log.saw("pass-executed");
    if (executed + dispatched > limit)
      log.violate("S7", `A pass of at most ${limit} executed ${executed} runs.`);
    await process.holdfast.stop({ grace: 0 });
    process.die();
    return `${fired.length} fired, ${executed} executed`;
  }

  /** Ends all processes except one, and ends all its faults. */
  leaveOne(): SimulatedProcess {
    // This also ends a blackout: a process that restarts in the quiet does not stay away and gets no fault.
    this.#awayUntilMs = 0;
    const survivor = this.#chooseSurvivor();
    this.#survivor = survivor;
    for (const process of this.#places)
      if (process && process !== survivor && !process.isDead) process.die();
    survivor.armed.length = 0;
    survivor.connection.troubles.length = 0;
    survivor.cutOffUntilMs = 0;
    survivor.clock.mend();
    return survivor;
  }

  /** Returns a process that has survived the chaos and waits for no late call, or a fresh one. */
  #chooseSurvivor(): SimulatedProcess {
    const { seed, oldPlace, jobs } = this.#world.plan;
    const chance = new SeededRandom(mix(seed, "survivor")).next();
    const fits = (process: SimulatedProcess) =>
      process.place !== oldPlace && process.isServing && process.lateUntilMs <= this.#world.nowMs();
    const found = chance < 0.5 ? this.choose(0, fits) : null;
    if (found) return found;
    const place = oldPlace === 0 ? 1 : 0;
    this.#places[place]?.die();
    return this.#startPlace(place, jobs);
  }

  #startPlace(place: number, jobs = jobsAt(this.#world.plan, place)): SimulatedProcess {
    const { log } = this.#world;
    this.#bootCount += 1;
    const label = `${"ABCDEFG"[place]}${this.#bootCount}`;
    const process = this.#boot(label, place, jobs);
    this.#places[place] = process;
    log.mark(`${label} starts`);
    log.narrate(() => `${label} starts`);
    const isBack = this.#world.nowMs() < this.#awayUntilMs + BACK_MS;
    if (this.#armedAtStart && isBack) process.armed.push(this.#armedAtStart);
    void this.#start(process);
    return process;
  }

  #boot(label: string, place: number, jobs: Plan["jobs"]): SimulatedProcess {
    const { plan, clock: base, shiftMs, ...world } = this.#world;
    const { seed, pollMs, isNamed, isAlert, hasTarget, hasWaits } = plan;
    const process = new SimulatedProcess({ label, place, seed, base, shiftMs, jobs });
    process.boot({
      seed,
      pollMs,
      isNamed,
      isAlert,
      hasTarget,
      hasWaits,
      jobs,
      connection: world.connect(process),
      databaseNow: world.databaseNow,
      wire: (store) => world.wire(store, process),
      sends: world.sendsOf(process),
      host: this.#host(process),
    });
    return process;
  }

  #host(process: SimulatedProcess): Omit<HandlerHost, "clock" | "seed"> {
    const { log, checkers, nowMs } = this.#world;
    return {
      begun: (ctx) => {
        if (process.isDead) return;
        checkers.effects.begun(process.label, ctx);
        this.#checkStart(process, ctx);
      },
      ended: (ctx) => {
        if (!process.isDead) checkers.effects.ended(ctx, nowMs());
      },
      effect: (ctx, name) => {
        if (process.isDead) return;
        log.narrate(() => `${process.label} does step ${name} of run ${short(ctx.runId)}`);
        checkers.waits.effect(name, ctx, this.#world.isClockExcused(process));
      },
      received: (ctx, name, value) => {
        if (!process.isDead) checkers.waits.received(name, value, ctx);
      },
      replayed: () => log.saw("item-replayed"),
      crash: () => this.crash(process, "by a poisonous run"),
    };
  }

  /** A process begins only runs that it holds, because trust ends before the lease does. Wrong clocks excuse it. */
  #checkStart(process: SimulatedProcess, { runId, fence }: RunContext): void {
    const { log, checkers, isClockExcused } = this.#world;
    if (checkers.runs.runs.get(runId)?.fence === fence || isClockExcused(process)) return;
    log.violate("E", `${process.label} began run ${runId}, which it no longer holds.`);
  }

  /** Retries a failed start. */
  async #start(process: SimulatedProcess): Promise<void> {
    for (;;) {
      try {
        await process.holdfast.start({ worker: { concurrency: this.#world.plan.concurrency } });
        process.isStarted = true;
        return;
      } catch {
        if (process.isStopping) return;
        await new Promise<void>((resolve) => process.clock.timer(STARTED_AGAIN_MS, resolve));
      }
    }
  }

  #replaceLater(process: SimulatedProcess): void {
    const { plan, clock, nowMs } = this.#world;
    const waitMs = Math.max(plan.restartMs, this.#awayUntilMs - nowMs());
    clock.timer(waitMs, () => {
      if (this.#places[process.place] !== process) return;
      // In the quiet only one place is used, and its process knows every job.
      if (this.#survivor === undefined) this.#startPlace(process.place);
      else if (this.#survivor === process)
        this.#survivor = this.#startPlace(process.place, plan.jobs);
    });
  }
}
