// Provides one SQLite database in memory for all processes of a simulation, each with a connection of its own over the
// one handle. It reports the row changes of a transaction when it commits, and forgets them when it rolls back.

import { DatabaseSync as BundledDatabase } from "@photostructure/sqlite";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "../../../store/schema/schema.js";
import { isSafeVersion, type SqliteHandle } from "../../../store/sqlite/connection/handle.js";
import { NOTE_FUNCTION, type Note, noteTriggers } from "../checkers/row-changes.js";
import { CREATE_USER_TABLES, USER_TABLES } from "../workload/jobs.js";

type Library = { readonly DatabaseSync: typeof BundledDatabase };

/** The store works with both libraries, and a seed gives the same result; a call into Node's own costs half (measured). */
const { DatabaseSync } = isSafeVersion(process.versions.sqlite ?? "")
  ? (process.getBuiltinModule("node:sqlite") as Library)
  : { DatabaseSync: BundledDatabase };

type Prepared = ReturnType<SqliteHandle["prepare"]>;

/** An error inside SQLite itself. */
export type Trouble = { readonly at: "begin" | "commit"; readonly code: number; left: number };

export type Connection = {
  readonly handle: SqliteHandle;
  readonly troubles: Trouble[];
};

const ALL_TABLES = CREATE_SCHEMA.sqlite;
const TABLES = [...ALL_TABLES.matchAll(/create table \{(\w+)\}/g)]
  .map(([, name]) => `holdfast_${name}`)
  .filter((name) => name !== "holdfast_schema_version");

/** Databases for reuse: creating tables and preparing statements takes a tenth of the time of a simulation. */
const idle: SimulatedDatabase[] = [];

export class SimulatedDatabase {
  /** Returns an empty database. */
  static take(): SimulatedDatabase {
    return idle.pop() ?? new SimulatedDatabase();
  }

  readonly #handle = new DatabaseSync(":memory:");
  readonly #prepared = new Map<string, Prepared>();
  #notes: Note[] = [];

  private constructor() {
    // SQLite copies each changed page first, and the tables are small.
    this.#handle.exec("pragma page_size = 1024");
    // The triggers are temporary, and SQLite would otherwise keep them in a file.
    this.#handle.exec("pragma temp_store = memory");
    this.#handle.exec("pragma busy_timeout = 0");
    this.#handle.exec(ALL_TABLES.replaceAll(/\{(\w+)\}/g, "holdfast_$1"));
    this.#handle.exec(CREATE_USER_TABLES);
    this.#handle.exec(
      `insert into holdfast_schema_version values (${SCHEMA_VERSION}, ${SCHEMA_VERSION}, 0)`,
    );
    this.#handle.function(NOTE_FUNCTION, { varargs: true }, (...values: unknown[]) => {
      this.#notes.push(values as unknown as Note);
      return 0;
    });
    this.#handle.exec(noteTriggers());
  }

  /** Calls `onCommit` right after each commit of this connection. */
  connect(params: {
    readonly onCommit: (notes: readonly Note[]) => void;
    /** Changes the transaction, for tests of the checkers. */
    readonly beforeCommit?: ((sql: (text: string) => void) => void) | undefined;
  }): Connection {
    const troubles: Trouble[] = [];
    let isInTransaction = false;
    const exec = (text: string) => {
      // Pragmas would only cost time: no other connection waits for this handle.
      if (text.startsWith("pragma")) return;
      if (text === "begin immediate") trouble(troubles, "begin");
      if (text === "commit") {
        trouble(troubles, "commit");
        params.beforeCommit?.((sql) => this.#handle.exec(sql));
      }
      // Not `run`, which also counts changes: that takes longer than a begin or a commit.
      this.#statement(text).get();
      isInTransaction = text === "begin immediate";
      const notes = this.#notes;
      this.#notes = [];
      if (text === "commit") params.onCommit(notes);
    };
    const handle = {
      exec,
      prepare: (text: string) => this.#statement(text),
      close: () => undefined,
      get isTransaction() {
        return isInTransaction;
      },
    };
    return { handle, troubles };
  }

  all(text: string): Record<string, unknown>[] {
    return this.#statement(text).all() as Record<string, unknown>[];
  }

  /** Empties the database for the next simulation. */
  giveBack(): void {
    for (const table of [...TABLES, ...USER_TABLES]) this.#handle.exec(`delete from ${table}`);
    this.#handle.exec("delete from sqlite_sequence");
    this.#notes = [];
    idle.push(this);
  }

  #statement(text: string): Prepared {
    let statement = this.#prepared.get(text);
    if (!statement) {
      statement = this.#handle.prepare(text) as unknown as Prepared;
      this.#prepared.set(text, statement);
    }
    return statement;
  }
}

function trouble(troubles: Trouble[], at: Trouble["at"]): void {
  const [first] = troubles;
  if (first?.at !== at) return;
  first.left -= 1;
  if (first.left <= 0) troubles.shift();
  throw Object.assign(new Error(`SQLite said ${first.code}`), { errcode: first.code });
}
