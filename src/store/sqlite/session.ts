// Sends statements to SQLite: reads and write transactions, at the database's time. Values that a transaction has
// learnt (the number of a new lane or policy) are cached only after its commit.

import type { AuditEntry } from "../../operations/rules/audit.js";
import { addAudit } from "../audit.js";
import type { Row } from "../rows.js";
import type { Lost, Params, Statement, Statements, StoreSession, Write } from "../session.js";
import { render, type SqlText } from "../sql/dialect.js";
import type { SqliteFile } from "./connection/connection.js";

export const NOW = /* sql */ `select {now} as now`;

/** A statement without rows must not be asked for them: some SQLite libraries refuse that. */
const HAS_ROWS = /^\s*select\b|\breturning\b|^\s*with\b(?![\s\S]*\b(insert|update|delete)\b)/i;

export class SqliteSession implements StoreSession {
  readonly engine = "sqlite";
  readonly file: SqliteFile;
  readonly #now: (() => number) | undefined;
  #learnt: (() => void)[] = [];

  constructor(params: {
    readonly file: SqliteFile;
    /** The clock. Undefined: the clock of the database. */
    readonly now?: (() => number) | undefined;
  }) {
    this.file = params.file;
    this.#now = params.now;
  }

  now(): number {
    return this.#now ? this.#now() : Number(this.file.get(NOW)?.now);
  }

  read({ sql, params = {} }: Statement): Promise<readonly Row[]> {
    return this.file.read(() => this.#send(sql, params, this.now()));
  }

  reads<T>(_: string, work: () => Statements<T>): Promise<T> {
    return this.file.read(() => this.drive(work(), this.now()));
  }

  write({ verb, sql, params = {} }: Write): Promise<readonly Row[]> {
    return this.transact(verb, (now) => this.#send(sql, params, now));
  }

  transaction<T>(verb: string, _: Lost, work: () => Statements<T>): Promise<T> {
    return this.transact(verb, (now) => this.drive(work(), now));
  }

  /** Statements that are written once for both engines, inside an open transaction. */
  drive<T>(statements: Statements<T>, now: number): T {
    let next = statements.next();
    while (!next.done) {
      const { sql, params } = next.value;
      next = statements.next(this.#send(sql, params, now));
    }
    return next.value;
  }

  #send(sql: SqlText, params: Params, now: number): readonly Row[] {
    const template = render(sql, "sqlite");
    const values: Row = { now };
    // A list is one parameter: its JSON text.
    for (const [name, value] of Object.entries(params))
      values[name] = Array.isArray(value) ? JSON.stringify(value) : value;
    if (HAS_ROWS.test(template)) return this.file.all(template, values);
    this.file.run(template, values);
    return [];
  }

  look<T>(look: (now: number) => T): Promise<T> {
    return this.file.read(() => look(this.now()));
  }

  async transact<T>(
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

  /** One write transaction, with an entry of the audit trail if it changed something. */
  audited<T>(params: {
    readonly verb: string;
    readonly audit: AuditEntry | undefined;
    readonly work: (now: number) => T;
    readonly hasChanged: (result: T) => boolean;
  }): Promise<T> {
    const { verb, audit, work, hasChanged } = params;
    return this.transact(verb, (now) => {
      const result = work(now);
      if (hasChanged(result)) this.drive(addAudit(audit), now);
      return result;
    });
  }

  /** The values that the transaction which begins now will have learnt. */
  beginLearning(): (() => void)[] {
    this.#learnt = [];
    return this.#learnt;
  }

  /** Runs inside a transaction. */
  learn(remember: () => void): void {
    this.#learnt.push(remember);
  }
}
