// The PostgreSQL side of a move: rows and how far it has come are written in one transaction each, so
// that a move that was killed goes on where its last batch committed.

import type { Clock } from "../shared/ports.js";
import type { Cursor } from "./move-source.js";
import { MADE_COLUMNS, type MovedColumn, type MovedTable } from "./move-tables.js";
import { textArray, textColumn } from "./postgres/array.js";
import {
  type Query,
  type Row,
  type TransactionLink,
  transactionLink,
} from "./postgres/connection.js";
import { dayOf } from "./postgres/days.js";
import { PARTITIONED } from "./postgres/schema/schema.js";
import { DATABASE_CLOCK } from "./postgres/session.js";
import { makeFirstDay, PARTITIONS } from "./postgres/sql/days.js";
import * as sql from "./sql/move.js";
import { type Dialect, fillIn, numbered } from "./sql/template.js";

/** How far each table has come. */
export type MoveState = Readonly<
  Record<string, { readonly moved: number; readonly cursor: Cursor | null }>
>;

export type FoundMove = {
  readonly source: string;
  readonly hasEnded: boolean;
  readonly state: MoveState;
};

export class MoveTarget {
  readonly #link: TransactionLink;
  readonly #schema: string;
  readonly #dialect: Dialect;

  static async open(params: {
    readonly url: string;
    readonly schema: string;
    readonly clock: Clock;
  }): Promise<MoveTarget> {
    const { url, schema, clock } = params;
    return new MoveTarget(await transactionLink(url, clock), schema);
  }

  private constructor(link: TransactionLink, schema: string) {
    this.#link = link;
    this.#schema = schema;
    this.#dialect = { name: (plain) => `"${schema}".${plain}`, now: DATABASE_CLOCK };
  }

  close(): Promise<void> {
    return this.#link.end();
  }

  async columns(table: MovedTable): Promise<readonly (MovedColumn & { isNeeded: boolean })[]> {
    const rows = await this.#ask(sql.TARGET_COLUMNS, { table: this.#dialect.name(table) });
    return rows.map((row) => ({
      name: String(row.name),
      type: String(row.type),
      isIdentity: row.is_identity === true,
      isNeeded: row.is_needed === true,
    }));
  }

  async liveInstances(): Promise<readonly string[]> {
    return (await this.#ask(sql.TARGET_LIVE)).map(({ id }) => String(id));
  }

  async isEmpty(table: MovedTable): Promise<boolean> {
    return (await this.#ask(sql.isEmpty(table)))[0]?.is_empty === true;
  }

  async count(table: MovedTable): Promise<number> {
    return Number((await this.#ask(sql.countOf(table)))[0]?.count);
  }

  async found(): Promise<FoundMove | null> {
    const [row] = await this.#link.transaction(async (query) => {
      await query(fillIn(sql.CREATE_MOVE, this.#dialect));
      return this.#within(query, sql.FIND_MOVE);
    });
    if (!row) return null;
    const state = JSON.parse(String(row.state)) as MoveState;
    return { source: String(row.source), hasEnded: row.ended_at !== null, state };
  }

  async begin(source: string): Promise<void> {
    await this.#ask(sql.BEGIN_MOVE, { source, state: "{}" });
  }

  /** Days of history that the database did not make by itself, as they were before its time. */
  async makeDays(days: { readonly runs: readonly number[]; readonly ticks: readonly number[] }) {
    await this.#link.transaction(async (query) => {
      const rows = await this.#within(query, PARTITIONS, { schema: this.#schema });
      const known = new Set(rows.map(({ name }) => String(name)));
      const wanted = [
        ...days.ticks.map((number) => dayOf("tick", number)),
        ...PARTITIONED.flatMap((table) => days.runs.map((number) => dayOf(table, number))),
      ];
      for (const day of wanted) {
        if (!known.has(day.name)) await query(fillIn(makeFirstDay(day), this.#dialect));
      }
    });
  }

  async write(params: {
    readonly table: MovedTable;
    readonly columns: readonly MovedColumn[];
    readonly rows: readonly Row[];
    readonly state: MoveState;
  }): Promise<void> {
    const { table, columns, rows, state } = params;
    const made = MADE_COLUMNS[table] ?? {};
    const text = fillIn(sql.insertInto({ table, columns, made }), this.#dialect);
    const values = columns.map(({ name, type }) =>
      textColumn(rows, (row) => asText(row[name], type)),
    );
    await this.#link.transaction(async (query) => {
      await query(text, values, `holdfast_move_${table}`);
      await this.#within(query, sql.KEEP_MOVE, { state: JSON.stringify(state) });
    });
  }

  async raiseIdentity(table: MovedTable, column: string, last: number): Promise<void> {
    await this.#ask(sql.raiseIdentity(column), { table: this.#dialect.name(table), last });
  }

  async raiseSequence(sequence: string, last: number): Promise<void> {
    await this.#ask(sql.raiseSequence(sequence), { last });
  }

  async end(state: MoveState): Promise<void> {
    await this.#ask(sql.END_MOVE, { state: JSON.stringify(state) });
  }

  #ask(template: string, params: Row = {}): Promise<Row[]> {
    return this.#link.transaction((query) => this.#within(query, template, params));
  }

  #within(query: Query, template: string, params: Row = {}): Promise<Row[]> {
    const { text, parameters } = numbered(template, this.#dialect);
    return query(
      text,
      parameters.map((name) => params[name]),
    );
  }
}

/** SQLite keeps lists as JSON and truth as 0 and 1; the server reads the rest as it is written. */
function asText(value: unknown, type: string): string | null {
  if (value === null || value === undefined) return null;
  if (type.endsWith("[]")) return textArray(JSON.parse(String(value)) as string[]);
  return String(value);
}
