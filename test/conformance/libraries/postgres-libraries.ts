// The database libraries of users on PostgreSQL, each as its own documentation opens a transaction.

import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import knex from "knex";
import { CamelCasePlugin, CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";

/** A statement of the user, sent inside the user's transaction. */
export type Execute = (text: string) => Promise<unknown>;

export type OpenedLibrary = {
  /** The object of the library that users hold. */
  readonly database: object;
  /** How they open a transaction. */
  transaction<T>(fn: (tx: object, execute: Execute) => Promise<T>): Promise<T>;
  /** Sends a statement by the library's own transaction object. */
  execute(tx: object, text: string): Promise<unknown>;
  close(): Promise<void>;
};

export const LIBRARIES: Readonly<Record<string, (url: string) => OpenedLibrary>> = {
  pg(url) {
    const pool = new pg.Pool({ connectionString: url });
    const execute = (tx: object, text: string) => (tx as pg.PoolClient).query(text);
    return {
      database: pool,
      execute,
      async transaction(fn) {
        const client = await pool.connect();
        try {
          await client.query("begin");
          const value = await fn(client, (text) => execute(client, text));
          await client.query("commit");
          return value;
        } catch (error) {
          await client.query("rollback");
          throw error;
        } finally {
          client.release();
        }
      },
      close: () => pool.end(),
    };
  },

  "Drizzle on pg"(url) {
    const pool = new pg.Pool({ connectionString: url });
    const database = drizzleOnPg(pool);
    const execute = (tx: object, text: string) =>
      (tx as typeof database).execute(drizzleSql.raw(text));
    return {
      database,
      execute,
      transaction: (fn) => database.transaction((tx) => fn(tx, (text) => execute(tx, text))),
      close: () => pool.end(),
    };
  },

  "Drizzle on postgres.js"(url) {
    const client = postgres(url, { max: 3 });
    const database = drizzleOnPostgresJs(client);
    const execute = async (tx: object, text: string) =>
      (tx as typeof database).execute(drizzleSql.raw(text));
    return {
      database,
      execute,
      transaction: (fn) => database.transaction((tx) => fn(tx, (text) => execute(tx, text))),
      close: () => client.end(),
    };
  },

  Kysely(url) {
    const pool = new pg.Pool({ connectionString: url });
    // With the plugin that renames every column of every answer.
    const database = new Kysely<unknown>({
      dialect: new PostgresDialect({ pool }),
      plugins: [new CamelCasePlugin()],
    });
    const execute = (tx: object, text: string) =>
      (tx as typeof database).executeQuery(CompiledQuery.raw(text));
    return {
      database,
      execute,
      transaction: (fn) =>
        database.transaction().execute((tx) => fn(tx, (text) => execute(tx, text))),
      close: () => database.destroy(),
    };
  },

  Knex(url) {
    const database = knex({ client: "pg", connection: url, pool: { min: 0, max: 3 } });
    const execute = async (tx: object, text: string) => (tx as typeof database).raw(text);
    return {
      database,
      execute,
      transaction: (fn) => database.transaction((tx) => fn(tx, (text) => execute(tx, text))),
      close: () => database.destroy(),
    };
  },

  "Prisma (a stand-in with its methods)"(url) {
    const pool = new pg.Pool({ connectionString: url });
    const database = prismaStandIn(pool);
    const execute = (tx: object, text: string) => (tx as PrismaRaw).$queryRawUnsafe(text);
    return {
      database,
      execute,
      transaction: (fn) => database.$transaction((tx) => fn(tx, (text) => execute(tx, text))),
      close: () => pool.end(),
    };
  },

  "postgres.js"(url) {
    const sql = postgres(url, { max: 3 });
    const execute = async (tx: object, text: string) => (tx as typeof sql).unsafe(text);
    return {
      database: sql,
      execute,
      transaction: async (fn) =>
        (await sql.begin((tx) => fn(tx, (text) => execute(tx, text)))) as never,
      close: () => sql.end(),
    };
  },
};

type PrismaRaw = { $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown> };

/**
 * Prisma's client needs a generated file and its generator a download. This has the methods that the
 * product uses, and answers as Prisma does: rows alone, large integers as BigInt.
 */
function prismaStandIn(pool: pg.Pool) {
  const INT8 = 20;
  const raw = (client: pg.Pool | pg.PoolClient): PrismaRaw => ({
    async $queryRawUnsafe(text, ...values) {
      if (values.some((value) => value !== null && typeof value !== "string"))
        throw new Error("Prisma would have to guess the type of this value.");
      const types = {
        getTypeParser: (oid: number, format?: "text") =>
          oid === INT8 ? BigInt : pg.types.getTypeParser(oid, format ?? "text"),
      };
      const answer = await client.query({ text, values, types } as never);
      const { rows, fields } = answer as unknown as pg.QueryResult;
      const VOID = 2278;
      if (fields.some(({ dataTypeID }) => dataTypeID === VOID))
        throw new Error("Prisma cannot read a column of type void.");
      return rows;
    },
  });
  return {
    ...raw(pool),
    $connect: async () => undefined,
    async $transaction<T>(fn: (tx: PrismaRaw) => Promise<T>): Promise<T> {
      const client = await pool.connect();
      try {
        await client.query("begin");
        const value = await fn({ ...raw(client), $transaction: () => undefined } as PrismaRaw);
        await client.query("commit");
        return value;
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
  };
}
