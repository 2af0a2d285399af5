// Adapts users' PostgreSQL libraries, one section for each: sends our statements inside an open transaction of the
// library, and opens a transaction on a database of it. A library is recognised by its members: none is imported, so
// none is a dependency, and every version with these members works.

import type { TxQuery } from "../../commits.js";
import { textArray } from "./array.js";

export type Library = {
  /** For messages. */
  readonly name: string;
  /** Returns how to send statements in an open transaction of this library; null if the object is none. */
  transaction(value: object): TxQuery | null;
  /** Returns how to open a transaction on a database of this library; null if the object is none. */
  database(value: object): OpenIn | null;
};

/** Commits when `fn` resolves, rolls back when it rejects; gives it the library's own transaction. */
type OpenIn = <Value>(fn: (tx: object) => Promise<Value>) => Promise<Value>;

type Rows = readonly Record<string, unknown>[];

/** Whether the object, which may be a callable one, has all these methods. */
function hasMethods<Name extends string>(
  value: object,
  ...names: readonly Name[]
): value is Record<Name, (...args: never[]) => unknown> {
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");
}

/** Some libraries return the rows, others a result that contains them. */
function rowsOf(answer: unknown): Rows {
  if (Array.isArray(answer)) return answer as Rows;
  const { rows } = (answer ?? {}) as { readonly rows?: unknown };
  return Array.isArray(rows) ? (rows as Rows) : [];
}

// Every library sends our parameters alike: each travels as text, and the statement casts it. By themselves, one
// library would encode a JSON text a second time, another would write an array as JSON, and a third would request types
// that it cannot know.

type WireStatement = { readonly text: string; readonly values: readonly (string | null)[] };

/** Every parameter of `text` that is not a text must have a cast of its own: `$1::uuid[]`. */
function wireStatement(text: string, values: readonly unknown[]): WireStatement {
  return { text: text.replace(/\$(\d+)/g, "$$$1::text"), values: values.map(wireText) };
}

/** The same for libraries whose placeholders are question marks in the order of their values. */
function questionMarks({ text, values }: WireStatement): WireStatement {
  const inOrder: (string | null)[] = [];
  // A question mark in our SQL is an operator: "has this member".
  const marked = text.replaceAll("?", "\\?").replace(/\$(\d+)/g, (_, number: string) => {
    inOrder.push(values[Number(number) - 1] ?? null);
    return "?";
  });
  return { text: marked, values: inOrder };
}

function wireText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return textArray(value.map(wireText));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// `pg`: a client with an open transaction, or a pool that opens one. Any other object with a `query(text, values)`
// counts as an open transaction too, such as the `tx` that handlers get.

type Queryable = { query(text: string, values?: readonly unknown[]): Promise<unknown> };
type Client = Queryable & { release(error?: unknown): void };
type Pool = Queryable & { connect(): Promise<Client> };

/** The state that a client of `pg` reports while no transaction is open. */
const IDLE = "I";

const pgLibrary: Library = {
  name: "pg",
  transaction(value) {
    if (!hasMethods(value, "query") || isPool(value)) return null;
    const client = value as unknown as Queryable & { getTransactionStatus?: () => unknown };
    if (client.getTransactionStatus?.() === IDLE) return null;
    return async (text, values) => {
      const statement = wireStatement(text, values);
      return rowsOf(await client.query(statement.text, statement.values));
    };
  },
  database: (value) => (isPool(value) ? inPool(value) : null),
};

function isPool(value: object): value is Pool {
  return hasMethods(value, "connect", "query") && "totalCount" in value;
}

function inPool(pool: Pool): OpenIn {
  return async (fn) => {
    const client = await pool.connect();
    let failure: unknown;
    try {
      await client.query("begin");
      const value = await fn(client);
      await client.query("commit");
      return value;
    } catch (error) {
      // A client that cannot even roll back is useless to other callers.
      await client.query("rollback").catch((broken: unknown) => {
        failure = broken;
      });
      throw error;
    } finally {
      client.release(failure);
    }
  };
}

// postgres.js: `sql` inside of `sql.begin(…)`. Both are functions with methods.

type Unsafe = { unsafe(text: string, values: readonly unknown[]): Promise<unknown> };
type PostgresJs = Unsafe & { begin<T>(fn: (sql: object) => Promise<T>): Promise<T> };

const postgresJsLibrary: Library = {
  name: "postgres.js",
  transaction(value) {
    if (!hasMethods(value, "unsafe", "savepoint")) return null;
    const sql = value as unknown as Unsafe;
    return async (text, values) => {
      const statement = wireStatement(text, values);
      return rowsOf(await sql.unsafe(statement.text, statement.values));
    };
  },
  database(value) {
    if (!hasMethods(value, "unsafe", "begin")) return null;
    const database = value as unknown as PostgresJs;
    return (fn) => database.begin(fn);
  },
};

