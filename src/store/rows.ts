// Reads columns of rows, the same for both databases: PostgreSQL returns big integers as text, SQLite booleans as 0 and 1.

import type { RunStatus, TerminalStatus } from "../runs/rules/run.js";

export type Row = Record<string, unknown>;

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
