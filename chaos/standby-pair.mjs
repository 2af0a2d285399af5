// Starts a primary and its standby behind one address that does not change. The standby begins as a copy of the
// files of the stopped primary, because npm's PostgreSQL has no program for a base backup.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { startPostgres } from "../scripts/postgres.mjs";
import { forgetLost } from "./lost-commits.mjs";
import { Network } from "./proxy.mjs";
import { createLedger, nothing } from "./test-database.mjs";

/** The delay of an asynchronous standby. */
const LAG_MS = 150;
const WITHIN_MS = 180_000;

/**
 * @param {{ isSynchronous: boolean, timeline: import("./timeline.mjs").Timeline }} params
 * @returns {Promise<import("./test-database.mjs").Place>}
 */
export async function openPair({ isSynchronous, timeline }) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-pair-"));
  fs.chmodSync(home, 0o777);
  const dirs = { primary: path.join(home, "primary"), standby: path.join(home, "standby") };
  const settings = { max_connections: 100, wal_level: "replica", max_wal_senders: 5 };
  const first = await startPostgres({ dataDir: dirs.primary, settings, keepData: true });
  await createLedger(first.url);
  await first.stop();
  execFileSync("cp", ["-a", dirs.primary, dirs.standby]);
  fs.writeFileSync(path.join(dirs.standby, "standby.signal"), "");

  const primary = await startPostgres({
    dataDir: dirs.primary,
    settings: { ...settings, synchronous_standby_names: isSynchronous ? "*" : "" },
  });
  // The standby replicates through a connection of its own, which may be slow.
  const stream = await new Network(primary.port).listen();
  if (!isSynchronous) stream.delay(LAG_MS);
  const standby = await startPostgres({
    dataDir: dirs.standby,
    settings: {
      ...settings,
      primary_conninfo: `host=127.0.0.1 port=${stream.port} user=postgres sslmode=disable gssencmode=disable`,
    },
  });
  await until(primary.url, "select 1 from pg_stat_replication where state = 'streaming'");
  const network = await new Network(primary.port).listen();
  let current = primary;
  return {
    url: `postgres://postgres@127.0.0.1:${network.port}/postgres`,
    get directUrl() {
      return current.url;
    },
    file: null,
    orders: { mayBeSkewed: false },
    forgive: isSynchronous ? nothing : forgetLost,
    against: () => (nemesis) => ({
      failover: async ({ victim }) => {
        const heal = timeline.trouble("server");
        stream.refuse(true);
        // Every other time like the loss of a machine: silently, with sessions that stay open for a moment.
        if (victim % 2 === 0) process.kill(primary.pid, "SIGKILL");
        stream.dropAll();
        network.refuse(true);
        network.dropAll();
        await primary.stop("immediate");
        await ask(standby.url, "select pg_promote(true, 30)");
        current = standby;
        if (!isSynchronous) await raiseFences(standby.url);
        network.retarget(standby.port);
        network.refuse(false);
        heal();
        return nemesis.count("failovers");
      },
    }),
    close: async () => {
      await network.close();
      await stream.close();
      await standby.stop("immediate");
      await primary.stop("immediate");
      fs.rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    },
  };
}

/** Does the operator's part after a failover that may have lost commits, before any process works again. */
async function raiseFences(/** @type {string} */ database) {
  const library = await import(new URL("../build/index.js", import.meta.url).href);
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const holdfast = new library.Holdfast({ database, logger });
  await holdfast.recover({ apply: true });
  await holdfast.stop({ grace: 0 });
}

/** @param {string} url @param {string} sql */
async function ask(url, sql) {
  const client = new pg.Client({ connectionString: url, application_name: "chaos" });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** @param {string} url @param {string} sql */
async function until(url, sql) {
  const deadline = performance.now() + WITHIN_MS;
  while ((await ask(url, sql)).length === 0) {
    if (performance.now() > deadline) throw new Error(`Not within ${WITHIN_MS} ms: ${sql}`);
    await pause(20);
  }
}
