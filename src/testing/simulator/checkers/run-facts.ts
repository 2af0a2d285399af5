// What the checkers know of runs and leases, and the places where a run can be.

import type { SimulatedProcess } from "../fleet/process.js";
import type { Note } from "./row-changes.js";

/** One committed transaction. */
export type Transaction = {
  readonly process: SimulatedProcess;
  readonly verb: string;
  readonly params: unknown;
  /** By the database's clock. */
  readonly now: number;
  /** By no clock of any machine. */
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
export type GrantEnd = "settled" | "committed" | "reclaimed" | "cancel-enforced";

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
