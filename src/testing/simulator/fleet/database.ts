// One SQLite database in memory for all processes of a simulation, each with a connection of its own
// over the one handle. What a transaction did is told when it commits and forgotten when it does not.

import { DatabaseSync as BundledDatabase } from "@photostructure/sqlite";
import { isSafeVersion, type SqliteHandle } from "../../../store/sqlite/connection.js";
import { CREATE_BATCHES } from "../../../store/sqlite/schema/runs.js";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "../../../store/sqlite/schema/schema.js";
import { NOTE_FUNCTION, type Note, noteTriggers } from "../checkers/row-changes.js";
import { CREATE_USER_TABLES, USER_TABLES } from "../workload/user-tables.js";

type Library = { readonly DatabaseSync: typeof BundledDatabase };

/** A store works with both, and a seed is the same with both: a call into Node's own costs half (measured). */
const { DatabaseSync } = isSafeVersion(process.versions.sqlite ?? "")
  ? (process.getBuiltinModule("node:sqlite") as Library)
  : { DatabaseSync: BundledDatabase };

type Prepared = ReturnType<SqliteHandle["prepare"]>;

/** What goes wrong inside SQLite itself. */
export type Trouble = { readonly at: "begin" | "commit"; readonly code: number; left: number };

export type Connection = {
  readonly handle: SqliteHandle;
  readonly troubles: Trouble[];
};

const ALL_TABLES = CREATE_SCHEMA + CREATE_BATCHES;
const TABLES = [...ALL_TABLES.matchAll(/create table \{(\w+)\}/g)]
  .map(([, name]) => `holdfast_${name}`)
  .filter((name) => name !== "holdfast_schema_version");

/** Making the tables and preparing statements takes as long as a tenth of a simulation. */
const idle: SimulatedDatabase[] = [];

export class SimulatedDatabase {
  /** An empty database. */
  static take(): SimulatedDatabase {
    return idle.pop() ?? new SimulatedDatabase();
  }

  readonly #handle = new DatabaseSync(":memory:");
  readonly #prepared = new Map<string, Prepared>();
  #notes: Note[] = [];

  private constructor() {
    // What a transaction changes is first copied, page by page, and the tables are small.
    this.#handle.exec("pragma page_size = 1024");
    // The triggers are temporary, and what is temporary would else be a file.
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

  /** `onCommit` sees every transaction of this connection that is committed, right after it was. */
  connect(params: {
    readonly onCommit: (notes: readonly Note[]) => void;
    /** Does something else inside of the transaction, for tests of the checkers. */
    readonly beforeCommit?: ((sql: (text: string) => void) => void) | undefined;
  }): Connection {
    const troubles: Trouble[] = [];
    let isInTransaction = false;
    const exec = (text: string) => {
      // Nobody else waits on this handle; the time it would take is all that these change.
      if (text.startsWith("pragma")) return;
      if (text === "begin immediate") trouble(troubles, "begin");
      if (text === "commit") {
        trouble(troubles, "commit");
        params.beforeCommit?.((sql) => this.#handle.exec(sql));
      }
      // Not `run`: nobody asks what it changed, and to say so takes longer than a begin or a commit.
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

  /** Empties it for the next one. */
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