// Prisma, through its driver adapter. Inside a transaction its client cannot connect or disconnect, which distinguishes
// the two.

type PrismaClient = { $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown> };
type Prisma = PrismaClient & { $transaction<T>(fn: (tx: object) => Promise<T>): Promise<T> };

const prismaLibrary: Library = {
  name: "Prisma",
  transaction(value) {
    if (!hasMethods(value, "$queryRawUnsafe") || hasMethods(value, "$connect")) return null;
    const client = value as unknown as PrismaClient;
    return async (text, values) => {
      const statement = wireStatement(text, values);
      return rowsOf(await client.$queryRawUnsafe(statement.text, ...statement.values)).map(
        asOthers,
      );
    };
  },
  database(value) {
    if (!hasMethods(value, "$queryRawUnsafe", "$transaction", "$connect")) return null;
    const database = value as unknown as Prisma;
    return (fn) => database.$transaction(fn);
  },
};

/** Other libraries return large integers as text. */
function asOthers(row: Rows[number]): Rows[number] {
  const members = Object.entries(row).map(([name, value]) => [
    name,
    typeof value === "bigint" ? String(value) : value,
  ]);
  return Object.fromEntries(members) as Rows[number];
}

// Drizzle, with any driver whose `execute` returns rows (node-postgres, postgres.js). It gets a statement in the form
// that its `sql` tag produces: an object that returns its text.

type Drizzle = {
  execute(query: unknown): Promise<unknown>;
  transaction<T>(fn: (tx: object) => Promise<T>): Promise<T>;
};

const drizzleLibrary: Library = {
  name: "Drizzle",
  transaction(value) {
    if (!isDrizzle(value) || !isDrizzleTransaction(value)) return null;
    return async (text, values) => {
      const { text: sql, values: params } = wireStatement(text, values);
      const query = { toQuery: () => ({ sql, params }) };
      return rowsOf(await value.execute({ getSQL: () => query }));
    };
  },
  database(value) {
    if (!isDrizzle(value) || isDrizzleTransaction(value)) return null;
    return (fn) => value.transaction(fn);
  },
};

function isDrizzle(value: object): value is Drizzle {
  return hasMethods(value, "execute", "transaction") && "dialect" in value && "session" in value;
}

function isDrizzleTransaction(value: object): boolean {
  return hasMethods(value, "rollback");
}

// Knex: its placeholders are question marks.

type KnexClient = {
  readonly isTransaction?: boolean;
  raw(text: string, values: readonly unknown[]): Promise<unknown>;
};
type Knex = KnexClient & { transaction<T>(fn: (trx: object) => Promise<T>): Promise<T> };

const knexLibrary: Library = {
  name: "Knex",
  transaction(value) {
    if (!isKnex(value) || value.isTransaction !== true) return null;
    return async (text, values) => {
      const statement = questionMarks(wireStatement(text, values));
      return rowsOf(await value.raw(statement.text, statement.values));
    };
  },
  database(value) {
    if (!isKnex(value) || value.isTransaction === true) return null;
    return (fn) => (value as Knex).transaction(fn);
  },
};

function isKnex(value: object): value is KnexClient {
  return hasMethods(value, "raw", "transaction", "queryBuilder");
}

// Kysely. Its plugins do not see our statements: one that renames columns would rename ours.

type KyselyClient = {
  readonly isTransaction: boolean;
  withoutPlugins(): KyselyClient;
  executeQuery(query: object): Promise<unknown>;
};
type Kysely = KyselyClient & {
  transaction(): { execute<T>(fn: (trx: object) => Promise<T>): Promise<T> };
};

const kyselyLibrary: Library = {
  name: "Kysely",
  transaction(value) {
    if (!isKysely(value) || !value.isTransaction) return null;
    const executor = value.withoutPlugins();
    return async (text, values) => {
      const { text: sql, values: parameters } = wireStatement(text, values);
      return rowsOf(await executor.executeQuery(rawQuery(sql, parameters)));
    };
  },
  database(value) {
    if (!isKysely(value) || value.isTransaction) return null;
    return (fn) => (value as Kysely).transaction().execute(fn);
  },
};

function isKysely(value: object): value is KyselyClient {
  return (
    hasMethods(value, "executeQuery", "withoutPlugins") &&
    typeof (value as { isTransaction?: unknown }).isTransaction === "boolean"
  );
}

/** The result of `CompiledQuery.raw`; Kysely identifies a query by the object of its id, not by the text in it. */
function rawQuery(sql: string, parameters: readonly unknown[]): object {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
  return { sql, parameters, query, queryId: { queryId: "holdfast" } };
}

/** `pg` comes last: many objects have a `query`. */
export const LIBRARIES: readonly Library[] = [
  drizzleLibrary,
  kyselyLibrary,
  knexLibrary,
  prismaLibrary,
  postgresJsLibrary,
  pgLibrary,
];
