// Manages the days of history on PostgreSQL: partitions that are created ahead of time and dropped whole. Every change
// is one short transaction on one table. It gives up rather than wait long for a lock, since claims would queue up
// behind it; a later pass does the rest. Rows without a partition of their day lie in the rest partition.

import type { Clock } from "../../shared/ports.js";
import { PARTITIONED } from "../schema/schema.js";
import { type Dialect, fillIn, numbered } from "../sql/template.js";
import {
  LinkFailure,
  type PostgresSource,
  type Query,
  type TransactionLink,
  transactionLink,
} from "./connection/connection.js";
import * as sql from "./sql/days.js";

export const DAY_MS = 86_400_000;
const DAYS_AHEAD = 3;
const LOCK_TIMEOUT = "set local lock_timeout = '300ms'";
const LOCK_NOT_AVAILABLE = "55P03";
/** If more rows than this would have to stay, the day is left whole, because moving them would stop the claims. */
const KEPT_MAX = 10_000;
const KEYS_BATCH = 10_000;

type Row = Record<string, unknown>;

type DaysParams = {
  readonly source: PostgresSource;
  readonly clock: Clock;
  readonly schema: string;
  readonly dialect: Dialect;
  /** By the database's clock. */
  readonly now: number;
  readonly query: Query;
};

/** A partition to drop, with the statements that drop it. */
type Leaving = { readonly day: sql.Day; readonly statements: readonly string[] };

/** Drops the days of log lines that are older than `keepMs`, however long the rest is kept. Returns their number. */
export async function dropDaysOfLogs(params: DaysParams, keepMs: number): Promise<number> {
  const since = params.now - keepMs;
  const old = daysBefore(await knownDays(params), "log_day_", since);
  return leave(
    params,
    old.map((number) => {
      const day = dayOf("log", number);
      return { day, statements: sql.dropDayBy(day, "at", since) };
    }),
  );
}

/**
 * Thins days of the ledger that are older than `keepTicksMs`: see sql.thinDay. The remaining rows are dropped when they
 * are older than `keepMs`. Returns how many days changed.
 */
export async function thinLedger(
  params: DaysParams,
  { keepMs, keepTicksMs }: { readonly keepMs: number; readonly keepTicksMs: number },
): Promise<number> {
  const known = await knownDays(params);
  const lastMs = Math.max(keepMs, keepTicksMs);
  const since = params.now - lastMs;
  const thinned = daysBefore(known, "tick_day_", params.now - keepTicksMs);
  const whole = daysBefore(known, "tick_day_", since);
  const drop = (day: sql.Day) => ({ day, statements: sql.dropDayBy(day, "last_at", since) });
  return leave(params, [
    ...daysBefore(known, "tick_kept_", since).map((number) => drop(keptDayOf(number))),
    ...whole.map((number) => drop(dayOf("tick", number))),
    ...thinned
      .filter((number) => !whole.includes(number))
      .map((number) => {
        const day = dayOf("tick", number);
        return { day, statements: sql.thinDay(day, keepTicksMs) };
      }),
  ]);
}

/** Days of which every row is older, the oldest first. */
function daysBefore(known: ReadonlySet<string>, prefix: string, since: number): number[] {
  const today = Math.floor(since / DAY_MS);
  const numbers = [...known].flatMap((name) =>
    name.startsWith(prefix) ? [Number(name.slice(prefix.length))] : [],
  );
  return numbers.filter((number) => number < today).sort((a, b) => a - b);
}

async function leave(params: DaysParams, leaving: readonly Leaving[]): Promise<number> {
  if (leaving.length === 0) return 0;
  return withLink(params, async (link) => {
    let left = 0;
    for (const { day, statements } of leaving) {
      const answer = await change({ ...params, link, day, isToBeKnown: false }, statements);
      if (answer === "locked") return left;
      if (answer === "done") left += 1;
    }
    return left;
  });
}

/** Creates today and the days after it, if they are missing. */
export async function makeDays(params: DaysParams): Promise<void> {
  const known = await knownDays(params);
  // After a step of the clock a day may exist of which only a part was kept.
  const isThere = ({ table, name }: sql.Day) =>
    known.has(name) || (table === "tick" && known.has(name.replace("_day_", "_kept_")));
  const missing = daysAhead(params.now).filter((day) => !isThere(day));
  if (missing.length === 0) return;
  await withLink(params, async (link) => {
    for (const day of missing) {
      const answer = await change({ ...params, link, day, isToBeKnown: true }, sql.makeDay(day));
      if (answer === "locked") return;
    }
  });
}

