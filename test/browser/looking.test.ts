// Tests the buttons of alerts, and the controls that change nothing on the server: filters, switches, other months,
// refreshes. Their requests are the same on every database.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { hasChromium } from "./chromium.js";
import { newStage, openBrowser, PermanentError, type Stage } from "./stage.js";

describe.skipIf(!hasChromium())("looking", () => {
  let browser: Browser;
  let stage: Stage;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    stage.expectNoTrouble();
    await stage.end();
  });

  test("an alert is seen, muted and ended, and a test goes to every destination", async () => {
    const received: string[] = [];
    const call = ({ message }: { readonly message: string }) => void received.push(message);
    const alerts = { failureRate: { atLeast: 1 }, to: [{ name: "desk", call }] };
    stage = await newStage(browser, "sqlite", { options: { alerts } });
    stage.holdfast.job("bad", {
      retry: { attempts: 1 },
      run: () => {
        throw new PermanentError("no such market");
      },
    });
    await stage.holdfast.enqueue("bad", null);
    await stage.holdfast.tick();
    await stage.serve();
    const page = await stage.visit("/");
    await page.getByRole("link", { name: "1 open alert" }).click();
    await page.getByText("1 of 1 run failed", { exact: false }).waitFor();
    await page.getByText("Evidence and 1 delivery").click();
    await page.getByText("opened to desk", { exact: false }).waitFor();

    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("seen by", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Mute 1 h" }).click();
    await page.getByText("muted until", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Resolve", exact: true }).click();
    await page.getByRole("button", { name: "End it" }).click();
    await page.getByText("Nothing is wrong").waitFor();
    await page.getByRole("button", { name: "resolved" }).click();
    await page.getByText("1 of 1 run failed", { exact: false }).waitFor();
    expect((await stage.holdfast.alerts.list({ state: "all" })).alerts).toMatchObject([
      {
        acknowledgedAt: expect.any(Date),
        mutedUntil: expect.any(Date),
        resolvedAt: expect.any(Date),
      },
    ]);

    received.length = 0;
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("button", { name: "Send it" }).click();
    await page.getByText("desk: sent").waitFor();
    expect(received).toHaveLength(1);
  });

  test("no label of the timeline touches another, at any time of the day and on a phone", async () => {
    stage = await newStage(browser, "sqlite");
    const report = stage.holdfast.job("report", { run: () => null });
    stage.holdfast.schedule("hourly", report, { cron: "0 * * * *" });
    await stage.holdfast.tick();
    await stage.serve();
    for (const width of [1280, 390]) {
      const page = await stage.visit("/settings", { width, zone: "UTC" });
      const address = (path: string) => new URL(path, page.url()).href;
      const range = "from=2030-01-15T00:00:00Z&to=2030-01-16T00:00:00Z";
      const answer = await (await page.request.get(address(`/api/timeline?${range}`))).json();
      for (const clock of ["00:07", "02:50", "03:36", "12:00", "22:40", "23:35"]) {
        const nowMs = Date.parse(`2030-01-15T${clock}:00Z`);
        const at = (hours: number) => new Date(nowMs + hours * 3_600_000).toISOString();
        const json = { ...answer, from: at(-6), now: at(0), to: at(2) };
        await page.route("**/api/timeline?*", (route) => route.fulfill({ json }));
        await page.goto(address("/"));
        const ticks = page.getByRole("region", { name: "Ticks" });
        const now = ticks.getByText("now", { exact: true });
        await now.waitFor();
        const touching = await now.evaluate((label) => {
          const boxes = [...(label.parentElement?.children ?? [])]
            .map((each) => ({ text: each.textContent, box: each.getBoundingClientRect() }))
            .filter(({ box }) => box.width > 0)
            .sort((one, other) => one.box.left - other.box.left);
          return boxes
            .filter(({ box }, index) => box.left < (boxes[index - 1]?.box.right ?? 0))
            .map(({ text }) => text);
        });
        expect({ width, clock, touching }).toEqual({ width, clock, touching: [] });
        await page.unrouteAll();
      }
    }
  });

  test("an alert that ends by itself does not give its place to another one while the pointer is at the list", async () => {
    const alerts = { failureRate: { atLeast: 1 } };
    stage = await newStage(browser, "sqlite", { options: { alerts } });
    const run = () => {
      throw new PermanentError("no such market");
    };
    for (const name of ["bad", "worse"]) {
      stage.holdfast.job(name, { retry: { attempts: 1 }, run });
      await stage.holdfast.enqueue(name, null);
    }
    await stage.holdfast.tick();
    await stage.serve();
    const page = await stage.visit("/alerts");
    await page.locator("[data-connection=live]:visible").waitFor();
    const mutes = page.getByRole("button", { name: "Mute 1 h" });
    await mutes.nth(1).hover();
    const place = await mutes.nth(1).boundingBox();
    const [upper] = (await stage.holdfast.alerts.list()).alerts;
    const heard = page.waitForResponse(
      async (answer) =>
        answer.url().includes("/api/alerts?") && !(await answer.text()).includes(String(upper?.id)),
    );
    await stage.holdfast.alerts.resolve(String(upper?.id));
    await heard;
    await page.evaluate(
      "new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))",
    );
    expect(await mutes.nth(1).boundingBox()).toEqual(place);
    await page.locator("h1").hover();
    await mutes.nth(1).waitFor({ state: "detached" });
  });

  test("a suspended run shows what it waits for, and its steps and waits in time", async () => {
    stage = await newStage(browser, "sqlite");
    const { holdfast } = stage;
    const child = holdfast.job("render", { run: () => ({ pages: 3 }) });
    holdfast.job("approval", {
      async run(_: unknown, ctx) {
        await ctx.step("ask", () => ({ asked: "ada" }));
        await ctx.call(child, null);
        await ctx.waitFor("never", { timeout: 1 });
        await ctx.waitFor("approved", { key: "order-7", timeout: "6h" });
      },
    });
    const { id } = await holdfast.enqueue("approval", null);
    const step = (name: string) => page.locator(`[data-step="${name}"]`);
    let names: readonly string[] = [];
    while (!names.includes("approved")) {
      await holdfast.tick({ limit: 10 });
      names = (await holdfast.runs.steps(id)).steps.map(({ name }) => name);
    }
    await stage.serve();
    const page = await stage.visit(`/runs/${id}`);
    const waiting = "It waits for the signal approved with the key order-7 since";
    await page.getByText(waiting, { exact: false }).waitFor();
    await page.getByText("3 done, 1 open").waitFor();
    expect(await step("ask").textContent()).toContain('{"asked":"ada"}');
    expect(await step("never").textContent()).toContain("signal · timeout");
    expect(await step("approved").textContent()).toContain("signal · waiting");
    expect(await page.getByText("suspended until a wait ends").count()).toBeGreaterThan(0);
    const called = (await holdfast.runs.children(id)).runs[0]?.id;
    expect(await step("render").getByRole("link").getAttribute("href")).toContain(String(called));

    await page.locator("[data-connection=live]:visible").waitFor();
    await holdfast.signal("approved", { key: "order-7", value: { by: "grace" } });
    while ((await holdfast.runs.get(id))?.status !== "completed")
      await holdfast.tick({ limit: 10 });
    await page.getByText("4 done").waitFor();
    await step("approved").getByText('{"by":"grace"}').waitFor();
  });

  test("a chosen view is shown, and stays chosen", async () => {
    stage = await newStage(browser, "sqlite");
    stage.holdfast.job("study", {
      async run(_, ctx) {
        await ctx.item("berlin", async () => ({ listings: 3 }), { outcome: () => "found" });
        await ctx.item("paris", async () => ({ listings: 0 }), { outcome: () => "empty" });
      },
    });
    await stage.holdfast.schedules.upsert("studies", { job: "study", cron: "0 2 * * *" });
    const { id } = await stage.holdfast.enqueue("study", { market: "eu" });
    await stage.holdfast.tick();
    await stage.serve();

    const page = await stage.visit("/check");
    await page.getByText("all promises hold").waitFor();
    const [again] = await Promise.all([
      page.waitForResponse((response) => response.url().includes("/api/check")),
      page.getByRole("button", { name: "Check again" }).click(),
    ]);
    expect(again.ok()).toBe(true);
    await page.getByText("Dark", { exact: true }).click();
    await page.getByText("UTC", { exact: true }).click();
    await page.reload();
    await page.getByRole("heading", { name: "Check", level: 1 }).waitFor();
    expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    expect(await page.getByRole("radio", { name: "UTC" }).isChecked()).toBe(true);

    await page.goto(`${stage.url}/runs?status=completed&job=study`);
    await page.getByRole("checkbox").first().check();
    await page.getByRole("button", { name: "Select none" }).click();
    await page.getByText("1 run chosen").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Clear" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("");
    await page.getByRole("link", { name: "study" }).click();
    await page.getByRole("button", { name: "empty 1" }).click();
    await page.getByText("berlin").waitFor({ state: "detached" });
    await page.getByText("paris").first().waitFor();
    await page.getByRole("button", { name: "slowest first" }).click();
    await page.getByRole("button", { name: "by key" }).waitFor();
    await page.goBack();
    await page.locator(`[data-run="${id}"]`).waitFor();

    await page.goto(`${stage.url}/schedules/studies`);
    const month = page.getByRole("region", { name: "Month" });
    const shown = await month.textContent();
    await month.getByRole("button", { name: "The month before" }).click();
    await expect.poll(() => month.textContent()).not.toBe(shown);
    await month.getByRole("button", { name: "The month after" }).click();
    await expect.poll(() => month.textContent()).toBe(shown);

    await page.goto(`${stage.url}/audit`);
    await page.getByRole("link", { name: "studies" }).waitFor();
    await page.getByRole("searchbox", { name: "Who" }).fill("nobody-of-this-name");
    await page.getByText("No entry").waitFor();
  });
});
