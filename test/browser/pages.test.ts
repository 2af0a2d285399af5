// Tests every page: it opens without an error, is usable without colours or a wide screen, and shows changes live.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { hasChromium } from "./chromium.js";
import { DATABASES, newStage, openBrowser, PermanentError, type Stage } from "./stage.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(!hasChromium()).each(DATABASES)("the pages on %s", (database) => {
  let browser: Browser;
  let stage: Stage;
  let failedId: string;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  beforeEach(async () => {
    stage = await newStage(browser, database);
    const { holdfast } = stage;
    holdfast.job("study", {
      retry: { attempts: 1 },
      async run(input: { fails?: boolean } | null, ctx) {
        await ctx.progress({ stage: "looking", done: 1, total: 2 });
        ctx.log.info({ market: "eu" }, "looked at a market");
        await ctx.item("berlin", async () => ({ listings: 3 }));
        if (input?.fails) throw new PermanentError("no such market");
        return { ok: true };
      },
    });
    holdfast.job("hang", {
      run: (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        ),
    });
    await holdfast.schedules.upsert("studies", {
      job: "study",
      cron: "*/5 * * * *",
      timezone: "Europe/Paris",
    });
    await holdfast.schedules.upsert("often", { job: "study", every: "1s" });
    await holdfast.schedules.upsert("resting", { job: "study", cron: "0 2 * * *" });
    await holdfast.schedules.pause("resting", "the market is closed");
    await holdfast.start();
    const { id } = await holdfast.enqueue("study", { fails: true });
    failedId = id;
    await holdfast.enqueue("hang", { a: { b: { c: [1, 2, 3] } } });
    await holdfast.runs.wait(id, { timeout: "5m" });
    await stage.serve();
  });
  afterEach(async () => {
    stage.expectNoTrouble();
    await stage.end();
  });

  const pages = () =>
    [
      ["/", "Overview", "studies"],
      ["/schedules", "Schedules", "often"],
      [
        `/schedules/studies?at=${encodeURIComponent(new Date().toISOString())}`,
        "studies",
        "Next ten",
      ],
      ["/runs", "Runs", "study"],
      [`/runs/${failedId}`, "study", "no such market"],
      ["/queues", "Queues", "default"],
      ["/locks", "Locks", "No lock is held"],
      ["/instances", "Instances", "alive"],
      ["/alerts?state=all", "Alerts", "resolved"],
      ["/check", "Check", "holds"],
      ["/audit", "Audit", "resting"],
      ["/settings", "Settings", "HOLDFAST_DATABASE_URL"],
      ["/runs/nothing", "Run nothing", "Not found"],
    ] as const;

  const opened = async (page: Page, title: string, text: string) => {
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    await page.getByText(text).locator("visible=true").first().waitFor();
  };

  test("every page opens in light and dark without a serious finding of axe", async () => {
    // The colours are the same on every database.
    const schemes = database === "sqlite" ? (["light", "dark"] as const) : (["dark"] as const);
    for (const scheme of schemes) {
      const page = await stage.visit("/", { scheme });
      for (const [where, title, text] of pages()) {
        await page.goto(stage.url + where);
        await opened(page, title, text);
        await page.evaluate(AXE);
        const findings = await page.evaluate(FINDINGS);
        expect(findings, `${where} in ${scheme}`).toEqual([]);
      }
    }
  });

  test("at 360 pixels no page scrolls sideways, and the menu leads everywhere", async () => {
    const page = await stage.visit("/", { width: 360 });
    for (const [where, title, text] of pages()) {
      await page.goto(stage.url + where);
      await opened(page, title, text);
      const over = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect(over, where).toBeLessThanOrEqual(0);
    }
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Queues" }).click();
    await opened(page, "Queues", "default");
  });

  test("changes appear by themselves, and a deep link shows the same", async () => {
    const page = await stage.visit("/runs?status=completed&text=just-now");
    await page.getByText("No run fits").waitFor();
    await page.locator("[data-connection=live]:visible").waitFor();
    await stage.holdfast.enqueue("study", { label: "just-now" });
    await page.locator("[data-run]").first().waitFor();
    expect(await page.locator("[data-run]").count()).toBe(1);
    await page.getByRole("link", { name: "study" }).first().click();
    await opened(page, "study", "completed");
    await page.getByText("looked at a market").waitFor();
    await page.getByText("berlin").first().waitFor();
  });

  test("without a stream of hints the page asks again by itself", async () => {
    await stage.end();
    stage = await newStage(browser, database, { handler: { events: false } });
    stage.holdfast.job("study", { run: async () => null });
    await stage.serve();
    const page = await stage.visit("/runs");
    await page.getByText("No runs yet").waitFor();
    await page.locator("[data-connection=polling]:visible").waitFor();
    await stage.holdfast.enqueue("study", null);
    await page.locator("[data-run]").first().waitFor();
  });

  test("under a base path everything is found, also by reloading deep inside", async () => {
    await stage.end();
    stage = await newStage(browser, database, { handler: { basePath: "/ops/holdfast" } });
    stage.holdfast.job("study", { run: async () => null });
    const { id } = await stage.holdfast.enqueue("study", null);
    await stage.serve();
    const page = await stage.visit("/");
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("link", { name: "study" }).click();
    await opened(page, "study", id);
    expect(new URL(page.url()).pathname).toBe(`/ops/holdfast/runs/${id}`);
    await page.reload();
    await opened(page, "study", id);
  });

  test("the keyboard walks through lists and pages", async () => {
    const page = await stage.visit("/schedules");
    await page.getByText("resting").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await opened(page, "resting", "the market is closed");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("nothing-has-this");
    await page.getByText("No run fits").waitFor();
    await expect.poll(() => page.url()).toContain("text=nothing-has-this");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Escape");
    await page.locator("h1").click();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
  });

  test("nothing moves under the pointer while things happen", async () => {
    const page = await stage.visit("/");
    await opened(page, "Overview", "studies");
    await page.getByRole("img", { name: /often: .*fired/ }).waitFor();
    // The history is young: the timeline does not show hours in which nothing was.
    await expect.poll(() => page.getByLabel("Time range").inputValue()).toBe("1h");
    await page.getByRole("link", { name: "often" }).hover();
    for (const where of ["overview", "runs"]) {
      if (where === "runs") {
        await page.getByRole("link", { name: "Runs", exact: true }).click();
        await page.locator("[data-run]").first().hover();
        await page.getByRole("button", { name: /newer: show/ }).waitFor();
      }
      await page.evaluate("window.shifts.length = 0");
      const before = (await stage.holdfast.runs.list({ limit: 1000 })).runs.length;
      await expect
        .poll(async () => (await stage.holdfast.runs.list({ limit: 1000 })).runs.length)
        .toBeGreaterThan(before + 3);
      expect(await page.evaluate("window.shifts"), where).toEqual([]);
    }
  });

  test("lists whose newest row comes first stand still under the pointer, and go on when it leaves", async () => {
    const page = await stage.visit("/audit");
    const drawn = () => page.evaluate(DRAWN);
    const told = (part: string, text: string) =>
      page.waitForResponse(
        async (answer) => answer.url().includes(part) && (await answer.text()).includes(text),
      );
    await page.locator("[data-connection=live]:visible").waitFor();
    await page.getByRole("link", { name: "resting" }).first().hover();
    await page.evaluate("window.shifts.length = 0");
    const heard = told("/api/audit", "paused-by-another");
    await stage.holdfast.queues.pause("paused-by-another");
    await heard;
    await drawn();
    expect(await page.evaluate("window.shifts")).toEqual([]);
    expect(await page.getByText("paused-by-another").count()).toBe(0);
    await page.locator("h1").hover();
    await page.getByText("paused-by-another").first().waitFor();

    await page.goto(`${stage.url}/schedules/often`);
    const ledger = page.getByRole("region", { name: "Ledger" });
    for (const place of [
      ledger.getByRole("listitem").nth(1),
      page.getByRole("region", { name: "Durations" }).getByRole("button").last(),
      page.getByRole("region", { name: "Next ten" }).getByRole("listitem").nth(2),
    ]) {
      await place.hover();
      const seen = await place.innerHTML();
      const [newest] = (await stage.holdfast.schedules.ticks("often", { limit: 1 })).ticks;
      await expect
        .poll(
          async () => (await stage.holdfast.schedules.ticks("often", { limit: 1 })).ticks[0]?.at,
        )
        .not.toEqual(newest?.at);
      const [later] = (await stage.holdfast.schedules.ticks("often", { limit: 1 })).ticks;
      await told("/api/ticks", later?.at.toISOString() ?? "");
      await drawn();
      expect(titles(await place.innerHTML())).toEqual(titles(seen));
    }
  });
});

/** The page shows what it read two frames later. */
const DRAWN =
  "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))";

/** Which instants a row is about; how long ago they are goes on. */
function titles(html: string): readonly string[] {
  return [...html.matchAll(/(?:title|href|aria-label)="([^"]*)"/g)].map(([, text = ""]) => text);
}

const FINDINGS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 160) + " " + failureSummary.slice(0, 200)).join(" || ")))`;
