// Runs transactions of several statements, which are rare, on connections of their own. Opening a connection takes
// longer than the work on it, so one is kept for a while; a user's pool keeps its own.

import type { Clock, Timer } from "../../../shared/ports.js";
import {
  isWorthRepeating,
  LinkFailure,
  type PostgresSource,
  type Query,
  type TransactionLink,
  transactionLink,
} from "./connection.js";

const KEPT_MS = 10_000;
/** At once; further callers wait for their turn, so that an instance stays within its number of connections. */
export const TRANSACTIONS_MAX = 2;

export class PostgresTransactions {
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  #kept: TransactionLink | null = null;
  #timer: Timer | null = null;
  #isClosed = false;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(params: { readonly source: PostgresSource; readonly clock: Clock }) {
    this.#source = params.source;
    this.#clock = params.clock;
  }

  async run<T>(work: (query: Query) => Promise<T>): Promise<T> {
    if (this.#running >= TRANSACTIONS_MAX)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await this.#run(work);
    } finally {
      // The next waiting caller takes over this turn.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  async #run<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const kept = this.#take();
    if (kept) {
      try {
        return await this.#runOn(kept, work);
      } catch (error) {
        // The server may have closed the connection while it was idle: the caller's work must not fail for that.
        const isStale = error instanceof LinkFailure && error.isCertain && isWorthRepeating(error);
        if (!isStale) throw error;
      }
    }
    return this.#runOn(await transactionLink(this.#source, this.#clock), work);
  }

  async #runOn<T>(link: TransactionLink, work: (query: Query) => Promise<T>): Promise<T> {
    try {
      const value = await link.transaction(work);
      await this.#keep(link);
      return value;
    } catch (error) {
      if (error instanceof LinkFailure) await link.end();
      else await this.#keep(link);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#take()?.end();
  }

  #take(): TransactionLink | null {
    const link = this.#kept;
    this.#timer?.cancel();
    this.#kept = null;
    return link;
  }

  async #keep(link: TransactionLink): Promise<void> {
    const isWorthKeeping = typeof this.#source === "string" && !this.#kept && !this.#isClosed;
    if (!isWorthKeeping) return link.end();
    this.#kept = link;
    this.#timer = this.#clock.timer(KEPT_MS, () => void this.#take()?.end());
  }
}
