// How quickly the dashboard answers with very many runs in the database: fifty interactions with the list of
// runs, in a real browser, each from its input event to the frame that shows what was asked for.
//
//   node bench/page.mjs [--runs 100000] [--rounds 5]      after `npm run build`; needs Chromium

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { createHttpHandler } from "../build/http/handler.js";
import { serve } from "../build/http/server.js";
import { filled } from "./page/filled.mjs";
import { NARROWED, ROUND } from "./page/interactions.mjs";
import { stopwatch } from "./page/stopwatch.mjs";

const GOAL_MS = 100;
const PATIENCE_MS = 20_000;
const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "100000" },
    rounds: { type: "string", default: "5" },
  },
});
const runs = Number(values.runs);
const rounds = Number(values.rounds);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-bench-page-"));
const holdfast = await filled({ database: `sqlite:${path.join(folder, "app.db")}`, runs });
const handler = createHttpHandler(holdfast, { openOnLoopback: true });
const served = await serve({ handler, host: "127.0.0.1", port: 0 });
const browser = await chromium.launch({
  executablePath: process.env.HOLDFAST_TEST_CHROMIUM ?? "/usr/bin/chromium",
  // The animation of a wheel is the browser's own and takes as long as it likes.
  args: ["--no-sandbox", "--disable-smooth-scrolling"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
  await page.addInitScript(stopwatch);
  await page.goto(`${served.url}/runs`);
  await page.locator("[data-run]").nth(10).waitFor();
  // The first round compiles the page's code and is not counted.
  await round(page);
  const taken = [];
  for (let no = 0; no < rounds; no += 1) taken.push(...(await round(page)));
  const narrowed = [];
  for (let no = 0; no < rounds; no += 1) narrowed.push(await timed(page, NARROWED));
  report(taken, narrowed);
} finally {
  await browser.close();
  served.drain();
  await holdfast.stop({ grace: 0 });
  await served.close();
  fs.rmSync(folder, { recursive: true, force: true });
}

async function round(page) {
  await page.goto(`${served.url}/runs`);
  await page.locator("[data-run]").nth(10).waitFor();
  await page.mouse.move(640, 500);
  const taken = [];
  for (const interaction of ROUND) taken.push(await timed(page, interaction));
  return taken;
}

async function timed(page, { name, ready, act, isThere }) {
  await ready?.(page);
  await page.evaluate(`timeUntil(() => ${isThere})`);
  await act(page);
  const ms = await Promise.race([page.evaluate(`timed`), after(PATIENCE_MS)]);
  if (ms === null) throw new Error(`"${name}" was not seen to be done within ${PATIENCE_MS} ms.`);
  return { name, ms };
}

/** Resolves with null. */
function after(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms, null).unref());
}

function report(taken, narrowed) {
  const names = [...new Set(taken.map(({ name }) => name))];
  const of = (list) => list.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (sorted, share) =>
    sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
  const line = (name, sorted) =>
    `${name.padEnd(52)} ${String(sorted.length).padStart(4)} ${[0.5, 0.95, 1].map((share) => at(sorted, share).toFixed(0).padStart(7)).join("")}`;
  console.log(
    `${runs.toLocaleString("en-US")} runs, load ${os.loadavg()[0].toFixed(1)} on ${os.cpus().length} processors; ms`,
  );
  console.log(`${"".padEnd(52)}    n     p50    p95    max`);
  for (const name of names) console.log(line(name, of(taken.filter((each) => each.name === name))));
  const all = of(taken);
  console.log(line("all of these", all));
  console.log(line(narrowed[0].name, of(narrowed)));
  const p95 = at(all, 0.95);
  console.log(
    `${p95 <= GOAL_MS ? "met  " : "SHORT"} p95 of ${all.length} interactions ${p95.toFixed(0)} ms, goal ${GOAL_MS} ms`,
  );
}
