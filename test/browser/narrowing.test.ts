// Tests every field and choice of the pages: filters, more rows, forms, and leaving them again.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { hasChromium } from "./chromium.js";
import { liveThrough } from "./history.js";
import { openBrowser, type Stage, stageOf } from "./stage.js";

describe.skipIf(!hasChromium())("what is filled in", () => {
  let browser: Browser;
  let stage: Stage;
  let page: Page;
  let lived: Awaited<ReturnType<typeof liveThrough>>;
  beforeAll(async () => {
    browser = await openBrowser();
    lived = await liveThrough();
    const { holdfast, database } = lived.kit;
    holdfast.job("form", {
      input: z.object({ size: z.enum(["small", "large"]), isDry: z.boolean().optional() }),
      run: () => null,
    });
    await holdfast.schedules.upsert("resting", { job: "study", cron: "0 2 * * *" });
    await holdfast.schedules.pause("resting");
    for (let no = 0; no < 200; no += 1)
      await holdfast.schedules.upsert(`spare-${no}`, { job: "study", cron: "0 3 1 1 *" });
    // A clock that is off, and a line of a run that is not there.
    database.exec(
      `update holdfast_instance set skew_ms = -20000 where id = '${holdfast.instanceId}'`,
    );
    database.exec(
      `insert into holdfast_log select '01a1e4f8-220a-74f0-8c9c-eb2edb0fa0e8', fence, no, attempt, at, level, message, fields from holdfast_log limit 1`,
    );
    stage = stageOf(browser, lived.kit as never);
    await stage.serve();
    page = await stage.visit("/runs");
  });
  afterEach(() => stage.expectNoTrouble());
  afterAll(async () => {
    await stage.end();
    await lived.service.stop();
    await browser.close();
  });

  const rows = () => page.locator("[data-run]");
  const count = (text: string) => page.getByText(text, { exact: true }).waitFor();
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const dialog = () => page.getByRole("dialog");

  test("runs are narrowed by each of their filters, alone and together", async () => {
    const all = (await lived.kit.runs()).length;
    await count(`${all} runs`);
    await page.getByRole("button", { name: "failed", exact: true }).click();
    await count("6 runs");
    await page.getByRole("button", { name: "all", exact: true }).click();
    await page.getByRole("combobox", { name: "Job" }).selectOption("parent");
    await count("1 run");
    await page.getByRole("combobox", { name: "Job" }).selectOption("");
    await page.getByRole("combobox", { name: "Mode" }).selectOption("enqueued");
    await count("4 runs");
    await page.getByLabel("Tag").fill("by-hand");
    await count("1 run");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByLabel("Schedule", { exact: true }).fill("breaking");
    await count("6 runs");
    await page.getByRole("button", { name: "Clear" }).click();
    await count(`${all} runs`);

    // Of the hours three to six after the beginning, as the reader's clock tells them.
    const first = (await lived.kit.runs({ schedule: "studies" }))[0];
    const hour = (no: number) => {
      const at = new Date((first?.createdAt.getTime() ?? 0) + no * 3_600_000 - 600_000);
      return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    };
    await page.getByLabel("Schedule", { exact: true }).fill("studies");
    await count("35 runs");
    await page.getByLabel("From", { exact: true }).fill(hour(3));
    await count("32 runs");
    await page.getByLabel("To", { exact: true }).fill(hour(6));
    await count("3 runs");
    const { searchParams } = new URL(page.url());
    expect([...searchParams.keys()].sort()).toEqual(["from", "schedule", "to"]);
    await page.reload();
    await count("3 runs");
    expect(await page.getByLabel("From", { exact: true }).inputValue()).toBe(hour(3));
    await rows().first().hover();
    await lived.kit.holdfast.schedules.trigger("studies");
    await page.getByLabel("To", { exact: true }).fill("");
    await count("33 runs");
  });

  test("new rows wait behind a button while the reader is further down", async () => {
    await page.goto(`${stage.url}/runs?tag=just-now`);
    await page.getByText("No run fits").hover();
    await page.locator("[data-connection=live]:visible").waitFor();
    await lived.kit.holdfast.enqueue("study", {}, { tags: ["just-now"] });
    await page.getByRole("button", { name: "1 newer: show" }).click();
    await rows().first().waitFor();
  });

  test("lists are searched, and bring more when asked for it", async () => {
    await page.goto(`${stage.url}/schedules`);
    const names = page.locator("tbody tr");
    await names.nth(199).waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await names.nth(202).waitFor();
    await page.getByRole("searchbox", { name: "Search schedules" }).fill("restin");
    await names.nth(1).waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("");
    await page.getByLabel("Status").selectOption("paused");
    await names.nth(1).waitFor({ state: "detached" });
    expect(await names.first().textContent()).toContain("resting");

    await page.goto(`${stage.url}/audit?noun=schedule&who=`);
    const entries = page.locator("main li");
    await entries.nth(99).waitFor();
    await page.getByRole("button", { name: "Older" }).click();
    await entries.nth(199).waitFor();
    await entries
      .getByRole("link", { name: /^spare-/ })
      .first()
      .click();
    await page.getByRole("heading", { level: 1, name: /^spare-\d+$/ }).waitFor();

    await page.goto(`${stage.url}/locks`);
    const grants = region("History").getByRole("listitem");
    await grants.nth(49).waitFor();
    await region("History").getByRole("button", { name: "Older" }).click();
    await grants.nth(59).waitFor();
    await page.getByLabel("Of the lock of this name").fill("no such lock");
    await page.getByText("No grant yet").waitFor();

    await page.goto(`${stage.url}/instances`);
    const instances = page.locator("main li");
    await instances.nth(49).waitFor();
    await page.getByRole("button", { name: /More|Older/ }).click();
    await instances.nth(60).waitFor();
    await page.getByText("clock 20 s behind").waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("clock 20 s behind").waitFor();

    await page.goto(`${stage.url}/alerts`);
    await page.getByRole("button", { name: "all", exact: true }).click();
    await page.getByRole("link", { name: "schedule breaking" }).click();
    await page.getByRole("heading", { name: "breaking", level: 1 }).waitFor();
  });

  test("a broken promise shows its evidence, settings link to the API, keys are listed", async () => {
    await page.goto(`${stage.url}/check`);
    const evidence = region("Evidence").first();
    await evidence.getByText("01a1e4f8-220a-74f0-8c9c-eb2edb0fa0e8").first().waitFor();
    await page.getByText("1 against it").click();
    await evidence.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: /^Keys/ }).click();
    await dialog().getByText("next and previous row of a list").waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByRole("link", { name: "openapi.json" }).click();
    await page.waitForURL("**/openapi.json");
  });

  test("forms are left as they were found, and each of their fields counts", async () => {
    await page.goto(`${stage.url}/schedules/studies`);
    for (const name of ["Trigger…", "Edit", "Clone", "Backfill", "Pause", "Delete"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await dialog().getByRole("button", { name: "Cancel" }).click();
      await dialog().waitFor({ state: "detached" });
    }
    await page.getByRole("button", { name: "Edit" }).click();
    for (const summary of await dialog().locator("summary").all()) await summary.click();
    await dialog().getByLabel("If clocks skip the time").selectOption("skip");
    await dialog().getByLabel("If an hour comes twice").selectOption("both");
    await dialog().getByLabel("While an earlier run is live").selectOption("queue");
    await dialog().getByLabel("Missed ticks").selectOption("all");
    await dialog().getByLabel("Only if missed by at most").fill("2h");
    await dialog().getByLabel("At most this many").fill("7");
    await dialog().getByLabel("Excluded dates").fill("2030-12-25");
    await dialog().getByLabel("Tags").fill("nightly, eu");
    await dialog().getByRole("button", { name: "Save" }).click();
    await dialog().waitFor({ state: "detached" });
    expect(await lived.kit.holdfast.schedules.get("studies")).toMatchObject({
      dst: { gap: "skip", overlap: "both" },
      overlap: "queue",
      missed: { run: "all", within: "2h", limit: 7 },
      exclude: ["2030-12-25"],
      tags: ["nightly", "eu"],
    });
    await page.getByRole("button", { name: "Clone" }).click();
    await dialog().getByText("Once", { exact: true }).click();
    await dialog().getByLabel("At", { exact: true }).fill("2030-01-31T09:00:00Z");
    await dialog().getByText("Interval", { exact: true }).click();
    await dialog().getByLabel("Every", { exact: false }).fill("10m");
    await dialog().getByText("every 10 minutes").first().waitFor();
    await dialog().getByLabel("A monitor", { exact: false }).check();
    await dialog().getByLabel("Wait for a check-in up to", { exact: false }).waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();

    await page.getByRole("button", { name: "Backfill" }).click();
    await dialog().getByLabel("Also ticks that have a completed run").check();
    await dialog().getByRole("button", { name: "Backfill", exact: true }).click();
    await page.getByText(/had one, of 2[34] ticks/).waitFor();

    await page.goto(`${stage.url}/runs`);
    await page.getByRole("button", { name: "Enqueue a run" }).click();
    await dialog().getByLabel("Job").selectOption("form");
    await dialog().getByLabel("size *").selectOption("large");
    await dialog().getByLabel("isDry").check();
    await dialog().getByText("Key, delay, priority, tags").click();
    await dialog().getByLabel("Key").fill("one-of-a-kind");
    await dialog().getByLabel("Delay").fill("5m");
    await dialog().getByLabel("Priority").fill("7");
    await dialog().getByLabel("Tags").fill("urgent");
    await dialog().getByRole("button", { name: "Enqueue" }).click();
    await page.getByText("It waits for its time:", { exact: false }).locator("time").waitFor();
    expect((await lived.kit.runs({ job: "form" }))[0]).toMatchObject({
      input: { size: "large", isDry: true },
      key: "one-of-a-kind",
      priority: 7,
      tags: ["urgent"],
    });
  });

  test("a press loads a list again that could not be loaded", async () => {
    await page.getByRole("link", { name: "Queues" }).click();
    await page.getByRole("heading", { name: "Queues", level: 1 }).waitFor();
    await page.evaluate(
      'addEventListener("click", ({ target }) => { document.body.dataset.pressed = target.innerText }, true)',
    );
    // The page also loads the list again by itself: requests fail until the button is pressed.
    await page.route("**/api/audit*", async (route) => {
      const pressed = page.locator('body[data-pressed="Try again"]');
      await ((await pressed.count()) > 0 ? route.continue() : route.abort());
    });
    await page.getByRole("link", { name: "Audit" }).click();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator("main li").first().waitFor();
    await page.unroute("**/api/audit*");
  });
});
