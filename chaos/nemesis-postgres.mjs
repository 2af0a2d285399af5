// Applies faults to a PostgreSQL server, to its sessions and to the network in front of it.

import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { chanceOf } from "./nemesis.mjs";

/** @typedef {import("./nemesis.mjs").Doer} Doer */

/** The number of commits that one fault cuts, one after the other, and how long it waits for them. */
const COMMITS_AT_ONCE = 12;
const COMMITS_WITHIN_MS = 1_500;

/** A transaction that stayed open for so long without a restart of the server is counted separately. */
const LONG_MS = 120_000;

/**
 * @param {{ url: string, server: import("../scripts/postgres.mjs").PostgresServer, seed: number,
 *   proxy: import("./proxy.mjs").Network, timeline: import("./timeline.mjs").Timeline }} params
 *   url: past the proxy
 * @returns {(nemesis: import("./nemesis.mjs").Nemesis) => Record<string, Doer>}
 */
export function againstPostgres({ url, server, seed, proxy, timeline }) {
  const pick = chanceOf(seed);
  return (nemesis) => {
    /** @type {Doer} */
    const silence = async ({ kind, forMs, isForAll }) => {
      const state = kind === "mute" ? "mute" : "dead";
      const { count, end } = proxy.silence({ state, share: isForAll ? 1 : 0.3, pick });
      if (count === 0) return false;
      const heal = timeline.trouble("network");
      const later = nemesis.lasting(forMs).then(() => {
        end();
        heal();
      });
      nemesis.pending.push(later);
      return nemesis.count(kind === "mute" ? "mutes" : "deads", count);
    };
    return {
      mute: silence,
      dead: silence,
      drop: async () => nemesis.count("drops", proxy.dropAll()),
      delay: async ({ forMs, victim }) => {
        proxy.delay(5 + (victim % 60));
        nemesis.pending.push(nemesis.lasting(forMs).then(() => proxy.delay(0)));
        return nemesis.count("delays");
      },
      "commit-cut": async ({ victim }) => {
        const before = proxy.cutsDone;
        const heal = timeline.trouble("commits");
        proxy.cutsToCome += 1 + (victim % COMMITS_AT_ONCE);
        const until = performance.now() + COMMITS_WITHIN_MS;
        while (proxy.cutsToCome > 0 && performance.now() < until && !nemesis.isOver)
          await pause(20);
        proxy.cutsToCome = 0;
        heal();
        return nemesis.count("commitCuts", proxy.cutsDone - before);
      },
      crash: async () => {
        const heal = timeline.trouble("server");
        await server.restart("immediate");
        heal();
        return nemesis.count("crashes");
      },
      cut: async ({ victim, isForAll }) => {
        const client = await connect(url);
        if (!client) return false;
        try {
          const { rows } = await client.query(
            "select pid from pg_stat_activity where application_name = 'holdfast' order by pid",
          );
          const pids = rows.map(({ pid }) => pid);
          const first = victim % Math.max(1, pids.length);
          const cut = isForAll ? pids : pids.slice(first, first + 2);
          await client.query("select pg_terminate_backend(pid) from unnest($1::int[]) pid", [cut]);
          return nemesis.count("cuts", cut.length);
        } catch {
          return false;
        } finally {
          await client.end().catch(() => undefined);
        }
      },
      "open-transaction": async ({ forMs }) => {
        const client = await connect(url);
        if (!client) return false;
        try {
          await client.query("begin isolation level repeatable read");
          await client.query("select count(*) from holdfast.ready");
        } catch {
          return false;
        }
        const since = performance.now();
        const later = nemesis.lasting(forMs).then(async () => {
          const isHeld = await client.query("commit").then(Boolean, () => false);
          if (isHeld && performance.now() - since >= LONG_MS) nemesis.count("openForMinutes");
          await client.end().catch(() => undefined);
        });
        nemesis.pending.push(later);
        return nemesis.count("openTransactions");
      },
    };
  };
}

/** @param {string} url @returns {Promise<pg.Client | null>} */
async function connect(url) {
  const client = new pg.Client({ connectionString: url, application_name: "chaos" });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return client;
  } catch {
    return null;
  }
}
