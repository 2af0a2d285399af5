// How long `holdfast move` takes: a SQLite file with a million runs, most of them done, into PostgreSQL, killed in
// the middle and begun again. Prints figures; both sides are compared by the command itself.
//
//   node bench/move.mjs [--runs 1000000] [--file made-before.db]      after `npm run build`

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { Holdfast } from "../dist/index.js";
import { startPostgresServer } from "./servers.mjs";

const PROGRAM = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const BULK = 5_000;
const { values } = parseArgs({
  options: { runs: { type: "string", default: "1000000" }, file: { type: "string" } },
});
const runs = Number(values.runs);
const logger = { debug() {}, info() {}, warn() {}, error() {} };
const seconds = (fromMs) => Number(((performance.now() - fromMs) / 1000).toFixed(1));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-bench-move-"));
const file = path.resolve(values.file ?? path.join(folder, "app.db"));
const server = await startPostgresServer();
try {
  const filled = performance.now();
  if (values.file === undefined) await fill();
  say(
    `${runs} runs made in ${seconds(filled)} s, ${(fs.statSync(file).size / 2 ** 20).toFixed(0)} MiB`,
  );

  const begun = performance.now();
  const first = begin();
  let early;
  void first.ended.then((end) => (early = end));
  await until(async () => early || (await moved()) >= runs / 2);
  if (early) throw new Error(`The first move ended early. ${early.stdout}${early.stderr}`);
  first.child.kill("SIGKILL");
  await first.ended;
  const firstSeconds = seconds(begun);
  await pause(1_000);
  const there = await moved();
  say(`killed after ${firstSeconds} s and ${there} rows`);

  const again = performance.now();
  const { code, stdout, stderr } = await begin().ended;
  if (code !== 0) throw new Error(`The second move ended with ${code}. ${stdout}${stderr}`);
  const secondSeconds = seconds(again);
  const answer = JSON.parse(stdout);
  const rows = Object.values(answer.tables).reduce((sum, count) => sum + count, 0);
  const perSecond = Math.round((rows - answer.resumedAt) / secondSeconds);
  const checking = performance.now();
  const target = new Holdfast({ database: server.url, logger });
  const check = await target.check({ timeout: "10m" });
  await target.stop();
  if (!check.ok) throw new Error(`What was moved breaks a promise. ${JSON.stringify(check)}`);
  console.log(
    JSON.stringify({
      rows,
      resumedAt: answer.resumedAt,
      firstSeconds,
      secondSeconds,
      perSecond,
      checks: check.checks.length,
      checkSeconds: seconds(checking),
      tables: answer.tables,
    }),
  );
} finally {
  await server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Nine of ten are done, the others wait. */
async function fill() {
  const holdfast = new Holdfast({ database: `sqlite:${file}`, synchronous: "NORMAL", logger });
  let done = 0;
  const job = holdfast.job("letter", { run: () => void done++ });
  for (let at = 0; at < runs; at += BULK) {
    const count = Math.min(BULK, runs - at);
    await job.enqueueMany(
      Array.from({ length: count }, (_, index) => ({
        number: at + index,
        address: "someone@example.org",
      })),
    );
  }
  await holdfast.start({ scheduler: false });
  await until(() => done >= runs * 0.9);
  await holdfast.stop();
}

function begin() {
  const args = [PROGRAM, "move", "--from", `sqlite:${file}`, "--to", server.url, "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].on("data", (chunk) => (text[name] += chunk));
  const ended = new Promise((resolve) => child.once("close", (code) => resolve({ code, ...text })));
  return { child, ended };
}

/** How many rows are there, by the move's own record. */
async function moved() {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    const { rows } = await client.query("select state from holdfast.move");
    const state = JSON.parse(rows[0]?.state ?? "{}");
    return Object.values(state).reduce((sum, each) => sum + each.moved, 0);
  } catch {
    return 0;
  } finally {
    await client.end();
  }
}

async function until(look) {
  while (!(await look())) await pause(100);
}

function say(text) {
  process.stderr.write(`${text}\n`);
}
