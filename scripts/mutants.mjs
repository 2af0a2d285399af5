// Runs `npm run mutants`: it puts one deliberate bug at a time (test/mutants) into a copy of the repository and runs
// the suites that must notice it. It fails if a bug survives, and never touches the product itself. A suite must first
// pass without any bug; otherwise its failures would prove nothing.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MUTANTS, mutated, occurrences } from "../test/mutants/list.mjs";
import { SUITES } from "../test/mutants/suites.mjs";
import { startPostgres } from "./postgres.mjs";

/** @typedef {import("../test/mutants/list.mjs").Mutant} Mutant */
/** @typedef {import("../test/mutants/list.mjs").SuiteName} SuiteName */
/** @typedef {{ test: string, message: string }} Failure */
/** @typedef {{ mutant: Mutant, killer: SuiteName | null, failure: Failure | null, ms: number }} Verdict */

const USAGE = `npm run mutants -- [options]
  --only name[,name]  these mutants alone; part of a name will do
  --suite name        show them to this suite instead of their own ones
  --list              show what there is and run nothing
  --check             only see whether every mutant still fits the code
  --no-baseline       do not run the suites without a bug first
  --json              the verdicts as JSON`;

const SUITE_TIMEOUT_MS = 240_000;
/** The compiler would find it. */
const UNKNOWN_NAME = /^\w+ is not defined$/;
/** The files that the suites need; the copy has no others. */
const COPIED = [
  ...["src", "test", "scripts", "package.json"],
  ...["tsconfig.json", "tsconfig.build.json", "vitest.config.ts"],
];

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const options = readOptions();
const chosen = choose(options.only);

if (options.list) list();
else if (options.check) check();
else await run();

