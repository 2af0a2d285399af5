// Runs the checks, stage by stage: `npm test` those of every change, `npm run test:all` those and then the rest, and
// `npm test -- unit conformance` all of the named stages. A failed stage does not stop the others. The last line counts
// test cases, and one for each stage without cases. With --verbose it prints what each stage printed.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  ensureBuilt,
  ensureInstalled,
  provideChromium,
  provideEtcd,
  provideRedis,
} from "./bootstrap.mjs";
import { startPostgres } from "./postgres.mjs";
import { REST, STAGES } from "./stages.mjs";

/** @typedef {import("./stages.mjs").Stage} Stage */
/** @typedef {{ passed: number, failed: number, skipped: number, note?: string, failures?: string[], skips?: string[], slowest?: string[] }} Counts */
/** @typedef {Counts & { name: string, ms: number }} Result */
/** @typedef {{ name: string, startTime: number, endTime: number, status: string, message?: string, assertionResults: { fullName: string, status: string, failureMessages?: string[] }[] }} FileReport */

const HEARTBEAT_MS = 60_000;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(root);

const startedMs = performance.now();
const { parts, isVerbose } = readArguments(process.argv.slice(2));
const chosen = parts.flat();
ensureInstalled();

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-test-"));
/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
/** @type {Map<string, number>} */
const running = new Map();
/** @type {import("./postgres.mjs").PostgresServer | undefined} */
let server;
/** @type {NodeJS.Signals | undefined} */
let interruptedBy;
for (const name of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.on(name, () => {
    interruptedBy = name;
    for (const child of children) child.kill(name);
  });
}

/** @type {Result[]} */
const results = [];
await timed("build", async () => oneCase(ensureBuilt()));
const postgresProblem = chosen.some((stage) => stage.needsPostgres) ? await providePostgres() : "";
// Their installation takes a minute on a new machine; the stages that want them wait for it.
const redis = chosen.some((stage) => stage.wantsRedis) ? provideRedis() : Promise.resolve("");
const etcd = chosen.some((stage) => stage.wantsEtcd)
  ? redis.then(provideEtcd)
  : Promise.resolve("");
const chromium = chosen.some((stage) => stage.wantsChromium)
  ? Promise.all([redis, etcd]).then(provideChromium)
  : Promise.resolve("");
const heartbeat = setInterval(
  () => console.log(`  ${clock()}  still running: ${inHand()}`),
  HEARTBEAT_MS,
);
for (const part of parts)
  await Promise.all([1, 2].map((lane) => runAll(part.filter((stage) => stage.lane === lane))));
clearInterval(heartbeat);
await server?.stop();
fs.rmSync(scratch, { recursive: true, force: true });
await report();

/** @param {string[]} args */
function readArguments(args) {
  const names = args.filter((arg) => !arg.startsWith("--"));
  const flags = args.filter((arg) => arg.startsWith("--"));
  const known = STAGES.map((stage) => stage.name);
  const unknown = [
    ...names.filter((name) => !known.includes(name)),
    ...flags.filter((flag) => !["--all", "--rest", "--verbose"].includes(flag)),
  ];
  if (unknown.length > 0) {
    console.error(
      `Unknown: ${unknown.join(", ")}. There are the stages ${known.join(", ")} and the options --all, --rest, --verbose.`,
    );
    process.exit(2);
  }
  const isVerbose = flags.includes("--verbose");
  if (names.length > 0)
    return { parts: [STAGES.filter((stage) => names.includes(stage.name))], isVerbose };
  const first = STAGES.filter(({ isRest }) => !isRest).map((stage) => ({
    ...stage,
    command: [...stage.command, ...restOf(stage).flatMap((file) => ["--exclude", file])],
  }));
  const rest = STAGES.filter((stage) => stage.isRest || restOf(stage).length > 0).map((stage) => ({
    ...stage,
    name: `${stage.name}, rest`,
    command: [...stage.command, ...restOf(stage)],
  }));
  if (flags.includes("--rest")) return { parts: [rest], isVerbose };
  return { parts: flags.includes("--all") ? [first, rest] : [first], isVerbose };
}

/** @param {Stage} stage */
function restOf({ project = "" }) {
  return REST[project] ?? [];
}

/** @returns {Promise<string>} why there is no PostgreSQL, or nothing */
async function providePostgres() {
  if (process.env.HOLDFAST_TEST_POSTGRES_URL) return "";
  try {
    // No test cuts the power, and the page cache outlives any server that a test kills.
    server = await startPostgres({
      settings: { max_connections: 200, fsync: false, full_page_writes: false },
    });
    process.env.HOLDFAST_TEST_POSTGRES_URL = server.url;
    return "";
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    process.env.HOLDFAST_TEST_POSTGRES_PROBLEM = problem;
    return problem;
  }
}

