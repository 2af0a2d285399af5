// Declares the store's verbs for metrics, and maps their rows: few numbers, read by statements whose cost is bounded
// however many rows there are.

import type { Row } from "./rows.js";

/** One number: of which kind, of what (a queue, a schedule's status), in which state. */
export type FigureRecord = {
  readonly kind: "queue" | "instance" | "schedule" | "overdue" | "lock";
  readonly name: string;
  readonly state: string;
  readonly value: number;
};

export interface FiguresStore {
  /** Counts stop at `limit` for each lane. */
  figures(params: { readonly limit: number }): Promise<readonly FigureRecord[]>;
  /** The names of these schedules, by their numbers. */
  scheduleNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>>;
  /** What this store itself has open at this moment; asks nobody. */
  readonly load: StoreLoad;
}

export type StoreLoad = {
  /** Statements that were sent and not yet answered. */
  readonly statements: number;
  /** Connections that are held for good. */
  readonly work: number;
  readonly workMax: number;
  /** Connections in which a handler's transaction is. */
  readonly transactions: number;
  readonly transactionsMax: number;
  /** Transactions that wait for one. */
  readonly waiting: number;
};

// Row mappers, the same for both databases.

export function toFigureRecord(row: Row): FigureRecord {
  return {
    kind: String(row.kind) as FigureRecord["kind"],
    name: String(row.name),
    state: String(row.state),
    value: Number(row.value),
  };
}

export function toScheduleNames(rows: readonly Row[]): ReadonlyMap<number, string> {
  return new Map(rows.map(({ id, name }) => [Number(id), String(name)]));
}
