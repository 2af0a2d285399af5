// `npm test`: every check there is, stage by stage, or the stages named: `npm test -- unit conformance`.
// A failed stage does not stop the others. The last line counts test cases, and one per stage without cases.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt, ensureInstalled, provideChromium, provideRedis } from "./bootstrap.mjs";
import { startPostgres } from "./postgres.mjs";

/**
 * @typedef {object} Stage
 * @property {string} name
 * @property {string[]} command a program of node_modules/.bin or a script, with its arguments
 * @property {boolean} [isVitest] reports its cases as JSON
 * @property {boolean} [needsPostgres]
 * @property {boolean} [wantsRedis]
 * @property {boolean} [wantsChromium]
 * @property {boolean} [isBeside] runs beside the stages after the engine: its tests wait more than they compute
 */
/** @typedef {{ passed: number, failed: number, skipped: number, note?: string, failures?: string[] }} Counts */
/** @typedef {Counts & { stage: Stage, ms: number }} Result */

/** @type {Stage[]} */
const STAGES = [
  { name: "lint", command: ["biome", "check"] },
  { name: "types", command: ["tsc", "--noEmit"] },
  { name: "page-types", command: ["tsc", "-p", "dashboard", "--noEmit"] },
  {
    name: "layering",
    command: ["depcruise", "src", "--config", ".dependency-cruiser.cjs"],
  },
  { name: "dead-code", command: ["knip"] },
  { name: "unit", command: vitest("unit"), isVitest: true },
  {
    name: "conformance",
    command: vitest("conformance"),
    isVitest: true,
    needsPostgres: true,
    wantsRedis: true,
  },
  { name: "engine", command: vitest("engine"), isVitest: true, needsPostgres: true },
  { name: "simulation", command: vitest("simulation"), isVitest: true },
  { name: "cli", command: vitest("cli"), isVitest: true, needsPostgres: true },
  { name: "http", command: vitest("http"), isVitest: true, needsPostgres: true },
  {
    name: "browser",
    command: vitest("browser"),
    isVitest: true,
    needsPostgres: true,
    wantsChromium: true,
  },
  {
    name: "process",
    command: vitest("process"),
    isVitest: true,
    needsPostgres: true,
    wantsRedis: true,
    isBeside: true,
  },
  {
    name: "systems",
    command: vitest("systems"),
    isVitest: true,
    needsPostgres: true,
    wantsRedis: true,
    isBeside: true,
  },
  { name: "examples", command: ["scripts/check-examples.mjs"] },
  { name: "package", command: ["scripts/check-package.mjs"] },
];

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(root);

const chosen = chooseStages(process.argv.slice(2));
ensureInstalled();

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-test-"));
/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
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
const results = [runBuild()];
let postgresProblem = "";
if (chosen.some((stage) => stage.needsPostgres)) postgresProblem = await providePostgres();
const redisProblem = chosen.some((stage) => stage.wantsRedis) ? provideRedis() : "";
const chromiumProblem = chosen.some((stage) => stage.wantsChromium) ? provideChromium() : "";
// Two processors: what computes runs one after the other, what mostly waits runs beside it.
const ordinary = chosen.filter((stage) => !stage.isBeside);
const last = ordinary.findIndex(({ name }) => name === "cli");
const head = last < 0 ? ordinary : ordinary.slice(0, last);
await runAll(head);
const beside = runAll(
  chosen.filter((stage) => stage.isBeside),
  { isQuiet: true },
);
await runAll(ordinary.slice(head.length));
await beside;
await server?.stop();
fs.rmSync(scratch, { recursive: true, force: true });
report();

/**
 * One after the other.
 * @param {Stage[]} stages
 * @param {{ isQuiet?: boolean }} [options] quiet: what they say is shown when they have ended
 */
async function runAll(stages, { isQuiet = false } = {}) {
  for (const stage of stages) {
    if (interruptedBy) return;
    results.push(await runStage(stage, isQuiet));
  }
}

/** @param {string[]} names */
function chooseStages(names) {
  const known = STAGES.map((stage) => stage.name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    console.error(`Unknown stage: ${unknown.join(", ")}. There are: ${known.join(", ")}.`);
    process.exit(2);
  }
  return STAGES.filter((stage) => names.length === 0 || names.includes(stage.name));
}

/** @param {string} project */
function vitest(project) {
  return ["vitest", "run", "--project", project, "--passWithNoTests"];
}

/** @returns {Result} */
function runBuild() {
  const stage = { name: "build", command: ["scripts/build.mjs"] };
  announce(stage);
  const startedAt = performance.now();
  const isDone = ensureBuilt();
  return { stage, ms: performance.now() - startedAt, ...oneCase(isDone) };
}