function readOptions() {
  try {
    return parseArgs({
      options: {
        only: { type: "string", multiple: true, default: [] },
        suite: { type: "string" },
        list: { type: "boolean", default: false },
        check: { type: "boolean", default: false },
        "no-baseline": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`);
    process.exit(2);
  }
}

/** @param {readonly string[]} only */
function choose(only) {
  if (options.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const parts = only.flatMap((each) => each.split(",")).filter((part) => part !== "");
  const isNamed = (/** @type {string} */ part) => MUTANTS.some(({ name }) => name === part);
  const fits = (/** @type {string} */ part, /** @type {string} */ name) =>
    isNamed(part) ? name === part : name.includes(part);
  for (const part of parts) {
    if (MUTANTS.some(({ name }) => fits(part, name))) continue;
    console.error(`There is no mutant "${part}"; --list shows those there are.`);
    process.exit(2);
  }
  const { suite } = options;
  if (suite !== undefined && !isSuite(suite)) {
    console.error(`There is no suite "${suite}". There are: ${Object.keys(SUITES).join("; ")}.`);
    process.exit(2);
  }
  const named = MUTANTS.filter(
    ({ name }) => parts.length === 0 || parts.some((part) => fits(part, name)),
  );
  return suite === undefined ? named : named.map((mutant) => ({ ...mutant, suites: [suite] }));
}

/**
 * @param {string} name
 * @returns {name is SuiteName}
 */
function isSuite(name) {
  return name in SUITES;
}

function list() {
  if (options.json) {
    console.log(JSON.stringify(chosen, null, 2));
    return;
  }
  for (const { name, promise, file, suites } of chosen)
    console.log(
      `${name}\n  breaks   ${promise}\n  in       ${file}\n  dies by  ${suites.join("; ")}`,
    );
  console.log(`${chosen.length} mutants`);
}

function check() {
  let wrong = 0;
  for (const { name, file, find } of chosen) {
    const times = occurrences(fs.readFileSync(path.join(root, file), "utf8"), find);
    if (times === 1) continue;
    wrong += 1;
    console.error(`${name}: its text occurs ${times} times in ${file}, not once.`);
  }
  console.log(`${chosen.length - wrong} of ${chosen.length} mutants fit the code`);
  process.exitCode = wrong > 0 ? 1 : 0;
}

async function run() {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-mutants-"));
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let current;
  for (const name of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    process.once(name, () => {
      if (current) killAll(current);
      fs.rmSync(copy, { recursive: true, force: true });
      process.exit(130);
    });
  }
  const server = await providePostgres();
  try {
    makeCopy(copy);
    const verdicts = await judgeAll({ copy, onChild: (child) => (current = child) });
    report(verdicts);
  } finally {
    await server?.stop();
    fs.rmSync(copy, { recursive: true, force: true });
  }
}

async function providePostgres() {
  const isNeeded = suitesOf(chosen).some((name) => "needsPostgres" in SUITES[name]);
  if (!isNeeded || process.env.HOLDFAST_TEST_POSTGRES_URL) return null;
  const server = await startPostgres({ settings: { max_connections: 200 } });
  process.env.HOLDFAST_TEST_POSTGRES_URL = server.url;
  return server;
}

/** @param {string} copy */
function makeCopy(copy) {
  for (const name of COPIED)
    fs.cpSync(path.join(root, name), path.join(copy, name), { recursive: true });
  fs.symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"), "junction");
}

/**
 * @param {{ copy: string, onChild: (child: import("node:child_process").ChildProcess) => void }} params
 * @returns {Promise<Verdict[]>}
 */
async function judgeAll({ copy, onChild }) {
  for (const suite of options["no-baseline"] ? [] : suitesOf(chosen)) {
    const failure = await runSuite({ suite, copy, onChild });
    if (failure)
      throw new Error(
        `Suite "${suite}" fails without a mutant: ${failure.test}: ${failure.message}`,
      );
    say(`passes without a mutant: ${suite}`);
  }
  /** @type {Verdict[]} */
  const verdicts = [];
  for (const mutant of chosen) {
    const file = path.join(copy, mutant.file);
    const text = fs.readFileSync(file, "utf8");
    const startedAt = performance.now();
    fs.writeFileSync(file, mutated(text, mutant));
    /** @type {Verdict} */
    let verdict = { mutant, killer: null, failure: null, ms: 0 };
    for (const suite of mutant.suites) {
      const failure = await runSuite({ suite, copy, onChild });
      if (!failure) continue;
      if (UNKNOWN_NAME.test(failure.message))
        throw new Error(
          `Mutant "${mutant.name}" is no bug that could be written: ${failure.message}.`,
        );
      verdict = { ...verdict, killer: suite, failure };
      break;
    }
    fs.writeFileSync(file, text);
    verdicts.push({ ...verdict, ms: Math.round(performance.now() - startedAt) });
    say(verdict.failure ? killed(verdict) : `SURVIVES  ${mutant.name} (${mutant.promise})`);
  }
  return verdicts;
}

/** @param {Verdict} verdict */
function killed({ mutant, killer, failure }) {
  return `killed    ${mutant.name}\n          by ${killer}: ${failure?.test}\n          ${failure?.message}`;
}

/**
 * Returns the first failure of a suite, or null if all tests passed.
 * @param {{
 *   suite: SuiteName,
 *   copy: string,
 *   onChild: (child: import("node:child_process").ChildProcess) => void,
 * }} params
 * @returns {Promise<Failure | null>}
 */
async function runSuite({ suite, copy, onChild }) {
  const foundFile = path.join(copy, "found.json");
  fs.rmSync(foundFile, { force: true });
  const reporter = path.join(copy, "test/mutants/first-failure-reporter.mjs");
  const command = ["run", ...SUITES[suite].args, "--bail=1", `--reporter=${reporter}`];
  const { code, output } = await vitest({ command, suite, copy, foundFile, onChild });
  if (code === null) return { test: "(the suite as a whole)", message: "did not end in time" };
  if (!fs.existsSync(foundFile)) throw new Error(`Suite "${suite}" did not begin.\n${output}`);
  /** @type {import("../test/mutants/first-failure-reporter.mjs").Found} */
  const { passed, failures, unloadable, unhandled } = JSON.parse(
    fs.readFileSync(foundFile, "utf8"),
  );
  const [first] = failures;
  if (first) return { test: first.test, message: firstLine(first.message) };
  // A bug that prevents loading the code could never reach a release.
  if (unloadable.length > 0)
    throw new Error(`Suite "${suite}" cannot be loaded.\n${unloadable.join("\n")}`);
  if (code !== 0)
    return { test: "(outside of a test)", message: firstLine(unhandled[0] ?? output.trim()) };
  if (passed === 0) throw new Error(`Suite "${suite}" ran no test.\n${output}`);
  return null;
}

/**
 * @param {{
 *   command: string[],
 *   suite: SuiteName,
 *   copy: string,
 *   foundFile: string,
 *   onChild: (child: import("node:child_process").ChildProcess) => void,
 * }} params
 * @returns {Promise<{ code: number | null, output: string }>} no code: it was ended for taking too long
 */
function vitest({ command, suite, copy, foundFile, onChild }) {
  /** @type {import("../test/mutants/suites.mjs").Suite} */
  const settings = SUITES[suite];
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, ...settings.env, MUTANTS_FOUND: foundFile };
  if (!settings.needsPostgres) {
    // The set-up of the projects would start a server, or refuse to run without one under CI.
    delete env.CI;
    delete env.HOLDFAST_TEST_POSTGRES_URL;
    env.HOLDFAST_TEST_POSTGRES_PROBLEM = "this suite needs none";
  }
  const program = path.join(root, "node_modules", "vitest", "vitest.mjs");
  return new Promise((resolve, reject) => {
    const detached = process.platform !== "win32";
    const child = spawn(process.execPath, [program, ...command], { cwd: copy, env, detached });
    onChild(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (data) => {
        output += data;
      });
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      killAll(child);
    }, SUITE_TIMEOUT_MS);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code: isOver ? null : (code ?? 1), output });
    });
  });
}

/**
 * Ends its workers too: a bug may leave one in an endless loop.
 * @param {import("node:child_process").ChildProcess} child
 */
function killAll(child) {
  if (child.pid === undefined || child.exitCode !== null) return;
  if (process.platform === "win32") child.kill("SIGKILL");
  else process.kill(-child.pid, "SIGKILL");
}

/** @param {readonly Verdict[]} verdicts */
function report(verdicts) {
  const survivors = verdicts.filter(({ killer }) => killer === null);
  if (options.json) {
    const rows = verdicts.map(({ mutant: { name, promise, file }, killer, failure, ms }) => ({
      name,
      promise,
      file,
      killer,
      test: failure?.test ?? null,
      message: failure?.message ?? null,
      ms,
    }));
    console.log(JSON.stringify(rows, null, 2));
  } else {
    console.log(`\n${verdicts.length - survivors.length} of ${verdicts.length} mutants killed`);
    if (survivors.length > 0)
      console.log(`survivors: ${survivors.map(({ mutant }) => mutant.name).join(", ")}`);
  }
  process.exitCode = survivors.length > 0 ? 1 : 0;
}

/** @param {readonly Mutant[]} mutants */
function suitesOf(mutants) {
  return [...new Set(mutants.flatMap(({ suites }) => suites))];
}

/** Prints progress; with --json only the result goes to the standard output. @param {string} text */
function say(text) {
  if (options.json) console.error(text);
  else console.log(text);
}

/** @param {string} text */
function firstLine(text) {
  return (text.split("\n")[0] ?? "").slice(0, 200);
}
