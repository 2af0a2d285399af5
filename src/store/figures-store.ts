// What a database tells of the whole for metrics: few numbers, by statements whose cost is bounded
// however much there is.

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
