// Makes docs/images/: every page of the dashboard, light and dark, with a day of market studies as content.
// It needs a build and Chromium: node scripts/screenshots.mjs [folder]

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { ensureBuilt, provideChromium } from "./bootstrap.mjs";
import { writeHistory } from "./screenshots/history.mjs";
import { serveWorld } from "./screenshots/served.mjs";
import { ALL } from "./screenshots/world.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const modules = path.join(root, "build");
/** Another folder, for a preview. */
const images = path.resolve(process.argv[2] ?? path.join(root, "docs", "images"));
const WIDTH = 1_280;
const HEIGHT = 800;
/** Long lists are cut to one screen. */
const CUT = new Set(["runs", "check", "audit"]);
/** A longer page would not be readable as a picture. */
const HEIGHT_MAX = 1_100;

const problem = await provideChromium();
if (problem) throw new Error(problem);
if (!ensureBuilt()) process.exit(1);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-screenshots-"));
// The page of settings shows where the database is: as short as an application would have it.
process.chdir(scratch);
await writeHistory(path.join(scratch, "markets.db"), modules);
const { url, holdfast, end } = await serveWorld({ file: "markets.db", modules });
const browser = await chromium.launch({
  executablePath: process.env.HOLDFAST_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const sent = await holdfast.enqueue("price-offer", { listing: "https://cars.example/nl/7" });
  for (const [name, by] of /** @type {const} */ ([
    ["yaris-watch", "sam"],
    ["digest-sales", "ada"],
    ["exchange-rates", "sam"],
    ["backup", "ada"],
  ]))
    await holdfast.schedules.trigger(name, { by });
  await holdfast.schedules.trigger("electric-watch", { mode: "test", by: "ada" });
  await holdfast.queues.pause("listings", "the market of NO is being repaired");
  void holdfast
    .lock("price-import", { lease: "5m" }, ({ signal }) => {
      return new Promise((resolve) => signal.addEventListener("abort", resolve));
    })
    .catch(() => undefined);
  // By then the instances have looked for alerts and compared clocks.
  await until(async () => (await holdfast.alerts.list({ state: "all" })).alerts.length >= 2);
  await holdfast.runs.wait(sent.id, { timeout: "60s" });
  await until(async () => {
    const { instances } = await holdfast.instances.list();
    return instances.every(({ isLive, skewMs }) => !isLive || skewMs !== null);
  });
  // Pages of running work come last; the page of the study comes first.
  for (let no = 0; no < 90; no += 1)
    await holdfast.enqueue("review-listing", { listing: `https://cars.example/nl/${no}` });
  const { id } = await holdfast.enqueue("market-study", { studyIds: ALL, threshold: 5_000 });
  await until(async () => ((await holdfast.runs.get(id))?.items.total ?? 0) >= 2);
  const skipped = (await holdfast.schedules.ticks("approved-listings", { outcome: "skipped" }))
    .ticks[0];
  const [failed] = (await holdfast.runs.list({ status: "failed", job: "send-digest", limit: 1 }))
    .runs;
  const at = skipped ? `?at=${encodeURIComponent(skipped.at.toISOString())}` : "";
  /** @type {[name: string, path: string][]} */
  const pages = [
    ["run", `/runs/${id}`],
    ["overview", "/"],
    ["schedules", "/schedules"],
    ["schedule", `/schedules/approved-listings${at}`],
    ["runs", "/runs"],
    ["run-failed", `/runs/${failed?.id ?? id}`],
    ["run-dispatched", `/runs/${sent.id}`],
    ["queues", "/queues"],
    ["locks", "/locks"],
    ["instances", "/instances"],
    ["alerts", "/alerts?state=all"],
    ["check", "/check"],
    ["audit", "/audit"],
    ["settings", "/settings"],
  ];
  fs.mkdirSync(images, { recursive: true });
  const looks = [];
  for (const scheme of /** @type {const} */ (["light", "dark"])) {
    const context = await browser.newContext({
      viewport: { width: WIDTH, height: HEIGHT },
      colorScheme: scheme,
      timezoneId: "Europe/Berlin",
      locale: "en-GB",
    });
    looks.push({ scheme, page: await context.newPage() });
  }
  for (const [name, where] of pages)
    for (const { scheme, page } of looks) {
      await page.goto(url + where);
      await page.locator("h1").waitFor();
      await page
        .locator('[role="status"][aria-label="Loading"]')
        .first()
        .waitFor({ state: "detached" });
      await page.waitForTimeout(800);
      await page.screenshot({
        path: path.join(images, `${name}-${scheme}.png`),
        fullPage: true,
        clip: { x: 0, y: 0, width: WIDTH, height: CUT.has(name) ? HEIGHT : await heightOf(page) },
      });
    }
} finally {
  await browser.close();
  await end();
  fs.rmSync(scratch, { recursive: true, force: true });
}

/** @param {import("playwright-core").Page} page */
async function heightOf(page) {
  return Math.min(HEIGHT_MAX, Number(await page.evaluate("document.documentElement.scrollHeight")));
}

/** @param {() => Promise<boolean>} isThere */
async function until(isThere) {
  const patienceMs = 150_000;
  for (const from = Date.now(); Date.now() - from < patienceMs; ) {
    if (await isThere()) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
