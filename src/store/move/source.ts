// Reads the SQLite side of a move: in one snapshot from beginning to end, by pages in the order of each table's key.
// Never writes. Statements are made for each table from its columns; names come from the schema, never from a user.

import type { Clock, Random } from "../../shared/ports.js";
import { type Row, SqliteFile } from "../sqlite/connection/connection.js";
import { SQLITE_DIALECT } from "../sqlite/store.js";
import { MOVED_TABLES, type MovedTable } from "./tables.js";

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(", ");

const TABLES = /* sql */ `
select substr(name, 10) as name from sqlite_master where type = 'table' and name glob 'holdfast_*'`;

const COLUMNS = /* sql */ `select name, pk from pragma_table_info(:table) order by cid`;

const LIVE = /* sql */ `
select id from {instance}
where retired_at is null and seen_at > unixepoch('subsec') * 1000 - max(60000, 3 * poll_ms) order by no`;

const KNOWS_INSTANCE = /* sql */ `select 1 from {instance} where id = :id`;

/** The largest number that was ever given out, also if its row no longer exists. */
const SEQUENCE = /* sql */ `select seq from sqlite_sequence where name = :table`;

const DAYS = /* sql */ `
select (select min(id) from {run}) as first_run, (select max(id) from {run}) as last_run,
  (select min(at) from {tick}) as first_tick, (select max(at) from {tick}) as last_tick`;

const countOf = (table: string) => /* sql */ `select count(*) as count from {${table}}`;

const maxOf = (table: string, column: string) =>
  /* sql */ `select max("${column}") as max from {${table}}`;

/** The parameters for the beginning of a page, by position. */
const keyParameter = (at: number) => `key${String.fromCharCode(65 + at)}`;

function pageOf(params: {
  readonly table: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly isFirst: boolean;
}): string {
  const { table, columns, key, isFirst } = params;
  const after = key.map((_, at) => `:${keyParameter(at)}`).join(", ");
  const where = isFirst ? "" : `where (${quoted(key)}) > (${after})`;
  return `select ${quoted(columns)} from {${table}} ${where} order by ${quoted(key)} limit (:limit + 0)`;
}

export type Cursor = readonly (string | number)[];

type Shape = { readonly columns: readonly string[]; readonly key: readonly string[] };

export class MoveSource {
  readonly #file: SqliteFile;
  readonly #shapes = new Map<string, Shape>();

  constructor(params: { readonly file: string; readonly clock: Clock; readonly random: Random }) {
    const { file, clock, random } = params;
    this.#file = new SqliteFile({
      source: { file },
      clock,
      random,
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
      this.#file.get(countOf("schema_version"));
    });
  }

  async close(): Promise<void> {
    this.#file.exec("rollback");
    await this.#file.close();
  }

  tables(): readonly string[] {
    return this.#file.all(TABLES).map(({ name }) => String(name));
  }

  shape(table: string): Shape {
    let shape = this.#shapes.get(table);
    if (!shape) {
      const rows = this.#file.all(COLUMNS, { table: SQLITE_DIALECT.name(table) });
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
    return Number(this.#file.get(countOf(table))?.count);
  }

  liveInstances(): readonly string[] {
    return this.#file.all(LIVE).map(({ id }) => String(id));
  }

  knowsInstance(id: string): boolean {
    return this.#file.get(KNOWS_INSTANCE, { id }) !== undefined;
  }

  /** The rows after the cursor, and the cursor of the next page. */
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
    const text = pageOf({ table, columns, key, isFirst: after === null });
    const begin = Object.fromEntries((after ?? []).map((value, at) => [keyParameter(at), value]));
    const rows = this.#file.all(text, { ...begin, limit });
    const last = rows.at(-1);
    const cursor = last ? key.map((name) => last[name] as string | number) : after;
    return { rows, cursor };
  }

  /** The largest number that this column ever had, as far as the file shows. */
  largest(table: string, column: string): number {
    const max = Number(this.#file.get(maxOf(table, column))?.max ?? 0);
    const name = SQLITE_DIALECT.name(table);
    const given = Number(this.#file.get(SEQUENCE, { table: name })?.seq ?? 0);
    return Math.max(max, given);
  }

  days(): Row {
    return this.#file.get(DAYS) ?? {};
  }

  totals(): ReadonlyMap<MovedTable, number> {
    return new Map(MOVED_TABLES.map((table) => [table, this.count(table)]));
  }
}
