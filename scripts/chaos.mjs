// `npm run chaos`: real processes on a real PostgreSQL and on one SQLite file, killed, frozen, stopped
// and cut off by a seed; afterwards the history is judged. `npm run chaos -- --seconds 120 --seed 7`

import fs from "node:fs";
import { parseArgs } from "node:util";
import { ensureBuilt } from "./bootstrap.mjs";
import { runCampaign } from "./chaos/campaign.mjs";

const USAGE = `npm run chaos -- [options]
  --database postgres | sqlite | both   where (both)
  --seconds N                           how long faults happen, on each database (60)
  --seed S                              a whole number; the same seed plans the same faults (by the clock)
  --json FILE                           the report as JSON; "-" is stdout`;

const { values } = parseArgs({
  options: {
    database: { type: "string", default: "both" },
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
const isRight =
  ["postgres", "sqlite", "both"].includes(values.database) &&
  Number.isInteger(seconds) &&
  seconds >= 5 &&
  seconds <= 86_400 &&
  Number.isInteger(seed);
if (values.help || !isRight) {
  console.error(USAGE);
  process.exit(values.help ? 0 : 2);
}
if (!ensureBuilt()) process.exit(1);
// Ends through the exit handlers, which end the processes and the server.
for (const name of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.once(name, () => process.exit(130));

/** @type {("postgres" | "sqlite")[]} */
const databases =
  values.database === "both"
    ? ["postgres", "sqlite"]
    : [/** @type {"postgres" | "sqlite"} */ (values.database)];
const reports = [];
for (const database of databases) {
  console.error(`${database}: seed ${seed}, ${seconds} s`);
  const tell = (/** @type {string} */ line) => console.error(line);
  reports.push(await runCampaign({ database, seconds, seed, tell }));
}

const json = `${JSON.stringify({ seed, seconds, reports }, null, 2)}\n`;
if (values.json === "-") process.stdout.write(json);
else {
  if (values.json !== undefined) fs.writeFileSync(values.json, json);
  show(reports);
}
process.exitCode = reports.some(({ violations }) => violations.length > 0) ? 1 : 0;

/** @param {import("./chaos/campaign.mjs").Report[]} all */
function show(all) {
  /** @type {Record<string, (report: import("./chaos/campaign.mjs").Report) => number>} */
  const rows = {
    operations: ({ operations }) => operations.asked ?? 0,
    runs: ({ counts }) => counts.runs,
    ticks: ({ counts }) => counts.ticks,
    "kills (SIGKILL)": ({ faults }) => faults.kills,
    "pauses (SIGSTOP)": ({ faults }) => faults.freezes,
    "  longer than a lease": ({ faults }) => faults.longFreezes,
    "stops (SIGTERM)": ({ faults }) => faults.stops,
    "sessions cut": ({ faults }) => faults.cuts,
    "server restarts": ({ faults }) => faults.crashes,
    "processes started": ({ counts }) => counts.boots,
    takeovers: ({ seen }) => seen.takeovers ?? 0,
    "stale results refused": ({ seen }) => seen.staleRefused ?? 0,
    "leases lost and noticed": ({ seen }) => seen.leasesLost ?? 0,
    "effects repeated": ({ seen }) => seen.repeatedEffects ?? 0,
    "looks at the tables": ({ counts }) => counts.looks,
    violations: ({ violations }) => violations.length,
  };
  console.log(`\n${"".padEnd(26)}${all.map(({ database }) => database.padStart(10)).join("")}`);
  for (const [name, of] of Object.entries(rows))
    console.log(name.padEnd(26) + all.map((each) => String(of(each)).padStart(10)).join(""));
  for (const { database, violations, folder } of all) {
    for (const { check, message } of violations) console.log(`${database} ${check}: ${message}`);
    if (folder) console.log(`${database}: everything that was noted is in ${folder}`);
  }
}
