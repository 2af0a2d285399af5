// Tests every link and small button of the pages that only show data: each leads to its target.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { hasChromium } from "./chromium.js";
import { liveThrough } from "./history.js";
import { openBrowser, type Stage, stageOf } from "./stage.js";

describe.skipIf(!hasChromium())("what leads somewhere", () => {
  let browser: Browser;
  let stage: Stage;
  let page: Page;
  let lived: Awaited<ReturnType<typeof liveThrough>>;
  beforeAll(async () => {
    browser = await openBrowser();
    lived = await liveThrough();
    stage = stageOf(browser, lived.kit as never);
    await stage.serve();
    page = await stage.visit("/");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  });
  afterEach(() => stage.expectNoTrouble());
  afterAll(async () => {
    await stage.end();
    await lived.service.stop();
    await browser.close();
  });

  const at = (title: string) => page.getByRole("heading", { name: title, level: 1 }).waitFor();
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const link = (name: string | RegExp) => page.getByRole("link", { name, exact: true });
  const copied = async (what: string) => {
    await page.getByRole("button", { name: `Copy ${what}` }).click();
    await page.getByText("Copied").waitFor();
    await page.getByText("Copied").waitFor({ state: "detached" });
    return String(await page.evaluate("navigator.clipboard.readText()"));
  };

  test("the overview links to the pages of its contents", async () => {
    await at("Overview");
    await page.getByLabel("Time range").selectOption("24h");
    await page.waitForURL("**/?range=24h");
    const track = page.getByRole("img", { name: /^studies: 2\d fired/ });
    await track.click({ position: { x: 20, y: 10 } });
    await at("studies");
    expect(page.url()).toContain("/schedules/studies?at=");
    await link("Holdfast").click();
    await at("Overview");
    for (const [name, title, address] of [
      [/^studies$/, "studies", "/schedules/studies"],
      [/\d+ failed/, "Runs", "/runs?status=failed"],
      [/\d+ running/, "Runs", "/runs?status=running"],
      [/^all$/, "Instances", "/instances"],
      [/^no such market$/, "study", "/runs/"],
      [/^schedule breaking$/, "breaking", "/schedules/breaking"],
    ] as const) {
      await page.locator("main").getByRole("link", { name }).first().click();
      await at(title);
      expect(page.url()).toContain(address);
      await page.goBack();
      await at("Overview");
    }
  });

  test("a schedule's page leads to its ticks, their reasons and their runs", async () => {
    await page.goto(`${stage.url}/schedules/studies`);
    const ledger = region("Ledger");
    const ticks = ledger.getByRole("listitem");
    await ticks.nth(24).waitFor();
    expect(await ticks.count()).toBe(25);
    await ledger.getByRole("button", { name: "Older" }).click();
    await ticks.nth(34).waitFor();
    const why = region("Why?");
    await ledger.getByTitle("Why?").nth(3).click();
    await why.getByText("fired", { exact: true }).waitFor();
    expect(await copied("the explanation")).toMatch(/^The tick of "studies" at .* was fired/);
    await why.getByRole("link", { name: "The run of this tick" }).click();
    await at("study");
    await page.goBack();
    await why.getByLabel("A moment, in your local time").fill("2026-01-01T10:20:30");
    await why.getByText("did not exist yet", { exact: false }).waitFor();
    const between = new Date(lived.kit.now().getTime() - 2.5 * 3_600_000).toISOString();
    const asked = () => new URL(page.url()).searchParams.get("at") ?? "";
    for (const [name, isRight] of [
      [/tick before/, () => asked() < between],
      [/tick after/, () => asked() > between],
    ] as const) {
      await page.goto(`${stage.url}/schedules/studies?at=${encodeURIComponent(between)}`);
      await why.getByRole("button", { name }).click();
      await page.waitForURL(isRight);
      await why.getByText("fired", { exact: true }).waitFor();
    }
    await why.getByRole("button", { name: "Close" }).click();
    await why.getByText("choose any time").waitFor();

    const history = region("History");
    await history.getByLabel("Time range").selectOption("7d");
    await history.getByRole("img", { name: /^studies: 35 fired/ }).waitFor();
    await region("Durations").getByRole("button").first().click();
    await at("study");
    await page.goBack();
    await ledger.getByRole("link").first().click();
    await at("study");
    await page.getByRole("link", { name: "studies" }).click();
    await at("studies");
    await page.locator("header").getByRole("link", { name: "study" }).click();
    await at("Runs");
    expect(page.url()).toContain("schedule=studies");
    await page.goBack();
    await page.locator("header").getByRole("link", { name: "Schedules" }).click();
    await at("Schedules");
    await page
      .getByRole("row", { name: /breaking/ })
      .getByRole("link", { name: "failed" })
      .click();
    await at("study");
  });

  test("a run's page unfolds, is searched and copied, and leads to its relatives", async () => {
    const [failed] = await lived.kit.runs({ status: "failed" });
    await page.goto(`${stage.url}/runs/${failed?.id}`);
    expect(await copied("the error")).toMatch(/^PermanentError: no such market\n {4}at /);
    await page.getByText("Stack").click();
    await region("Error").locator("pre").waitFor();
    await page.locator("header").getByRole("link", { name: "Runs" }).click();
    await at("Runs");

    await page.goto(`${stage.url}/runs/${lived.ids.rich}`);
    const result = region("Result");
    const hidden = result.getByText("in the third level");
    await result.getByText("markets:").waitFor();
    expect(await hidden.isVisible()).toBe(false);
    await result.getByRole("searchbox", { name: "Search in result" }).fill("third");
    await hidden.waitFor();
    expect(await result.locator(".bg-late\\/25").allTextContents()).toEqual([
      'hidden: "in the third level"',
    ]);
    await result.getByRole("searchbox").fill("");
    await hidden.waitFor({ state: "hidden" });
    await result.getByText("eu:").click();
    await result.getByText("deep:").click();
    await hidden.waitFor();
    expect(await copied("the run's id")).toBe(lived.ids.rich);
    expect(JSON.parse(await copied("the input"))).toEqual({ items: 60 });
    expect(JSON.parse(await copied("the result"))).toHaveProperty("markets.eu.cities");
    const items = region("Items").getByRole("listitem");
    await items.nth(49).waitFor();
    expect(await items.count()).toBe(50);
    await region("Items").getByRole("button", { name: "More" }).click();
    await items.nth(59).waitFor();
    await page.getByRole("searchbox", { name: "Search the log" }).fill("SIX");
    await page.getByText("looked one times").waitFor({ state: "detached" });
    expect(await page.getByRole("log").locator("> div").count()).toBe(1);
    // A page of a plain http address has no clipboard of its own.
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.getByRole("button", { name: "Copy the run's id" }).click();
    await page.getByText("Copied").waitFor();
    await page.getByRole("searchbox", { name: "Search the log" }).fill("");
    await page.keyboard.press("ControlOrMeta+v");
    expect(await page.getByRole("searchbox", { name: "Search the log" }).inputValue()).toBe(
      lived.ids.rich,
    );
    await page.goto(`${stage.url}/runs/${lived.ids.family}`);
    await region("Runs that it made").getByRole("link", { name: "study" }).click();
    await at("study");
  });

  test("a run that was dispatched shows each exchange, without secrets; on a phone nothing is cut off", async () => {
    await page.goto(`${stage.url}/runs/${lived.ids.sent}`);
    const exchanges = region("Exchanges").getByRole("listitem");
    await region("Exchanges").getByText("with desks, sent 2 times").waitFor();
    const [busy, taken] = await exchanges.allTextContents();
    expect(busy).toMatch(/Attempt 1.*503 failed.*POST http:\/\/127\.0\.0\.1:\d+\/run\?…/);
    expect(busy).toContain('{"why":"all desks are taken","token":"***"}');
    expect(taken).toMatch(/Attempt 2.*202 accepted.*called back “done” at \d\d:\d\d:\d\d/);
    expect(await page.content()).not.toContain("CANARY");

    // On a phone nothing sticks out of its panel, where it would be cut off, nor is squeezed beside buttons.
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate(STICKS_OUT)).toEqual([]);
    await lived.kit.holdfast.schedules.pause(
      "breaking",
      "the provider asked us to wait until its new contract is signed",
    );
    const [failed] = await lived.kit.runs({ status: "failed" });
    for (const where of [
      ...["/", "/schedules", "/schedules/studies", "/schedules/breaking", "/runs"],
      ...[lived.ids.sent, lived.ids.rich, lived.ids.family, failed?.id].map((id) => `/runs/${id}`),
      ...["/queues", "/locks", "/instances", "/alerts?state=all", "/check", "/audit", "/settings"],
    ]) {
      await page.goto(stage.url + where);
      await page.locator("h1").waitFor();
      await page.locator('[aria-label="Loading"]').first().waitFor({ state: "detached" });
      expect(await page.evaluate(CUT_OFF), where).toEqual([]);
      expect(await page.evaluate(STICKS_OUT), where).toEqual([]);
    }
    await page.goto(`${stage.url}/alerts`);
    const sentence = await page.getByText("in a row", { exact: false }).first().boundingBox();
    expect(sentence?.width).toBeGreaterThan(200);
  });
});

/** Text that is cut off by its own box. Rows of runs are of one height: what is cut there is a press away. */
const CUT_OFF = `[...document.querySelectorAll("main *")]
  .filter((each) => !each.closest(".sr-only, .max-sm\\\\:sr-only, [data-run], svg, time"))
  .filter((each) => each.querySelector("div, li, p") === null)
  .filter((each) => /hidden|clip/.test(getComputedStyle(each).overflowX) && each.textContent.trim() !== "")
  .filter((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent)`;

const STICKS_OUT = `[...document.querySelectorAll("main *")]
  .filter((each) => !each.closest(".truncate *") && each.getBoundingClientRect().right > innerWidth)
  .map((each) => each.outerHTML.slice(0, 120))`;
