// Writes the PostgreSQL side of a move: a batch of rows and the position of the move commit together, so that a killed
// move continues after its last committed batch. Statements are made for each table from the columns that both
// databases have; names come from the schema, never from a user.

import type { Clock } from "../../shared/ports.js";
import { textArray, textColumn } from "../postgres/connection/array.js";
import {
  type Query,
  type Row,
  type TransactionLink,
  transactionLink,
} from "../postgres/connection/connection.js";
import { dayOf } from "../postgres/days.js";
import { DATABASE_CLOCK } from "../postgres/session.js";
import { makeFirstDay, PARTITIONS } from "../postgres/sql/days.js";
import { PARTITIONED } from "../schema/schema.js";
import { type Dialect, fillIn, numbered } from "../sql/template.js";
import type { Cursor } from "./source.js";
import { MADE_COLUMNS, type MovedColumn, type MovedTable } from "./tables.js";

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(", ");

const countOf = (table: string) => /* sql */ `select count(*) as count from {${table}}`;

/** The position of a move; it stays as the record of a finished one. */
const CREATE_MOVE = /* sql */ `
create table if not exists {move} (source text not null, began_at bigint not null, ended_at bigint, state text not null)`;

const FIND_MOVE = /* sql */ `select source, ended_at, state from {move}`;
const BEGIN_MOVE = /* sql */ `insert into {move} (source, began_at, state) values (:source, {now}, :state)`;
const KEEP_MOVE = /* sql */ `update {move} set state = :state`;
const END_MOVE = /* sql */ `update {move} set ended_at = {now}, state = :state`;

const COLUMNS = /* sql */ `
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attidentity <> '' as is_identity,
  a.attnotnull and not a.atthasdef and a.attidentity = '' as is_needed
from pg_catalog.pg_attribute a
where a.attrelid = to_regclass(:table::text) and a.attnum > 0 and not a.attisdropped order by a.attnum`;

const LIVE = /* sql */ `
select id from {instance} where retired_at is null and seen_at > {now} - greatest(60000, 3 * poll_ms) order by no`;

const emptyOf = (table: string) =>
  /* sql */ `select not exists (select from {${table}}) as is_empty`;

/** One array of texts for each column, cast by the server. */
function insertInto(params: {
  readonly table: string;
  readonly columns: readonly MovedColumn[];
  readonly made: Readonly<Record<string, string>>;
}): string {
  const { table, columns, made } = params;
  const names = columns.map(({ name }) => name);
  const arrays = names.map((_, at) => `$${at + 1}::text[]`).join(", ");
  const values = columns.map(({ name, type }) => `u."${name}"::${type}`);
  return `insert into {${table}} (${quoted([...names, ...Object.keys(made)])}) overriding system value
select ${[...values, ...Object.values(made)].join(", ")} from unnest(${arrays}) as u (${quoted(names)})`;
}

const raiseIdentityOf = (column: string) => /* sql */ `
select setval(pg_get_serial_sequence(:table::text, '${column}'), :last::bigint)`;
const raise = (sequence: string) => /* sql */ `select setval('{${sequence}}', :last::bigint)`;

/** The position in each table. */
export type MoveState = Readonly<
  Record<string, { readonly moved: number; readonly cursor: Cursor | null }>
>;

type FoundMove = {
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
    const rows = await this.#ask(COLUMNS, { table: this.#dialect.name(table) });
    return rows.map((row) => ({
      name: String(row.name),
      type: String(row.type),
      isIdentity: row.is_identity === true,
      isNeeded: row.is_needed === true,
    }));
  }

  async liveInstances(): Promise<readonly string[]> {
    return (await this.#ask(LIVE)).map(({ id }) => String(id));
  }

  async isEmpty(table: MovedTable): Promise<boolean> {
    return (await this.#ask(emptyOf(table)))[0]?.is_empty === true;
  }

  async count(table: MovedTable): Promise<number> {
    return Number((await this.#ask(countOf(table)))[0]?.count);
  }

  async found(): Promise<FoundMove | null> {
    const [row] = await this.#link.transaction(async (query) => {
      await query(fillIn(CREATE_MOVE, this.#dialect));
      return this.#within(query, FIND_MOVE);
    });
    if (!row) return null;
    const state = JSON.parse(String(row.state)) as MoveState;
    return { source: String(row.source), hasEnded: row.ended_at !== null, state };
  }

  async begin(source: string): Promise<void> {
    await this.#ask(BEGIN_MOVE, { source, state: "{}" });
  }

  /** Days of history before the database's own time, for which it has made no partitions. */
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
    const text = fillIn(insertInto({ table, columns, made }), this.#dialect);
    const values = columns.map(({ name, type }) =>
      textColumn(rows, (row) => asText(row[name], type)),
    );
    await this.#link.transaction(async (query) => {
      await query(text, values, `holdfast_move_${table}`);
      await this.#within(query, KEEP_MOVE, { state: JSON.stringify(state) });
    });
  }

  async raiseIdentity(table: MovedTable, column: string, last: number): Promise<void> {
    await this.#ask(raiseIdentityOf(column), { table: this.#dialect.name(table), last });
  }

  async raiseSequence(sequence: string, last: number): Promise<void> {
    await this.#ask(raise(sequence), { last });
  }

  async end(state: MoveState): Promise<void> {
    await this.#ask(END_MOVE, { state: JSON.stringify(state) });
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

/** SQLite keeps lists as JSON and booleans as 0 and 1; the server reads all other values as they are written. */
function asText(value: unknown, type: string): string | null {
  if (value === null || value === undefined) return null;
  if (type.endsWith("[]")) return textArray(JSON.parse(String(value)) as string[]);
  return String(value);
}
