// Asking SQLite: looks and write transactions at the database's time. What a transaction has learnt (the number
// of a new lane or policy) is remembered once it is committed, and not before.

import type { SqliteFile } from "./connection.js";
import { NOW } from "./sql/statements.js";

export class SqliteSession {
  readonly file: SqliteFile;
  readonly #now: (() => number) | undefined;
  #learnt: (() => void)[] = [];

  constructor(params: {
    readonly file: SqliteFile;
    /** Undefined: the database's own. */
    readonly now?: (() => number) | undefined;
  }) {
    this.file = params.file;
    this.#now = params.now;
  }

  now(): number {
    return this.#now ? this.#now() : Number(this.file.get(NOW)?.now);
  }

  read<T>(look: (now: number) => T): Promise<T> {
    return this.file.read(() => look(this.now()));
  }

  async write<T>(
    what: string,
    work: (now: number) => T,
    options?: Parameters<SqliteFile["write"]>[2],
  ): Promise<T> {
    // Another write may run between this commit and the line after it: each keeps a list of its own.
    let learnt: (() => void)[] = [];
    const transaction = () => {
      learnt = this.beginLearning();
      return work(this.now());
    };
    const value = await this.file.write(what, transaction, options);
    for (const remember of learnt) remember();
    return value;
  }

  /** What the transaction that begins now will have learnt. */
  beginLearning(): (() => void)[] {
    this.#learnt = [];
    return this.#learnt;
  }

  /** Inside of a transaction. */
  learn(remember: () => void): void {
    this.#learnt.push(remember);
  }
}
