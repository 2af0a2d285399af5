// Measures the cost of a claim beside more and more runs that wait, or that have ended: on PostgreSQL the buffers that the
// statements touch (pg_stat_statements), on SQLite the pages that a process with an empty cache reads from the file.

import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { ALL_DAYS, FROM_THE_START } from "../../build/store/postgres/claim-hints.js";
import { claimsOf } from "../../build/store/postgres/exchange.js";
import { settlementColumns } from "../../build/store/postgres/settlements.js";
import { EXCHANGE } from "../../build/store/postgres/sql/exchange.js";
import { numbered } from "../../build/store/sql/template.js";
import { SETTINGS } from "../scenarios/explain.mjs";
import { fillPostgres, fillSqlite, HISTORY_DAYS, JOB } from "./filled.mjs";
import { forgetStatements, statementsOf } from "./statements.mjs";

const MANY = 1000;
/** One file is not made for more, and filling it takes longer than everything else. */
const SQLITE_MAX = 1e6;
const COLD_CLAIM = fileURLToPath(new URL("cold-claim.mjs", import.meta.url));
const DIALECT = {
  name: (plain) => `"holdfast".${plain}`,
  now: "(extract(epoch from clock_timestamp()) * 1000)::bigint",
};
const TITLES = {
  backlog: "Work of a claim beside runs that wait",
  history: `Work of a claim beside runs that have ended, in ${HISTORY_DAYS} days of history`,
};

export const claimCurve = (kind) => ({
  async measure({ serverUrl, folder, max, say }) {
    const sizes = [1e3, 1e4, 1e5, 1e6, 1e7].filter((size) => size <= max);
    const figures = { postgres: [], sqlite: [] };
    for (const count of sizes) {
      figures.postgres.push({ count, ...(await onPostgres({ serverUrl, kind, count })) });
      say(`${kind} ${count} PostgreSQL ${JSON.stringify(figures.postgres.at(-1))}`);
      if (count > SQLITE_MAX) continue;
      figures.sqlite.push({ count, ...(await onSqlite({ folder, kind, count })) });
      say(`${kind} ${count} SQLite ${JSON.stringify(figures.sqlite.at(-1))}`);
    }
    return figures;
  },

  draw({ postgres }) {
    const line = (name, figure) => ({
      name,
      points: postgres.map((row) => [row.count, row[figure]]),
    });
    return {
      [kind]: {
        title: TITLES[kind],
        note: "Buffers that a statement touches on PostgreSQL",
        xName: kind === "backlog" ? "runs that wait" : "runs that have ended",
        yName: "buffers",
        isLogY: true,
        lines: [
          line("a claim of one run", "claimOne"),
          line("settle and claim 1,000, each", "exchangeEach"),
          line("claim 1,000, each", "claimEach"),
        ],
      },
    };
  },
});

async function onPostgres({ serverUrl, kind, count }) {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  const name = `scale_${kind}_${count}`;
  await admin.query(`create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  try {
    await fillPostgres({ url: url.href, kind, count });
    const session = new pg.Client({ connectionString: url.href });
    await session.connect();
    const figures = await costsIn(session);
    const { rows } = await session.query(
      "select pg_database_size(current_database())::float8 as n",
    );
    await session.end();
    return { ...figures, mebibytes: Math.round(rows[0].n / 2 ** 20) };
  } finally {
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  }
}

async function costsIn(session) {
  await session.query(SETTINGS);
  const cost = async (template, more) => {
    const { text, values } = statement(template, more);
    await forgetStatements(session);
    await session.query("begin");
    await session.query(text, values);
    await session.query("rollback");
    return (await statementsOf(session)).buffers;
  };
  // The first one sets what readers note in passing; the second one counts.
  await cost(EXCHANGE.claim, { limit: MANY });
  const claimOne = await cost(EXCHANGE.claim, { limit: 1 });
  const claimMany = await cost(EXCHANGE.claim, { limit: MANY });
  const { text, values } = statement(EXCHANGE.claim, { limit: MANY });
  const { rows } = await session.query(text, values);
  const settled = { limit: MANY, ...settlementsOf(rows[0]) };
  const exchange = await cost(EXCHANGE.finishAndClaim, settled);
  const settle = await cost(EXCHANGE.finishAndClaim, { ...settled, limit: 0 });
  return {
    claimOne,
    claimEach: claimMany / MANY,
    exchangeEach: exchange / MANY,
    settleEach: settle / MANY,
  };
}

function statement(template, more) {
  const { text, parameters } = numbered(template, DIALECT);
  const values = {
    jobs: [JOB],
    queues: null,
    apart: [],
    isNamed: false,
    suspect: false,
    low: FROM_THE_START,
    ...ALL_DAYS,
    holder: 1,
    shard: 2,
    token: "00000000-0000-4000-8000-000000000000",
    ...more,
  };
  return { text, values: parameters.map((name) => values[name]) };
}

/** All claimed runs, completed. */
function settlementsOf(row) {
  const settlements = claimsOf(row).flatMap(({ fence, isLimited, runs }) =>
    runs.map(({ id, mode, schedule, batch }) => ({
      ...{ id, fence, mode, schedule, batch, isLimited },
      ...{ ranMs: 1, error: null, to: "completed", result: null },
    })),
  );
  return settlementColumns(settlements);
}

async function onSqlite({ folder, kind, count }) {
  const file = path.join(folder, `${kind}-${count}.db`);
  await fillSqlite({ file, kind, count });
  const { status, stdout, stderr } = spawnSync(process.execPath, [COLD_CLAIM, file], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`The claim on SQLite failed. ${stderr}`);
  return JSON.parse(stdout);
}
