// Runs `npm run chaos`: kills, freezes, stops and cuts off real processes on PostgreSQL and on a SQLite file by a seed,
// and then checks the history. The results of rounds can add up in a file.

import fs from "node:fs";
import { parseArgs } from "node:util";
import { ensureBuilt } from "../scripts/bootstrap.mjs";
import { runCampaign } from "./campaign.mjs";
import { pictureOf } from "./picture.mjs";
import { kindsOf } from "./plan.mjs";
import {
  OVERDUE_MAX_MS,
  readCampaign,
  TAKEOVER_MAX_MS,
  totalsOf,
  writeCampaign,
} from "./totals.mjs";

/** @typedef {import("./totals.mjs").Campaign} Campaign */

const USAGE = `npm run chaos -- [failover | pooler | soak] [options]
  --database postgres | sqlite | both   the database (both)
  --seconds N                           total duration of the faults on each database (60)
  --seed S                              a whole number; the same seed plans the same faults (from the clock)
  --only KIND,KIND                      only these faults, for example kill,freeze,stop
  --hold N                              keep one transaction open for N seconds (postgres)
  --record                              record every change of a row for the simulator's checkers (slower)
  --pooler                              connect through PgBouncer in transaction mode (postgres)
  --resume FILE                         continue the campaign in FILE, add to it, and draw FILE.svg (one database)
  --json FILE                           write the totals as JSON; "-" is stdout
failover: kill a primary under load and promote its standby
  --times N                             number of failovers (1); --standby sync | async (sync)
pooler: run the conformance suite through PgBouncer in transaction mode, then a minute of chaos
soak: measure growth under default settings on PostgreSQL, with a steady load and a kill every 30 s
  --seconds 7200 --rate N               the duration, and the number of runs enqueued per second (40)
  --json FILE                           is also written after every window; FILE.svg is drawn`;

const ROUND_SECONDS = 180;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    database: { type: "string", default: "both" },
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    only: { type: "string" },
    hold: { type: "string", default: "0" },
    record: { type: "boolean", default: false },
    pooler: { type: "boolean", default: false },
    resume: { type: "string" },
    json: { type: "string" },
    times: { type: "string", default: "1" },
    standby: { type: "string", default: "sync" },
    rate: { type: "string", default: "40" },
    help: { type: "boolean", default: false },
  },
});
const [command = "chaos", ...rest] = positionals;
const seconds = Number(values.seconds);
const seed = Number(values.seed);
const times = Number(values.times);
const rate = Number(values.rate);
const holdSeconds = Number(values.hold);
const known = [...kindsOf("postgres"), ...kindsOf("sqlite")];
const isRight =
  ["chaos", "failover", "pooler", "soak"].includes(command) &&
  rest.length === 0 &&
  ["postgres", "sqlite", "both"].includes(values.database) &&
  ["sync", "async"].includes(values.standby) &&
  !(values.resume !== undefined && values.database === "both") &&
  !(values.pooler && values.database !== "postgres") &&
  (values.only ?? "kill").split(",").every((kind) => known.includes(kind)) &&
  isWhole(seconds, 5, 86_400) &&
  isWhole(times, 1, 1_000) &&
  isWhole(rate, 1, 1_000) &&
  isWhole(holdSeconds, 0, 86_400) &&
  !(holdSeconds > 0 && values.database !== "postgres") &&
  Number.isInteger(seed);
