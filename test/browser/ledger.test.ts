// The page of one schedule: its ledger shows how each run ended and tells ticks of one minute apart, and its next
// ticks obey the choice between local time and UTC. A wrong address is a page too.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { hasChromium } from "./chromium.js";
import { createTestHoldfast, openBrowser, PermanentError, type Stage, stageOf } from "./stage.js";

const ZONE = "Asia/Kathmandu";
const READER = "America/New_York";

describe.skipIf(!hasChromium())("a schedule of seconds whose runs fail", () => {
  let browser: Browser;
  let stage: Stage;
  let page: Page;
  beforeAll(async () => {
    browser = await openBrowser();
    const kit = await createTestHoldfast({ now: "2030-01-31T09:00:00Z", patience: "30s" });
    let runs = 0;
    const study = kit.holdfast.job("study", {
      retry: { attempts: 1 },
      run() {
        runs += 1;
        if (runs === 2) throw new PermanentError("no such market");
      },
    });
    kit.holdfast.schedule("quick", study, { every: "20s", timezone: ZONE });
    await kit.start();
    await kit.advance("70s");
    await kit.untilIdle();
    stage = stageOf(browser, kit as never);
    await stage.serve();
    page = await stage.visit("/schedules/quick", { zone: READER });
  });
  afterEach(() => stage.expectNoTrouble());
  afterAll(async () => {
    await stage.end();
    await browser.close();
  });

  const region = (name: string) => page.getByRole("region", { name, exact: true });

  test("the ledger shows how the run of each tick ended", async () => {
    const rows = region("Ledger").getByRole("listitem");
    await rows.nth(2).waitFor();
    expect(await rows.count()).toBe(3);
    const [third, second, first] = await rows.allInnerTexts();
    expect(first).toMatch(/completed[\s\S]*fired on time/);
    expect(second).toMatch(/failed[\s\S]*fired on time/);
    expect(third).toMatch(/completed[\s\S]*fired on time/);
  });

  test("the ticks of one minute are distinguished by their seconds", async () => {
    const times = await region("Ledger").locator("time").allInnerTexts();
    expect(times).toHaveLength(3);
    expect(new Set(times).size).toBe(3);
    for (const time of times) expect(time).toMatch(/\d\d:\d\d:\d\d$/);
  });

  test("the next ten obey the choice of the zone, and show the schedule's own second", async () => {
    const first = region("Next ten").getByRole("listitem").first();
    await first.waitFor();
    expect(await region("Next ten").innerText()).toContain(`${READER}, then ${ZONE}`);
    expect(await first.innerText()).toContain("31 Jan 2030, 04:01:20");
    const inLedger = region("Ledger").locator("time").first();
    expect(await inLedger.innerText()).toBe("31 Jan, 04:01:00");
    await page.getByText("UTC", { exact: true }).first().click();
    // The switch and the ticks are drawn at once: a zone that is ignored fails here, and is not waited for.
    await page.locator("label:has(input:checked)").getByText("UTC", { exact: true }).waitFor();
    expect(await region("Next ten").innerText()).toContain(`UTC, then ${ZONE}`);
    const [shown = "", own = ""] = (await first.innerText()).split("\n");
    expect(shown).toContain("31 Jan 2030, 09:01:20");
    expect(own).toBe("Thu, 31 Jan 2030, 14:46:20");
    expect(await inLedger.innerText()).toBe("31 Jan, 09:01:00");
  });

  test("moments are written on the clock that times are shown in", async () => {
    const why = region("Why?");
    await why.getByLabel("A moment, in UTC").fill("2030-01-31T09:00:40");
    await why.getByText("31 Jan 2030, 09:00:40").first().waitFor();
    await page.getByText("New York", { exact: true }).first().click();
    expect(await why.getByLabel("A moment, in your local time").inputValue()).toBe(
      "2030-01-31T04:00:40",
    );
    await why.getByLabel("A moment, in your local time").fill("2030-01-31T04:00:20");
    await why.getByText("31 Jan 2030, 04:00:20").first().waitFor();
    await page.getByText("UTC", { exact: true }).first().click();
    await why.getByText("31 Jan 2030, 09:00:20").first().waitFor();
    await page.getByRole("button", { name: "Backfill" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByText("UTC", { exact: true }).count()).toBe(2);
    await dialog.getByLabel("From").fill("2030-01-31T09:00");
    await dialog.getByLabel("To", { exact: true }).fill("2030-01-31T09:01");
    const sent = page.waitForRequest((request) => request.url().endsWith("/backfill"));
    await dialog.getByRole("button", { name: "Backfill" }).click();
    expect((await sent).postDataJSON()).toMatchObject({
      from: "2030-01-31T09:00:00.000Z",
      to: "2030-01-31T09:01:00.000Z",
    });
    await page.goto(`${stage.url}/runs`);
    await page.getByLabel("From", { exact: true }).fill("2030-01-31T09:01");
    await page.waitForURL(/from=2030-01-31T09%3A01%3A00\.000Z/);
    await page.goto(`${stage.url}/schedules/quick`);
  });

  test("a part of an id that several runs have leads to a page that says so and names them", async () => {
    const link = region("Ledger").getByRole("link").first();
    const id = (await link.getAttribute("href"))?.split("/").at(-1) ?? "";
    await page.goto(`${stage.url}/runs/${id.slice(0, 6)}`);
    await page.getByText("Several ids match").waitFor();
    await page.getByText(id).waitFor();
    await page.goto(`${stage.url}/runs/${id.slice(-8)}`);
    await page.getByText(id).first().waitFor();
  });

  test("a wrong address is a page with the status 404 that says so and leads on", async () => {
    const answer = await page.goto(`${stage.url}/no/such/page`);
    expect(answer?.status()).toBe(404);
    await page.getByRole("heading", { name: "Nothing here" }).waitFor();
    await page.getByRole("link", { name: "Schedules", exact: true }).first().click();
    await page.getByRole("heading", { name: "Schedules", level: 1 }).waitFor();
  });
});
