// Opens the database of a round: a SQLite file, or a PostgreSQL server behind a network that can be disturbed, with or
// without a pooler.

import path from "node:path";
import pg from "pg";
import { startPostgres } from "../scripts/postgres.mjs";
import { CREATE_SQLITE_HISTORY } from "./history-tables.mjs";
import { CREATE_LEDGER } from "./jobs.mjs";
import { againstPostgres } from "./nemesis-postgres.mjs";
import { againstSqlite } from "./nemesis-sqlite.mjs";
import { POOLED_SETTINGS, startPooler } from "./pooler.mjs";
import { Network } from "./proxy.mjs";

/** @typedef {import("./checks.mjs").History} History */
/**
 * @typedef {object} Place
 * @property {string} url for the processes
 * @property {string} directUrl for checks, past the proxy
 * @property {string | null} file of SQLite
 * @property {{ mayBeSkewed: boolean }} orders for every process
 * @property {(history: History) => { history: History, forgiven: Record<string, number> }} forgive
 *   removes and counts the losses that this database may have
 * @property {(members: import("./child-processes.mjs").Member[]) =>
 *   (nemesis: import("./nemesis.mjs").Nemesis) => Record<string, import("./nemesis.mjs").Doer>} against
 * @property {() => Promise<void>} close
 */

/**
 * @param {{ database: "sqlite" | "postgres", seed: number, folder: string, isPooled?: boolean,
 *   timeline: import("./timeline.mjs").Timeline }} params
 * @returns {Promise<Place>}
 */
export async function openPlace(params) {
  return params.database === "sqlite" ? openFile(params) : openServer(params);
}

/**
 * @param {Parameters<typeof openPlace>[0]} params
 * @returns {Promise<Place>}
 */
async function openFile({ folder, timeline }) {
  const file = path.join(folder, "holdfast.db");
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const handle = new DatabaseSync(file);
  handle.exec(CREATE_LEDGER);
  handle.exec(CREATE_SQLITE_HISTORY);
  handle.close();
  return {
    url: `sqlite:${file}`,
    directUrl: `sqlite:${file}`,
    file,
    // Processes on one file share one machine, and so one clock.
    orders: { mayBeSkewed: false },
    forgive: nothing,
    against: (members) => againstSqlite({ file, members, timeline }),
    close: async () => undefined,
  };
}

/**
 * @param {Parameters<typeof openPlace>[0]} params
 * @returns {Promise<Place>}
 */
async function openServer({ seed, timeline, isPooled = false }) {
  const server = await startPostgres({
    settings: {
      ...{ max_connections: 200, track_commit_timestamp: "on" },
      ...(isPooled ? POOLED_SETTINGS : {}),
    },
  });
  await createLedger(server.url);
  const pooler = isPooled ? await startPooler({ port: server.port }) : null;
  const proxy = await new Network(pooler?.port ?? server.port).listen();
  return {
    url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`,
    directUrl: server.url,
    file: null,
    orders: { mayBeSkewed: true },
    forgive: nothing,
    against: () => againstPostgres({ url: server.url, server, seed, proxy, timeline }),
    close: async () => {
      await proxy.close();
      await pooler?.stop();
      await server.stop();
    },
  };
}

/** @param {History} history */
export function nothing(history) {
  return { history, forgiven: {} };
}

/** @param {string} url */
export async function createLedger(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(CREATE_LEDGER);
  await client.end();
}