if (values.help || !isRight) {
  console.error(USAGE);
  process.exit(values.help ? 0 : 2);
}
if (!ensureBuilt()) process.exit(1);
// Exits through the exit handlers, which end the processes and the server.
for (const name of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.once(name, () => process.exit(130));
const tell = (/** @type {string} */ line) => console.error(line);

if (command === "chaos") await chaos();
else if (command === "failover") {
  const { failovers } = await import("./failover.mjs");
  const isSynchronous = values.standby === "sync";
  const report = await failovers({ times, seed, isSynchronous, tell });
  printJson(report);
  process.exitCode = report.violations.length > 0 ? 1 : 0;
} else if (command === "soak") await soak();
else {
  const { conformanceThroughPooler } = await import("./pooled-conformance.mjs");
  const code = await conformanceThroughPooler();
  const report = await runCampaign({ database: "postgres", seconds, seed, isPooled: true, tell });
  show([totalsOf({ database: "postgres", seed, isPooled: true, rounds: [report] })]);
  process.exitCode = code !== 0 || report.violations.length > 0 ? 1 : 0;
}

async function chaos() {
  /** @type {("postgres" | "sqlite")[]} */
  const databases =
    values.database === "both"
      ? ["postgres", "sqlite"]
      : [/** @type {"postgres" | "sqlite"} */ (values.database)];
  const all = [];
  for (const database of databases) all.push(await campaignOn(database));
  if (values.json === undefined) show(all);
  else printJson({ seed, seconds, reports: all });
  process.exitCode = all.some(({ verdict }) => verdict.violations > 0) ? 1 : 0;
}

async function soak() {
  const { runSoak } = await import("./soak.mjs");
  const { soakPictureOf } = await import("./soak-picture.mjs");
  const write = (/** @type {any} */ report) => {
    printJson(report);
    if (values.json !== undefined && values.json !== "-")
      fs.writeFileSync(`${values.json}.svg`, soakPictureOf(report));
  };
  const onWindow = values.json === undefined || values.json === "-" ? () => undefined : write;
  const report = await runSoak({ seconds, seed, rate, tell, onWindow });
  write(report);
  for (const { check, message } of report.violations) tell(`${check}: ${message}`);
  const { isHeapFlat, isBounded, isLatencySteady, violations } = report.verdict;
  tell(JSON.stringify(report.verdict, null, 2));
  process.exitCode = isHeapFlat && isBounded && isLatencySteady && violations === 0 ? 0 : 1;
}

/** @param {"postgres" | "sqlite"} database */
async function campaignOn(database) {
  const campaign = readCampaign(values.resume, { database, seed, isPooled: values.pooler });
  const { rounds, isPooled } = campaign;
  const left = () => seconds - rounds.reduce((sum, round) => sum + round.seconds, 0);
  while (left() >= 5) {
    const round = { database, isPooled, seed: seed + rounds.length };
    const roundSeconds = Math.min(ROUND_SECONDS, left());
    tell(`${database}: seed ${round.seed}, ${roundSeconds} s of the remaining ${left()} s`);
    const only = values.only === undefined ? {} : { only: values.only.split(",") };
    const how = { seconds: roundSeconds, isRecorded: values.record, holdSeconds, ...only, tell };
    const report = await runCampaign({ ...round, ...how });
    rounds.push(report);
    for (const { check, message } of report.violations) tell(`${database} ${check}: ${message}`);
    if (report.folder) tell(`${database}: all notes are in ${report.folder}`);
    if (values.resume === undefined) continue;
    writeCampaign(values.resume, campaign);
    fs.writeFileSync(`${values.resume}.svg`, pictureOf(campaign));
  }
  return totalsOf(campaign);
}

/** @param {unknown} report */
function printJson(report) {
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (values.json === undefined || values.json === "-") process.stdout.write(json);
  else fs.writeFileSync(values.json, json);
}

/** @param {ReturnType<typeof totalsOf>[]} all */
function show(all) {
  const line = (/** @type {string} */ name, /** @type {(string | number | undefined)[]} */ cells) =>
    console.log(name.padEnd(34) + cells.map((cell) => String(cell ?? "").padStart(12)).join(""));
  line(
    "",
    all.map(({ database }) => database),
  );
  for (const part of /** @type {const} */ (["counts", "faults", "seen", "duplicates", "verdict"])) {
    const names = new Set(all.flatMap((each) => Object.keys(each[part])));
    for (const name of names)
      line(
        `${part} ${name}`,
        all.map((each) => /** @type {Record<string, number>} */ (each[part])[name]),
      );
  }
  for (const how of /** @type {const} */ (["overdueMs", "unbrokenMs", "ableMs", "wallMs"]))
    for (const share of /** @type {const} */ (["p50", "p99", "max"]))
      line(
        `takeover ${how} ${share}`,
        all.map(({ takeovers }) => takeovers[how][share]),
      );
  line(
    `(lease + poll + 1 s)`,
    all.map(() => TAKEOVER_MAX_MS),
  );
  line(
    `(poll + 1 s: overdueMs)`,
    all.map(() => OVERDUE_MAX_MS),
  );
}

/** @param {number} value @param {number} from @param {number} to */
function isWhole(value, from, to) {
  return Number.isInteger(value) && value >= from && value <= to;
}
