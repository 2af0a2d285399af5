// Separates verbs that are written once from the two engines. A verb of one statement is a call with data. A verb of
// several statements passes a generator function: SQLite drives it synchronously inside one write transaction,
// PostgreSQL awaits each statement inside one transaction.

import type { Row } from "./rows.js";
import type { SqlText } from "./sql/dialect.js";

export type Params = Readonly<Record<string, unknown>>;

export type Statement = {
  /** The noun and verb, such as "alerts.resolve"; errors name it. */
  readonly verb: string;
  readonly sql: SqlText;
  readonly params?: Params;
};

export type Write = Statement &
  Lost & {
    /**
     * Which of PostgreSQL's two connections: "work", or "beat", that of renewals and polls, on which no statement waits
     * for a locked row. SQLite has one. @default "work"
     */
    readonly connection?: "work" | "beat";
  };

/**
 * When the connection breaks before PostgreSQL has replied: "repeat" sends the statements again, which is right only if a
 * second execution changes nothing more; "report" fails with an `OutcomeUnknownError`. SQLite never loses a reply.
 */
export type Lost = { readonly lost: "repeat" | "report" };

export interface StoreSession {
  readonly engine: "sqlite" | "postgres";
  /** One statement that changes nothing. It is repeated while the database is unavailable. */
  read(statement: Statement): Promise<readonly Row[]>;
  /**
   * Several statements that change nothing. SQLite reads them all from one state of the database; on PostgreSQL each sees
   * its own.
   */
  reads<T>(verb: string, work: () => Statements<T>): Promise<T>;
  /** One statement that changes rows, in a commit of its own; returns the rows that it returns. */
  write(statement: Write): Promise<readonly Row[]>;
  /**
   * Several statements in one commit. A retry calls `work` again: a generator runs only once. On SQLite nothing can come
   * between the statements. PostgreSQL is READ COMMITTED: the first statement must lock what later ones rely on.
   */
  transaction<T>(verb: string, lost: Lost, work: () => Statements<T>): Promise<T>;
}

export type BoundStatement = { readonly sql: SqlText; readonly params: Params };

/** Statements in sequence; each `yield*` sends one and returns its rows. */
export type Statements<T> = Generator<BoundStatement, T, readonly Row[]>;

/** All rows of a statement. */
export function* rows(sql: SqlText, params: Params = {}): Statements<readonly Row[]> {
  return yield { sql, params };
}

/** The first row of a statement. */
export function* row(sql: SqlText, params: Params = {}): Statements<Row | undefined> {
  const [first] = yield { sql, params };
  return first;
}

/** A statement without a result that anybody needs. */
export function* run(sql: SqlText, params: Params = {}): Statements<void> {
  yield { sql, params };
}
