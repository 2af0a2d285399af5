// The databases that the engine suite runs on: both take their time from the test's clock.

import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { PostgresStore } from "../../src/store/postgres/store.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";
import { SeededRandom } from "../../src/testing/virtual-clock.js";
import { borrowSchema } from "../support/borrowed-schema.js";
import type { EnginePlace } from "./world.js";

/** Set by test/setup/postgres.ts where there is a server. */
export const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;

const PATIENCE_MS = 25_000;

/** One handle for all instances: SQLite in memory is reached through one connection alone. */
export async function memoryPlace(): Promise<EnginePlace> {
  const handle = new DatabaseSync(":memory:");
  return {
    newStore: ({ clock, now }) =>
      new SqliteStore({
        source: { handle: handle as unknown as SqliteHandle },
        clock,
        random: new SeededRandom(1),
        synchronous: "FULL",
        migrate: "auto",
        mayCreate: true,
        now,
      }),
    execute: async (sql) => handle.exec(sql.replace(/\{([a-z_]+)\}/g, "holdfast_$1")),
    rows: async (sql) => handle.prepare(sql).all() as Record<string, unknown>[],
    table: (plain) => `holdfast_${plain}`,
    transaction: async () => {
      handle.exec("begin immediate");
      return { tx: handle, finish: async (how) => handle.exec(how) };
    },
    clear: async () => handle.close(),
  };
}

/** A schema of its own on the test server; waiting for the server itself takes real time. */
export async function postgresPlace(): Promise<EnginePlace> {
  const borrowed = borrowSchema("engine");
  const schema = borrowed.name;
  const query = async (sql: string) => {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    const { rows } = await client.query(sql);
    await client.end();
    return rows as Record<string, unknown>[];
  };
  return {
    newStore: ({ now }) => {
      const store = new PostgresStore({
        source: POSTGRES_URL as string,
        schema,
        clock: systemClock,
        migrate: "auto",
        now,
      });
      // The test's time stands still while a statement is on its way; the server takes real time, and
      // a slow disk must not make an answer too late that in the test's time came at once.
      const renew = store.leases.renew.bind(store.leases);
      store.leases.renew = (params) => renew({ ...params, timeoutMs: PATIENCE_MS });
      return store;
    },
    execute: async (sql) => {
      await query(sql.replace(/\{([a-z_]+)\}/g, `"${schema}".$1`));
    },
    rows: query,
    table: (plain) => `"${schema}".${plain}`,
    transaction: async () => {
      const client = new pg.Client(POSTGRES_URL);
      await client.connect();
      await client.query("begin isolation level serializable");
      const finish = async (how: string) => {
        await client.query(how);
        await client.end();
      };
      return { tx: client, finish };
    },
    clear: borrowed.giveBack,
  };
}
