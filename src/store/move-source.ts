// The SQLite side of a move: read in one snapshot from beginning to end, by pages in the order of each
// table's key. Never writes.

import type { Clock, Random } from "../shared/ports.js";
import { MOVED_TABLES, type MovedTable } from "./move-tables.js";
import * as sql from "./sql/move.js";
import { type Row, SqliteFile } from "./sqlite/connection.js";
import { SQLITE_DIALECT } from "./sqlite/store.js";

export type Cursor = readonly (string | number)[];

type Shape = { readonly columns: readonly string[]; readonly key: readonly string[] };

export class MoveSource {
  readonly #file: SqliteFile;
  readonly #shapes = new Map<string, Shape>();

  constructor(params: { readonly file: string; readonly clock: Clock; readonly chance: Random }) {
    const { file, clock, chance } = params;
    this.#file = new SqliteFile({
      source: { file },
      clock,
      chance,
      synchronous: "FULL",
      mayCreate: false,
      dialect: SQLITE_DIALECT,
    });
  }

  async open(): Promise<void> {
    await this.#file.open();
    await this.#file.read(() => {
      this.#file.exec("begin");
      // The first read takes the snapshot.
      this.#file.get(sql.countOf("schema_version"));
    });
  }

  async close(): Promise<void> {
    this.#file.exec("rollback");
    await this.#file.close();
  }

  tables(): readonly string[] {
    return this.#file.all(sql.SOURCE_TABLES).map(({ name }) => String(name));
  }

  shape(table: string): Shape {
    let shape = this.#shapes.get(table);
    if (!shape) {
      const rows = this.#file.all(sql.SOURCE_COLUMNS, { table: SQLITE_DIALECT.name(table) });
      const keys = rows.filter(({ pk }) => Number(pk) > 0);
      shape = {
        columns: rows.map(({ name }) => String(name)),
        key: keys.sort((a, b) => Number(a.pk) - Number(b.pk)).map(({ name }) => String(name)),
      };
      this.#shapes.set(table, shape);
    }
    return shape;
  }

  count(table: string): number {
    return Number(this.#file.get(sql.countOf(table))?.count);
  }

  liveInstances(): readonly string[] {
    return this.#file.all(sql.SOURCE_LIVE).map(({ id }) => String(id));
  }

  knowsInstance(id: string): boolean {
    return this.#file.get(sql.SOURCE_KNOWS_INSTANCE, { id }) !== undefined;
  }

  /** The rows after the cursor, and where the next page begins. */
  page(params: {
    readonly table: MovedTable;
    readonly after: Cursor | null;
    readonly limit: number;
  }): {
    readonly rows: readonly Row[];
    readonly cursor: Cursor | null;
  } {
    const { table, after, limit } = params;
    const { columns, key } = this.shape(table);
    const text = sql.pageOf({ table, columns, key, isFirst: after === null });
    const begin = Object.fromEntries(
      (after ?? []).map((value, at) => [sql.keyParameter(at), value]),
    );
    const rows = this.#file.all(text, { ...begin, limit });
    const last = rows.at(-1);
    const cursor = last ? key.map((name) => last[name] as string | number) : after;
    return { rows, cursor };
  }

  /** The largest number that this column ever had, as far as the file knows. */
  largest(table: string, column: string): number {
    const max = Number(this.#file.get(sql.maxOf(table, column))?.max ?? 0);
    const name = SQLITE_DIALECT.name(table);
    const given = Number(this.#file.get(sql.SOURCE_SEQUENCE, { table: name })?.seq ?? 0);
    return Math.max(max, given);
  }

  days(): Row {
    return this.#file.get(sql.SOURCE_DAYS) ?? {};
  }

  totals(): ReadonlyMap<MovedTable, number> {
    return new Map(MOVED_TABLES.map((table) => [table, this.count(table)]));
  }
}