/** @returns {Promise<string>} why there is no PostgreSQL, or nothing */
async function providePostgres() {
  if (process.env.HOLDFAST_TEST_POSTGRES_URL) return "";
  try {
    // Nobody cuts the power: what is in the page cache outlives any server that a test kills.
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
 * @param {Stage} stage
 * @param {boolean} isQuiet
 * @returns {Promise<Result>}
 */
async function runStage(stage, isQuiet) {
  const reportFile = path.join(scratch, `${stage.name}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
  const said = isQuiet ? path.join(scratch, `${stage.name}.log`) : null;
  if (said === null) announce(stage);
  const startedAt = performance.now();
  const code = await run([...stage.command, ...(stage.isVitest ? reporters : [])], said);
  const ms = performance.now() - startedAt;
  if (said !== null) {
    announce(stage);
    process.stdout.write(fs.readFileSync(said));
  }
  const counts = stage.isVitest ? vitestCounts(reportFile, code) : oneCase(code === 0);
  return { stage, ms, ...counts };
}

/**
 * @param {string[]} command
 * @param {string | null} logFile where what it says goes; null: here
 * @returns {Promise<number>}
 */
function run([program = "", ...args], logFile) {
  const isScript = program.endsWith(".mjs");
  const file = isScript ? program : path.join("node_modules", ".bin", program);
  const log = logFile === null ? null : fs.openSync(logFile, "w");
  /** @type {import("node:child_process").StdioOptions} */
  const stdio = log === null ? "inherit" : ["ignore", log, log];
  return new Promise((resolve) => {
    const child = isScript
      ? spawn(process.execPath, [file, ...args], { stdio })
      : spawn(file, args, { stdio, shell: process.platform === "win32" });
    children.add(child);
    /** @param {number} code */
    const end = (code) => {
      children.delete(child);
      if (log !== null) fs.closeSync(log);
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
  const skipped = seen.numPendingTests + seen.numTodoTests;
  const failures = seen.testResults.flatMap(failuresOf);
  const counts = { passed: seen.numPassedTests, failed: seen.numFailedTests, skipped, failures };
  // A file that cannot be loaded fails without a failed case.
  if (code !== 0 && counts.failed === 0) return { ...counts, failed: 1 };
  if (seen.numTotalTests === 0) return { ...counts, note: "there are no test files" };
  return counts;
}

/**
 * Each failed case of a file with the beginning of its message: a long log may have been cut above.
 * @param {{ name: string, status: string, message?: string, assertionResults: { fullName: string, status: string, failureMessages?: string[] }[] }} file
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

/** @param {string} message */
function beginning(message) {
  return message
    .split("\n")
    .slice(0, 12)
    .map((line) => `    ${line.slice(0, 300)}`)
    .join("\n");
}

/** @param {Stage} stage */
function announce({ name, command }) {
  console.log(`\n▸ ${name}: ${command.join(" ")}`);
}

function report() {
  for (const failure of results.flatMap(({ failures }) => failures ?? []))
    console.log(`\n✗ ${failure}`);
  console.log("\nstage         result     time   cases");
  for (const { stage, ms, passed, failed, skipped, note } of results) {
    const result = failed > 0 ? "FAILED" : passed > 0 ? "passed" : "skipped";
    const cases = `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`;
    const time = `${(ms / 1000).toFixed(1)} s`;
    console.log(
      `${stage.name.padEnd(13)} ${result.padEnd(8)} ${time.padStart(8)}   ${cases}${note ? ` (${note})` : ""}`,
    );
  }

  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { passed, failed, skipped } of results) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
  }
  /** @type {string[]} */
  const missing = results.filter((r) => r.note).map((r) => `${r.stage.name} (${r.note})`);
  if (postgresProblem) {
    const reason = postgresProblem.split("\n")[0];
    console.log(`\n!!! POSTGRESQL WAS NOT TESTED: ${postgresProblem}`);
    missing.push(`every case on PostgreSQL (${reason})`);
    if (process.env.CI) sum.failed += 1;
  } else if (sum.skipped > 0) missing.push(`${sum.skipped} cases that skipped themselves`);
  if (process.env.HOLDFAST_TEST_BRIEF)
    missing.push(
      "some engine suites and the page on PostgreSQL, the checkers of the simulation, editing schedules on the command line (HOLDFAST_TEST_BRIEF is set)",
    );
  if (chromiumProblem) missing.push(`the page in a browser (${chromiumProblem})`);
  if (redisProblem) missing.push(`locks on Redis (${redisProblem})`);
  const left = STAGES.filter((stage) => !results.some((r) => r.stage.name === stage.name));
  if (left.length > 0) {
    const why = interruptedBy ? `interrupted by ${interruptedBy}` : "not asked for";
    missing.push(`${left.map((stage) => stage.name).join(", ")} (${why})`);
  }

  console.log(
    `\nRan: ${results.map((r) => r.stage.name).join(", ")}. Skipped: ${missing.join("; ") || "nothing"}.`,
  );
  const tail = sum.skipped > 0 ? `, ${sum.skipped} skipped` : "";
  console.log(`${sum.passed} passed, ${sum.failed} failed${tail}`);
  process.exitCode = interruptedBy ? 130 : sum.failed > 0 ? 1 : 0;
}