/** The same for tables that nothing uses yet. */
export function firstDays({ now, dialect }: Pick<DaysParams, "now" | "dialect">): string[] {
  return daysAhead(now).map((day) => fillIn(sql.makeFirstDay(day), dialect));
}

/** Drops the days of which every row is older than `keepMs`; returns the number of tables. */
export async function dropDays(params: DaysParams, keepMs: number): Promise<number> {
  const since = params.now - keepMs;
  const known = await knownDays(params);
  const runDays = [...known].filter((name) => !name.startsWith("tick_"));
  const numbers = runDays.map((name) => Number(/_day_(\d+)$/.exec(name)?.[1] ?? Number.NaN));
  const old = numbers.filter((number) => number < Math.floor(since / DAY_MS));
  if (old.length === 0) return 0;
  return withLink(params, async (link) => {
    let dropped = 0;
    for (const number of new Set(old.sort((a, b) => a - b))) {
      const { from, to } = dayOf("run", number);
      // On a connection of its own: these statements read a whole day, and heartbeats must not wait behind them.
      const [row] = await link.transaction((query) =>
        ask({ ...params, query }, sql.KEPT_OF_DAY, { from, to, since, limit: KEPT_MAX + 1 }),
      );
      if (Number(row?.kept) > KEPT_MAX) continue;
      await pruneKeys(params, link, { from, to, since });
      for (const table of PARTITIONED) {
        const day = dayOf(table, number);
        if (!known.has(day.name)) continue;
        const answer = await change(
          { ...params, link, day, isToBeKnown: false },
          sql.dropDay(day, since),
        );
        if (answer === "locked") return dropped;
        if (answer === "done") dropped += 1;
      }
    }
    return dropped;
  });
}

async function pruneKeys(
  params: DaysParams,
  link: TransactionLink,
  bounds: Pick<sql.Day, "from" | "to"> & { readonly since: number },
): Promise<void> {
  for (;;) {
    const rows = await link.transaction((query) =>
      ask({ ...params, query }, sql.PRUNE_KEYS_OF_DAY, { ...bounds, limit: KEYS_BATCH }),
    );
    if (rows.length < KEYS_BATCH) return;
  }
}

/** The lock was not granted: continuing the pass would only stop the claims again. */
async function change(
  params: DaysParams & {
    readonly link: TransactionLink;
    readonly day: sql.Day;
    readonly isToBeKnown: boolean;
  },
  statements: readonly string[],
): Promise<"done" | "not_needed" | "locked"> {
  const { link, schema, dialect, day, isToBeKnown } = params;
  try {
    return await link.transaction(async (query) => {
      await query(LOCK_TIMEOUT);
      await query("select pg_advisory_xact_lock(hashtext($1))", [`holdfast:${schema}`]);
      const known = await knownDays({ ...params, query });
      if (known.has(day.name) === isToBeKnown) return "not_needed";
      for (const text of statements) await query(fillIn(text, dialect));
      return "done";
    });
  } catch (error) {
    if (error instanceof LinkFailure && error.code === LOCK_NOT_AVAILABLE) return "locked";
    throw error;
  }
}

async function withLink<T>(
  { source, clock }: DaysParams,
  work: (link: TransactionLink) => Promise<T>,
): Promise<T> {
  const link = await transactionLink(source, clock);
  try {
    return await work(link);
  } finally {
    await link.end();
  }
}

async function knownDays(params: DaysParams): Promise<Set<string>> {
  const rows = await ask(params, sql.PARTITIONS, { schema: params.schema });
  return new Set(rows.map((row) => String(row.name)));
}

function ask({ dialect, query }: DaysParams, template: string, values: Row): Promise<Row[]> {
  const { text, parameters } = numbered(template, dialect);
  return query(
    text,
    parameters.map((name) => values[name]),
  );
}

function daysAhead(now: number): sql.Day[] {
  const today = Math.floor(now / DAY_MS);
  return ([...PARTITIONED, "tick"] as const).flatMap((table) =>
    Array.from({ length: DAYS_AHEAD }, (_, ahead) => dayOf(table, today + ahead)),
  );
}

export function dayOf(table: sql.Day["table"], number: number): sql.Day {
  const edge = table === "tick" ? (day: number) => String(day * DAY_MS) : firstIdOf;
  return { table, name: `${table}_day_${number}`, from: edge(number), to: edge(number + 1) };
}

/** Which rows of a ledger day are kept. */
function keptDayOf(number: number): sql.Day {
  return { ...dayOf("tick", number), name: `tick_kept_${number}` };
}

/** The smallest UUIDv7 of a day. */
function firstIdOf(number: number): string {
  const hex = (number * DAY_MS).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