/**
 * One after the other.
 * @param {Stage[]} stages
 */
async function runAll(stages) {
  for (const stage of stages) {
    if (interruptedBy) return;
    if (stage.wantsRedis) await redis;
    if (stage.wantsEtcd) await etcd;
    if (stage.wantsChromium) await chromium;
    await timed(stage.name, () => runStage(stage));
  }
}

/**
 * @param {string} name
 * @param {() => Promise<Counts>} work
 */
async function timed(name, work) {
  running.set(name, performance.now());
  const counts = await work();
  const ms = performance.now() - (running.get(name) ?? 0);
  running.delete(name);
  results.push({ name, ms, ...counts });
  const { passed, failed, skipped } = counts;
  const cases = [`${passed} passed`, ...(failed ? [`${failed} FAILED`] : [])];
  if (skipped) cases.push(`${skipped} skipped`);
  const now = running.size > 0 ? `   (now: ${[...running.keys()].join(", ")})` : "";
  console.log(
    `${failed ? "✗" : "✓"} ${clock()}  ${name.padEnd(18)} ${seconds(ms).padStart(8)}   ${cases.join(", ")}${now}`,
  );
}

/**
 * @param {Stage} stage
 * @returns {Promise<Counts>}
 */
async function runStage({ name, command, project }) {
  const file = path.join(scratch, name.replace(/\W+/g, "-"));
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}.json`];
  const code = await run([...command, ...(project ? reporters : [])], `${file}.log`);
  const counts = project ? vitestCounts(`${file}.json`, code) : oneCase(code === 0);
  if (isVerbose || counts.failed > 0) {
    console.log(`\n▸ ${name}: ${command.slice(0, 4).join(" ")}`);
    process.stdout.write(fs.readFileSync(`${file}.log`));
  }
  return counts;
}

/**
 * @param {string[]} command
 * @param {string} logFile where what it prints goes
 * @returns {Promise<number>}
 */
function run([program = "", ...args], logFile) {
  const isScript = program.endsWith(".mjs");
  const file = isScript ? program : path.join("node_modules", ".bin", program);
  const log = fs.openSync(logFile, "w");
  /** @type {import("node:child_process").StdioOptions} */
  const stdio = ["ignore", log, log];
  return new Promise((resolve) => {
    const child = isScript
      ? spawn(process.execPath, [file, ...args], { stdio })
      : spawn(file, args, { stdio, shell: process.platform === "win32" });
    children.add(child);
    /** @param {number} code */
    const end = (code) => {
      children.delete(child);
      fs.closeSync(log);
      resolve(code);
    };
    child.once("error", (error) => {
      console.error(error.message);
      end(1);
    });
    child.once("exit", (code) => end(code ?? 1));
  });
}

/** @param {boolean} isPassed @returns {Counts} */
function oneCase(isPassed) {
  return { passed: isPassed ? 1 : 0, failed: isPassed ? 0 : 1, skipped: 0 };
}

/**
 * @param {string} file
 * @param {number} code
 * @returns {Counts}
 */
function vitestCounts(file, code) {
  if (!fs.existsSync(file)) return { ...oneCase(code === 0), note: "no report was written" };
  const seen = JSON.parse(fs.readFileSync(file, "utf8"));
  /** @type {FileReport[]} */
  const files = seen.testResults;
  const skipped = seen.numPendingTests + seen.numTodoTests;
  const counts = {
    passed: seen.numPassedTests,
    failed: seen.numFailedTests,
    skipped,
    failures: files.flatMap(failuresOf),
    skips: files.flatMap(skipsOf),
    slowest: slowestOf(files),
  };
  // A file that cannot be loaded fails without a failed case.
  if (code !== 0 && counts.failed === 0) return { ...counts, failed: 1 };
  if (seen.numTotalTests === 0) return { ...counts, note: "there are no test files" };
  return counts;
}

/**
 * Each failed case of a file with the beginning of its message: a long log may have been cut above.
 * @param {FileReport} file
 * @returns {string[]}
 */
function failuresOf(file) {
  const where = path.relative(root, file.name);
  const failed = file.assertionResults.filter(({ status }) => status === "failed");
  if (failed.length === 0 && file.status === "failed")
    return [`${where}\n${beginning(file.message ?? "the file could not be run")}`];
  return failed.map(
    ({ fullName, failureMessages = [] }) =>
      `${where} > ${fullName}\n${beginning(failureMessages.join("\n"))}`,
  );
}

/** @param {FileReport} file @returns {string[]} how many cases of the file skipped themselves, if any did */
function skipsOf({ name, assertionResults }) {
  const count = assertionResults.filter(({ status }) => !/^(passed|failed)$/.test(status)).length;
  return count > 0 ? [`${count} in ${path.relative(root, name)}`] : [];
}

/** @param {FileReport[]} files */
function slowestOf(files) {
  return files
    .map(({ name, startTime, endTime }) => ({ name, ms: endTime - startTime }))
    .sort((one, other) => other.ms - one.ms)
    .slice(0, 3)
    .map(({ name, ms }) => `${path.basename(name, ".test.ts")} ${seconds(ms)}`);
}

/** @param {string} message */
function beginning(message) {
  return message
    .split("\n")
    .slice(0, 12)
    .map((line) => `    ${line.slice(0, 300)}`)
    .join("\n");
}

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** How long it has taken so far, as 2:07. */
function clock() {
  const all = Math.round((performance.now() - startedMs) / 1000);
  return `${Math.floor(all / 60)}:${String(all % 60).padStart(2, "0")}`.padStart(5);
}

function inHand() {
  return [...running]
    .map(([name, since]) => `${name} (${seconds(performance.now() - since)})`)
    .join(", ");
}

async function report() {
  for (const failure of results.flatMap(({ failures }) => failures ?? []))
    console.log(`\n✗ ${failure}`);
  console.log("\nstage                result     time   cases");
  for (const { name, ms, passed, failed, skipped, note, slowest = [] } of results) {
    const result = failed > 0 ? "FAILED" : passed > 0 ? "passed" : "skipped";
    const cases = `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`;
    const notes = [
      ...(note ? [note] : []),
      ...(slowest.length > 0 ? [`slowest: ${slowest.join(", ")}`] : []),
    ];
    console.log(
      `${name.padEnd(20)} ${result.padEnd(8)} ${seconds(ms).padStart(8)}   ${cases}${notes.length > 0 ? ` (${notes.join("; ")})` : ""}`,
    );
  }

  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { passed, failed, skipped } of results) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
  }
  const missing = await reasons(sum);
  console.log(
    `\nRan for ${clock().trim()} minutes: ${results.map(({ name }) => name.replace(", ", "/")).join(", ")}.`,
  );
  if (missing.length === 0) console.log("Skipped: nothing.");
  else console.log(`Skipped:\n${missing.map((each) => `  ${each}`).join("\n")}`);
  const tail = sum.skipped > 0 ? `, ${sum.skipped} skipped` : "";
  console.log(`${sum.passed} passed, ${sum.failed} failed${tail}`);
  process.exitCode = interruptedBy ? 130 : sum.failed > 0 ? 1 : 0;
}

/**
 * Prints which stages were skipped, and why.
 * @param {{ failed: number }} sum grows by one if PostgreSQL is missing where it must not be
 */
async function reasons(sum) {
  const missing = results.filter(({ note }) => note).map(({ name, note }) => `${name}: ${note}`);
  if (postgresProblem) {
    console.log(`\n!!! POSTGRESQL WAS NOT TESTED: ${postgresProblem}`);
    missing.push(`every case on PostgreSQL: ${postgresProblem.split("\n")[0]}`);
    if (process.env.CI) sum.failed += 1;
  }
  if (await chromium) missing.push(`the page in a browser: ${await chromium}`);
  if (await redis) missing.push(`locks on Redis: ${await redis}`);
  if (await etcd) missing.push(`locks in etcd: ${await etcd}`);
  const skips = results.flatMap(({ skips = [] }) => skips);
  if (skips.length > 0)
    missing.push(
      `cases for what this machine does not have, which each file names: ${skips.join(", ")}`,
    );
  const done = new Set(results.map(({ name }) => name));
  if (interruptedBy) {
    const left = chosen.filter(({ name }) => !done.has(name)).map(({ name }) => name);
    missing.push(`interrupted by ${interruptedBy}: ${left.join(", ")}`);
  }
  const isFirst = STAGES.every(
    ({ name, isRest }) => isRest || chosen.some((stage) => stage.name === name),
  );
  const hasRest = chosen.some(({ name }) => name.endsWith(", rest"));
  if (isFirst && !hasRest) {
    const kept = [
      ...STAGES.filter(({ isRest }) => isRest).map(({ name }) => name),
      ...Object.entries(REST).map(([project, files]) => `${files.length} files of ${project}`),
    ];
    missing.push(`what \`npm run test:all\` adds: ${kept.join(", ")}`);
  } else if (!isFirst) missing.push("every other stage, which nobody asked for");
  return missing;
}
