// The databases that the conformance suite runs on.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { systemRandom } from "../../src/shared/adapters/random.js";
import type { PostgresSource } from "../../src/store/postgres/connection/connection.js";
import { PostgresStore } from "../../src/store/postgres/store.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";
import { borrowSchema } from "../support/borrowed-schema.js";
import type { Place } from "./scene.js";

/** Set by test/setup/postgres.ts where there is a server. */
export const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;
/** Past a pooler, where the other one goes through one: what the tests themselves ask and set. */
export const DIRECT_URL = process.env.HOLDFAST_TEST_POSTGRES_DIRECT_URL ?? POSTGRES_URL;
/** Sessions are shared with others: nothing can be listened to. */
export const IS_POOLED = DIRECT_URL !== POSTGRES_URL;

export async function memoryPlace(): Promise<Place> {
  return {
    ...sqliteAt(":memory:"),
    isShared: false,
    another: memoryPlace,
    clear: async () => undefined,
  };
}

export async function filePlace(): Promise<Place> {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-conformance-"));
  return {
    ...sqliteAt(path.join(folder, "holdfast.db")),
    isShared: true,
    another: filePlace,
    clear: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

function sqliteAt(file: string): Pick<Place, "newStore"> {
  return {
    newStore: ({ now, migrate = "auto" }) =>
      new SqliteStore({
        source: { file },
        clock: systemClock,
        random: systemRandom,
        synchronous: "NORMAL",
        migrate,
        mayCreate: true,
        now,
      }),
  };
}

/**
 * A schema of its own on the test server. `source` is what its stores connect by; who gives one counts
 * what they do, and has a schema that nobody used before.
 */
export async function postgresPlace(
  source?: PostgresSource,
  { isUnmade = source !== undefined } = {},
): Promise<Place & { readonly schema: string; sql(text: string): Promise<pg.QueryResult> }> {
  const borrowed = borrowSchema("conformance", { isUnmade });
  const schema = borrowed.name;
  const sql = async (text: string) => {
    const client = new pg.Client(DIRECT_URL);
    await client.connect();
    try {
      return await client.query(text.replaceAll("$schema", `"${schema}"`));
    } finally {
      await client.end();
    }
  };
  return {
    schema,
    sql,
    isShared: true,
    another: () => postgresPlace(source, { isUnmade: true }),
    newStore: ({ now, migrate = "auto" }) =>
      new PostgresStore({
        source: source ?? (POSTGRES_URL as string),
        schema,
        clock: systemClock,
        migrate,
        now,
      }),
    clear: borrowed.giveBack,
  };
}

/** Does `work` while another connection has run `text` in a transaction that it keeps open. */
export async function whileLocked(text: string, work: () => Promise<void>): Promise<void> {
  const client = new pg.Client(POSTGRES_URL);
  await client.connect();
  try {
    await client.query("begin");
    await client.query(text);
    await work();
  } finally {
    // Behind a pooler the end of a connection lets go of nothing at once.
    await client.query("rollback");
    await client.end();
  }
}
