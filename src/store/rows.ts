// Reads columns of rows, the same for both databases: PostgreSQL returns big integers as text, SQLite booleans as 0 and 1.

import { MODES, type Mode, type RunStatus, type TerminalStatus } from "../runs/rules/run.js";

export type Row = Record<string, unknown>;

/** The columns of `ready`, `waiting` and `lease` with the counters of a run. */
export const COUNTERS = "attempt, losses, refunds, laters, extra";

/**
 * For a row of `ready` or `waiting`: no handler of the run was called. A run that was handed back, postponed or
 * suspended keeps its attempt, and one of its other counters shows it.
 */
export const NOT_BEGUN = "attempt = 0 and refunds = 0 and laters = 0";

/** Terminal states as the tables store them; a live run has no outcome row. */
export const TERMINAL_CODES = { completed: 1, failed: 2, cancelled: 3 } as const;

const STATUS_BY_CODE: Readonly<Record<number, RunStatus>> = {
  [-1]: "pending",
  0: "running",
  1: "completed",
  2: "failed",
  3: "cancelled",
};

export function statusCode(status: TerminalStatus): number {
  return TERMINAL_CODES[status];
}

export function statusOf(code: number): RunStatus {
  return STATUS_BY_CODE[code] ?? "pending";
}

export function modeCode(mode: Mode): number {
  return MODES.indexOf(mode);
}

/** Any status as the lists of runs compute it. */
export function statusOrder(status: RunStatus): number {
  if (status === "pending") return -1;
  return status === "running" ? 0 : statusCode(status);
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** A boolean: PostgreSQL returns true, SQLite 1. */
export function flag(value: unknown): boolean {
  return value === true || Number(value) === 1;
}

/** A JSON value, which SQLite and text columns hold as text. */
export function json<T>(value: unknown): T | null {
  if (value === null || value === undefined) return null;
  return (typeof value === "string" ? JSON.parse(value) : value) as T;
}
