// Runs a long campaign of simulated seeds: `node scripts/simulate.mjs --seeds 100000 [--from 1] [--minutes 60]
// [--processes 2] [--file campaign.json]`. The file keeps the results with their commits, so that the next call
// continues from there, also on another machine. The file of the published figures is `test/simulation/campaign.json`.
// Exit 1: a promise was broken, or a rare state that so many seeds should have reached was not.

import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";
import { LEAN } from "./lean-node.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(root);
const USAGE = `node scripts/simulate.mjs [options]
  --seeds 100000     how many, with those that the file has already
  --from 1           the first of them
  --minutes 60       stop after this time; the next call goes on
  --processes 2      how many work at once
  --file name.json   where what was done is kept
  --help             this`;
const options = readOptions();
ensureInstalled();
if (!ensureBuilt()) process.exit(3);
/** @type {typeof import("../src/testing/simulator/index.js")} */
const simulator = await import(path.join(root, "build/testing/simulator/index.js"));

/**
 * @typedef {object} Kept
 * @property {number} from
 * @property {number} done how many seeds
 * @property {number} seconds
 * @property {number} virtualMs
 * @property {number} faults
 * @property {number} operations
 * @property {number} calls
 * @property {Record<string, number>} counters
 * @property {Record<string, number>} commits how many seeds with which
 * @property {Violation[]} violations
 * @property {Violation[]} mended what was broken by seeds that break nothing any more
 */

/** @typedef {import("../src/testing/simulator/index.js").CampaignReport["violations"][number]} Violation */

/** @type {Kept} */
const kept = {
  from: options.from ?? 1,
  done: 0,
  seconds: 0,
  virtualMs: 0,
  faults: 0,
  operations: 0,
  calls: 0,
  counters: {},
  commits: {},
  violations: [],
  mended: [],
  ...(fs.existsSync(options.file) ? JSON.parse(fs.readFileSync(options.file, "utf8")) : {}),
};
if (options.from !== null && options.from !== kept.from)
  refuse(
    `${options.file} begins with seed ${kept.from}: leave --from out, or name another --file.`,
  );
await runBrokenAgain();
const wanted = options.seeds;
const endMs = performance.now() + options.minutes * 60_000;
const PORTION = 25;
const commit = commitOfNow();
const children = Array.from({ length: options.processes }, () =>
  fork(path.join(root, "scripts/simulate-portion.mjs"), {
    execArgv: [...process.execArgv, ...LEAN],
  }),
);
for (const child of children) child.once("exit", () => process.exit(3));
await Promise.all(children.map((child) => once(child, "message")));

// A free process takes the next portion: seeds differ in length, so rounds would leave processes waiting. A portion is
// added only after all portions before it, so that the file always holds the first seeds without a gap.
/** @type {Map<number, import("../src/testing/simulator/index.js").CampaignReport>} */
const finished = new Map();
let next = kept.done;
let countedMs = performance.now();
await Promise.all(children.map(work));

for (const child of children) {
  child.removeAllListeners("exit");
  child.disconnect();
}
const hours = Math.round(kept.virtualMs / 3_600_000);
console.log(
  `\n${kept.done} seeds in ${Math.round(kept.seconds)} s, ${hours} virtual hours, ${kept.faults} faults, ` +
    `${kept.operations} operations, ${kept.calls} store calls, ${kept.violations.length} violations\n`,
);
for (const [name, words] of Object.entries(simulator.SOMETIMES))
  console.log(`| ${words} | ${kept.counters[name] ?? 0} |`);
for (const violation of kept.violations.slice(0, 20)) console.log(JSON.stringify(violation));
const unseen = simulator.missing({ seeds: kept.done, counters: kept.counters });
if (unseen.length > 0)
  console.log(`\nNever reached, though there were seeds enough: ${unseen.join(", ")}`);
process.exitCode = kept.violations.length + unseen.length > 0 ? 1 : 0;

/** Seeds that broke a promise are run anew: of what was mended since, the record keeps that it was. */
async function runBrokenAgain() {
  const broken = kept.violations;
  kept.violations = [];
  for (const seed of new Set(broken.map((violation) => violation.seed))) {
    const { violations } = await simulator.runCampaign({ from: seed, seeds: 1 });
    console.log(
      `Seed ${seed} ${violations.length > 0 ? "still breaks" : "no longer breaks"} a promise`,
    );
    if (violations.length > 0) kept.violations.push(...violations);
    else kept.mended.push(...broken.filter((violation) => violation.seed === seed));
  }
  if (broken.length > 0) save();
}

/** @param {import("node:child_process").ChildProcess} child */
async function work(child) {
  while (next < wanted && performance.now() < endMs) {
    const first = next;
    const seeds = Math.min(PORTION, wanted - first);
    next += seeds;
    child.send({ from: kept.from + first, seeds });
    const [report] = await once(child, "message");
    finished.set(first, report);
    keep();
  }
}

function keep() {
  for (let report = finished.get(kept.done); report; report = finished.get(kept.done)) {
    finished.delete(kept.done);
    add(report);
  }
  const nowMs = performance.now();
  kept.seconds += (nowMs - countedMs) / 1_000;
  countedMs = nowMs;
  save();
  const rate = (kept.done / kept.seconds).toFixed(1);
  console.log(
    `${kept.done} of ${wanted} seeds, ${rate} a second, ${kept.violations.length} violations`,
  );
}

function save() {
  fs.mkdirSync(path.dirname(options.file), { recursive: true });
  fs.writeFileSync(options.file, `${JSON.stringify(kept, null, 2)}\n`);
}

/** @param {import("../src/testing/simulator/index.js").CampaignReport} report */
function add(report) {
  kept.done += report.seeds;
  for (const name of /** @type {const} */ (["virtualMs", "faults", "operations", "calls"]))
    kept[name] += report[name];
  for (const [name, count] of Object.entries(report.counters))
    kept.counters[name] = (kept.counters[name] ?? 0) + count;
  kept.commits[commit] = (kept.commits[commit] ?? 0) + report.seeds;
  kept.violations.push(...report.violations);
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        seeds: { type: "string", default: "1000" },
        from: { type: "string" },
        minutes: { type: "string", default: "1440" },
        processes: { type: "string", default: String(os.availableParallelism()) },
        file: { type: "string", default: ".holdfast/campaign.json" },
        help: { type: "boolean", default: false },
      },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    return {
      seeds: countOf("--seeds", values.seeds),
      from: values.from === undefined ? null : countOf("--from", values.from),
      minutes: countOf("--minutes", values.minutes),
      processes: countOf("--processes", values.processes),
      file: values.file,
    };
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} name @param {string} text */
function countOf(name, text) {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`${name} must be a whole number above 0, for example 100; it was "${text}".`);
  return count;
}

/** @param {string} problem @returns {never} */
function refuse(problem) {
  console.error(`${problem}\n${USAGE}`);
  process.exit(2);
}

/** Empty: this is no clone. */
function commitOfNow() {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}
