// Makes fresh places to measure in: a database of its own for every measurement, always in the same state. A state that
// takes long to make (a million runs) is made once per contestant and then copied.

import fs from "node:fs";
import path from "node:path";
import pg from "pg";
import { withProcesses } from "./processes.mjs";

/**
 * The content of a database before the measurement begins.
 * @typedef {{ finished?: number, future?: number, pending?: number, synchronous?: "full" | "normal" }} State
 */

const A_DAY_MS = 24 * 60 * 60 * 1000;
const labelOf = (contestant, state) =>
  [contestant.name, ...Object.entries(state).map(([name, value]) => `${name}${value}`)]
    .join("_")
    .replace(/[^a-z0-9]/g, "_");

/** Fills an opened, empty place through the contestant's own interface. */
async function fill(contestant, { finished = 0, future = 0, pending = 0 }, params, afterFinished) {
  await withProcesses(contestant, 1, async (process) => {
    await process.ask("open", params);
    if (finished > 0) {
      await process.ask("seed", { count: finished });
      await process.ask("drain", { count: finished });
      await process.ask("close");
      await afterFinished?.();
      await process.ask("open", params);
    }
    if (future > 0) await process.ask("seed", { count: future, delayMs: A_DAY_MS });
    if (pending > 0) await process.ask("seed", { count: pending });
    await process.ask("close");
  });
}

/** PostgreSQL: one database per measurement, cloned from a template that was vacuumed and analysed. */
export function postgresPlaces(serverUrl) {
  const admin = new pg.Pool({ connectionString: serverUrl, max: 1 });
  // A server that stops ends its sessions; that is no failure of the measurement.
  admin.on("error", () => {});
  const templates = new Map();
  let made = 0;

  const urlOf = (name) => {
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    return url.href;
  };
  const inside = async (name, sql) => {
    const client = new pg.Client({ connectionString: urlOf(name) });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  const template = async (contestant, state) => {
    const name = `t_${labelOf(contestant, state)}`;
    if (!templates.has(name)) {
      await admin.query(`create database ${name}`);
      await fill(contestant, state, { url: urlOf(name), tuning: "throughput" }, () =>
        inside(name, "vacuum analyze"),
      );
      await inside(name, "vacuum analyze");
      templates.set(name, true);
    }
    return name;
  };

  return {
    async version() {
      const { rows } = await admin.query("show server_version");
      return rows[0].server_version;
    },
    /** The checkpoint first: every measurement begins at the same distance from the next one. */
    async fresh(contestant, state) {
      const source = await template(contestant, state);
      const name = `m_${++made}_${contestant.name.replace(/[^a-z0-9]/g, "_")}`;
      await admin.query("checkpoint");
      await admin.query(`create database ${name} template ${source} strategy wal_log`);
      return { url: urlOf(name), drop: () => admin.query(`drop database ${name} with (force)`) };
    },
    /** Where processes warm up; one per contestant, never measured. */
    async warm(contestant) {
      return { url: urlOf(await template(contestant, { pending: 0 })) };
    },
    /** A second session in a place, for the scenario's own statements. */
    async session(url) {
      const client = new pg.Client({ connectionString: url });
      client.on("error", () => {});
      await client.connect();
      return client;
    },
    async close() {
      await admin.end();
    },
  };
}

/** Redis: database 0 is flushed and filled anew for every measurement, database 1 is for warming up. */
export function redisPlaces(serverUrl, flush) {
  return {
    async fresh(contestant, state) {
      await flush();
      const params = { url: `${serverUrl}/0`, tuning: "throughput" };
      if (state.pending) await fill(contestant, state, params);
      return { url: params.url, drop: async () => {} };
    },
    async warm() {
      return { url: `${serverUrl}/1` };
    },
    async close() {},
  };
}

/** SQLite: one file in a folder of its own per measurement, copied from one that was closed cleanly. */
export function sqlitePlaces(folder) {
  const templates = new Set();
  let made = 0;
  return {
    async fresh(contestant, state) {
      const source = path.join(folder, labelOf(contestant, state));
      if (!templates.has(source)) {
        fs.mkdirSync(source);
        const url = `sqlite:${path.join(source, "runs.db")}`;
        await fill(contestant, state, { url, synchronous: state.synchronous });
        templates.add(source);
      }
      const copy = path.join(folder, `m_${++made}`);
      fs.cpSync(source, copy, { recursive: true });
      return {
        url: `sqlite:${path.join(copy, "runs.db")}`,
        drop: async () => fs.rmSync(copy, { recursive: true, force: true }),
      };
    },
    async warm() {
      const own = path.join(folder, `w_${++made}`);
      fs.mkdirSync(own);
      return { url: `sqlite:${path.join(own, "runs.db")}` };
    },
    async close() {},
  };
}
