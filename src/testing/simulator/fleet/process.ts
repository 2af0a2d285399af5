// One process of a simulation: an instance of the real engine with a clock, a connection and a network
// of its own. When it crashes, its clock is dead for ever and none of its calls is ever answered.

import { Holdfast } from "../../../holdfast.js";
import type { Sends } from "../../../remote/dispatching.js";
import { SqliteStore } from "../../../store/sqlite/store.js";
import type { Store } from "../../../store/store.js";
import { SeededRandom, seededIds, type VirtualClock } from "../../virtual-clock.js";
import type { Fault } from "../faults/catalogue.js";
import { Draw, mix } from "../random.js";
import { type HandlerHost, type JobPlan, jobOptions } from "../workload/jobs.js";
import type { Connection } from "./database.js";
import { ProcessClock } from "./process-clock.js";
import { TARGET_OPTIONS } from "./remote-names.js";

/** The store call whose transaction is under way. */
export type CallInProgress = { readonly verb: string; readonly params: unknown };

export class SimulatedProcess {
  readonly label: string;
  readonly place: number;
  readonly clock: ProcessClock;
  readonly draw: Draw;
  readonly armed: Fault[] = [];
  readonly jobNames: readonly string[];
  isDead = false;
  isStarted = false;
  isStopping = false;
  /** Its clocks were off, stepped, drifted or stood still at some time. */
  isClockWrong = false;
  cutOffUntilMs = 0;
  /** Until then it may be waiting for a call that a fault has made late. */
  lateUntilMs = 0;
  /** Set by its announcement: the number by which it holds leases. */
  holder: number | null = null;
  current: CallInProgress | null = null;
  busy: Promise<unknown> | null = null;
  holdfast!: Holdfast;
  store!: Store;
  connection!: Connection;

  constructor(params: {
    readonly label: string;
    readonly place: number;
    readonly seed: number;
    readonly base: VirtualClock;
    readonly shiftMs: number;
    readonly jobs: readonly JobPlan[];
  }) {
    this.label = params.label;
    this.place = params.place;
    this.clock = new ProcessClock(params.base, params.shiftMs);
    this.draw = new Draw(params.seed, "network", params.label);
    this.jobNames = params.jobs.map(({ name }) => name);
  }

  /** Makes the instance; nothing is started. `wire` puts the network in between. */
  boot(params: {
    readonly seed: number;
    readonly pollMs: number;
    readonly isNamed: boolean;
    readonly isAlert: boolean;
    readonly hasTarget: boolean;
    readonly jobs: readonly JobPlan[];
    readonly connection: Connection;
    readonly databaseNow: () => number;
    readonly wire: (store: Store) => Store;
    readonly sends: Sends;
    readonly host: Omit<HandlerHost, "clock" | "seed">;
  }): void {
    const { seed, connection, databaseNow, wire, host } = params;
    const chance = new SeededRandom(mix(seed, "chance", this.label));
    this.connection = connection;
    this.holdfast = new Holdfast(
      {
        database: "sqlite::memory:",
        poll: params.pollMs,
        logger: SILENT,
        ...(params.hasTarget ? TARGET_OPTIONS : {}),
        ...(params.isNamed ? { app: "simulation" } : {}),
        ...(params.isAlert ? {} : { alerts: false }),
      },
      {
        ports: { clock: this.clock, chance, ids: seededIds(this.clock, chance) },
        sends: params.sends,
        store: () => {
          this.store = wire(
            new SqliteStore({
              source: { handle: connection.handle },
              clock: this.clock,
              chance: new SeededRandom(mix(seed, "store", this.label)),
              synchronous: "FULL",
              migrate: "auto",
              mayCreate: true,
              now: databaseNow,
            }),
          );
          return this.store;
        },
      },
    );
    for (const plan of params.jobs)
      this.holdfast.job(plan.name, jobOptions(plan, { ...host, clock: this.clock, seed }));
  }

  /** Whether somebody who asks it is heard. */
  get isServing(): boolean {
    return this.isStarted && !this.isStopping && !this.clock.isStopped;
  }

  /** The first armed fault that fits this call, which it befalls now. */
  takeFault(fits: (fault: Fault) => boolean): Fault | null {
    const at = this.armed.findIndex(fits);
    return at < 0 ? null : (this.armed.splice(at, 1)[0] ?? null);
  }

  die(): void {
    this.isDead = true;
    this.clock.die();
  }
}

const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  isLevelEnabled: () => false,
};
