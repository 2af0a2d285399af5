// Tracks the runs of a simulation as rows enter and leave the tables: each is in exactly one table (S16), and none
// appears without being created (S13). It also keeps the lanes, policies and queues of runs.

import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import type { Note } from "./row-changes.js";

export class RunPlaces {
  readonly runs = new Map<string, RunFacts>();
  readonly removed = new Set<string>();
  readonly lanes = new Map<number, { readonly queue: string; readonly job: string }>();
  readonly policies = new Map<number, PolicyFacts>();
  readonly pausedQueues = new Set<string>();
  readonly #log: EventLog;
  #touched = new Map<string, RunFacts>();
  #left = new Map<string, LeaseFacts>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  /** The runs that the current transaction touches. */
  get touched(): Map<string, RunFacts> {
    return this.#touched;
  }

  /** The leases that runs leave in the current transaction. */
  get left(): Map<string, LeaseFacts> {
    return this.#left;
  }

  begin(): void {
    this.#touched = new Map();
    this.#left = new Map();
  }

  touch(id: string): RunFacts | undefined {
    const known = this.#touched.get(id);
    if (known) return known;
    const run = this.runs.get(id);
    if (!run) {
      this.#log.violate("S13", `Rows speak of run ${id}, which does not exist.`);
      return undefined;
    }
    run.wasActive = isActive(run);
    this.#touched.set(id, run);
    return run;
  }

  enter(run: RunFacts, place: number): void {
    if ((run.places & place) !== 0)
      this.#log.violate("S16", `Run ${run.id} is twice ${placesText(place)}.`);
    run.places |= place;
  }

  leave(id: string, place: number): void {
    const run = this.touch(id);
    if (!run) return;
    if ((run.places & place) === 0)
      this.#log.violate("S16", `Run ${id} left a place that it was not in: ${placesText(place)}.`);
    run.places &= ~place;
  }
}

// ── facts about runs and leases ──────────────────────────────────────────────────────────────────

/** One committed transaction. */
export type Transaction = {
  readonly process: SimulatedProcess;
  readonly verb: string;
  readonly params: unknown;
  /** By the database's clock. */
  readonly now: number;
  /** World time, which no clock of a machine follows exactly. */
  readonly worldMs: number;
  readonly notes: readonly Note[];
};

export type RunFacts = {
  readonly id: string;
  readonly job: string;
  readonly queue: string;
  readonly mode: number;
  readonly schedule: number | null;
  readonly nominalAt: number | null;
  readonly policy: PolicyFacts;
  /** The tables that it is in. */
  places: number;
  isGated: boolean;
  /** Ready, waiting for time alone, or held, before this transaction. */
  wasActive: boolean;
  fence: number | null;
  lastFence: number;
  attempt: number;
  grants: number;
  refunds: number;
  revives: number;
  status: number | null;
  wakeAt: number;
  readyAt: number;
};

export type PolicyFacts = {
  readonly leaseMs: number;
  readonly attempts: number;
  readonly isLossFinal: boolean;
};

export type LeaseFacts = {
  readonly fence: number;
  readonly holder: number;
  readonly process: SimulatedProcess | undefined;
  readonly attempt: number;
  until: number;
  ids: readonly string[];
  cancels: Readonly<Record<string, number>>;
};

/** How a grant ended. */
export type GrantEnd = "settled" | "committed" | "suspended" | "reclaimed" | "cancel-enforced";

/** The tables that say where a run is: it must be in exactly one (S16). */
export const READY = 1;
export const WAITING = 2;
export const HELD = 4;
export const ENDED = 8;

/** Ready, waiting for time alone, or held. */
export function isActive({ places, isGated }: RunFacts): boolean {
  return (places & (READY | HELD)) !== 0 || ((places & WAITING) !== 0 && !isGated);
}

export function isReady({ places }: RunFacts): boolean {
  return places === READY;
}

export function isTerminal({ places }: RunFacts): boolean {
  return places === ENDED;
}

export function placesText(places: number): string {
  const names = ["ready", "waiting", "held", "ended"].filter((_, at) => (places >> at) & 1);
  return names.join(" and ") || "nowhere";
}
