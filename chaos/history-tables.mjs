// Creates the tables of the recorded history and reads it back: one entry for each transaction, in commit order.

import pg from "pg";
import { groupBy } from "./findings.mjs";
import { HISTORY } from "./recorder.mjs";

/** @typedef {{ who: string, verb: string, params: any, at: number, notes: any[][] }} Entry */

/** One trigger of the simulator: the kind of change, the table, and the recorded columns. */
const TRIGGER = /holdfast_note\('(?<table>\w+)(?<change>[+~-])', (?<columns>.*)\); end;/;
const CHANGES = /** @type {Readonly<Record<string, string>>} */ ({
  "+": "insert",
  "-": "delete",
  "~": "update",
});

export const CREATE_SQLITE_HISTORY = `create table ${HISTORY} (
  seq integer primary key, who text, verb text, params text, at integer, notes text)`;

/** After the tables were made, and before anybody works. @param {string} url @param {string} triggers */
export async function createPostgresHistory(url, triggers) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `create table ${HISTORY} (seq bigserial, xid xid8, said timestamptz, at bigint, call text, kind text, row jsonb)`,
  );
  await client.query(`create function ${HISTORY}_note() returns trigger language plpgsql as $$ begin
    insert into ${HISTORY} (xid, said, at, call, kind, row) values (pg_current_xact_id(), statement_timestamp(),
      extract(epoch from clock_timestamp()) * 1000, current_setting('chaos.call', true), tg_argv[0],
      jsonb_build_object('old', to_jsonb(old), 'new', to_jsonb(new)));
    return null; end $$`);
  for (const { table, change } of parsed(triggers))
    await client.query(`create trigger chaos_${table}_${CHANGES[change]} after ${CHANGES[change]}
      on holdfast.${table} for each row execute function ${HISTORY}_note('${table}${change}')`);
  await client.end();
}

/**
 * @param {{ all: (sql: string) => Promise<any[]> }} reader
 * @param {"sqlite" | "postgres"} database
 * @param {string} triggers
 * @returns {Promise<Entry[]>}
 */
export async function readHistory(reader, database, triggers) {
  if (database === "sqlite") {
    const rows = await reader.all(`select * from ${HISTORY} order by seq`);
    return rows.map(({ who, verb, params, at, notes }) => ({
      ...{ who, verb, at: Number(at) },
      params: JSON.parse(params),
      notes: JSON.parse(notes),
    }));
  }
  const columnsOf = new Map(
    parsed(triggers).map(({ table, change, columns }) => [`${table}${change}`, columns]),
  );
  // A transaction that waited for a row of another one has committed after it. The order of the triggers of one
  // statement has no meaning: its parts happen at once.
  const rows = await reader.all(
    `select h.xid::text, h.said, h.at, h.call, h.kind, h.row, pg_xact_commit_timestamp(h.xid::xid) as committed
     from ${HISTORY} h order by committed, h.xid, h.said, h.seq`,
  );
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  for (const { xid, at, call, kind, row } of inStatementOrder(rows)) {
    let entry = entries.get(xid);
    if (!entry) {
      const { who = "", verb = "?", params = {} } = call ? JSON.parse(call) : {};
      entry = { who, verb, params, at: 0, notes: [] };
      entries.set(xid, entry);
    }
    entry.at = Math.max(entry.at, Number(at));
    entry.notes.push([kind, ...(columnsOf.get(kind) ?? []).map((column) => columnOf(row, column))]);
  }
  return [...entries.values()];
}

/** Orders changes of a run: first its creation, then the table that it leaves, then the table that it enters. */
const ORDER = [
  ...["lane+", "policy+", "instance+", "queue+", "queue~", "run+", "outcome-"],
  ...["ready-", "waiting-", "lease~", "lease-", "attempt+", "waiting~", "ready+", "waiting+"],
  ...["lease+", "outcome+", "tick+", "schedule+", "schedule~", "run-"],
];

/** @param {any[]} rows by transaction and statement */
function inStatementOrder(rows) {
  const statements = groupBy(rows, ({ xid, said }) => `${xid} ${Number(said)}`);
  const rank = (/** @type {{ kind: string }} */ { kind }) => ORDER.indexOf(kind);
  return [...statements.values()].flatMap((statement) =>
    [...statement].sort((a, b) => rank(a) - rank(b)),
  );
}

/** @param {string} triggers */
function parsed(triggers) {
  return triggers.split("\n").flatMap((line) => {
    const { table = "", change = "", columns = "" } = TRIGGER.exec(line)?.groups ?? {};
    return table === "" ? [] : [{ table, change, columns: split(columns) }];
  });
}

/** At commas that are in no brackets. @param {string} columns */
function split(columns) {
  return columns.split(/,(?![^(]*\))/).map((each) => each.trim());
}

/** Converts a value to the form that SQLite's triggers record. @param {any} row @param {string} column */
function columnOf(row, column) {
  const [, which = "", name = ""] = /^(old|new)\.(\w+)$/.exec(column) ?? [];
  const value = row[which]?.[name] ?? null;
  if (typeof value === "boolean") return Number(value);
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}
