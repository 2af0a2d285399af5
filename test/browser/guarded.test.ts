// Tests the page with guarded scopes, with a server that goes away, with hostile text everywhere, and with very many
// runs.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { serverInternals } from "../../build/instance/server-internals.js";
import { hasChromium } from "./chromium.js";
import { BOTH, newStage, openBrowser, SECRETS, type Stage } from "./stage.js";

const HOSTILE = [
  `<script>window.owned=1</script>`,
  `"><img src=x onerror="window.owned=1;alert(1)">`,
  `<svg/onload=alert(document.cookie)>`,
  `javascript:alert(1)//`,
  `{{constructor.constructor('alert(1)')()}}`,
  `\u202e\u2066 right to left \u0000`.replace("\u0000", ""),
  `' or 1=1; drop table runs; --`,
  `</title></textarea><iframe srcdoc="<script>parent.owned=1</script>">`,
];

describe.skipIf(!hasChromium())("the page, guarded", () => {
  let browser: Browser;
  let stage: Stage;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());
  afterEach(() => stage.end());

  const logIn = async (page: Page, secret: string) => {
    await page.getByLabel("Secret").fill(secret);
    await page.getByRole("button", { name: "Log in" }).click();
  };

  test("a bad secret is refused, a good one opens, and logging out closes again", async () => {
    stage = await newStage(browser, "sqlite", { handler: { secrets: SECRETS } });
    await stage.serve();
    const page = await stage.visit("/settings");
    await logIn(page, "not-the-secret");
    await page.getByText("This secret is not valid.", { exact: false }).waitFor();
    await logIn(page, SECRETS.admin);
    await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Secret").waitFor();
    await page.reload();
    await page.getByLabel("Secret").waitFor();
    stage.expectNoTrouble();
  });

  test("a user with the scope read sees everything and no button that changes something", async () => {
    stage = await newStage(browser, "sqlite", { handler: { secrets: SECRETS } });
    const job = stage.holdfast.job("study", { run: async () => null });
    await stage.holdfast.schedules.upsert("studies", { job, cron: "0 2 * * *" });
    const { id } = await job.enqueue(null, { delay: "1h" });
    await stage.serve();
    const page = await stage.visit("/");
    await logIn(page, SECRETS.read);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const CHANGES =
      /^(Trigger|Test|Pause|Resume|Edit|Backfill|Clone|Delete|Cancel|Retry|Remove|Run again|Enqueue|New schedule|Release|Mute|Acknowledge|Resolve|Quiet)/;
    for (const [where, text] of [
      ["/schedules", "studies"],
      ["/schedules/studies", "Next ten"],
      ["/runs", "1 run"],
      [`/runs/${id}`, "It waits for its time"],
      ["/queues", "default"],
      ["/locks", "No lock is held"],
    ] as const) {
      await page.goto(stage.url + where);
      await page.getByText(text).first().waitFor();
      expect(await page.getByRole("button", { name: CHANGES }).count(), where).toBe(0);
      expect(await page.getByRole("checkbox").count(), where).toBe(0);
    }
    const status = await page.evaluate(
      `fetch("/api/runs/${id}/cancel", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }).then((r) => r.status)`,
    );
    expect(status).toBe(403);
    stage.expectNoTrouble();
  });

  test("a session that ended asks for the secret again", async () => {
    stage = await newStage(browser, "sqlite", { handler: { secrets: SECRETS } });
    await stage.serve();
    const page = await stage.visit("/queues");
    await logIn(page, SECRETS.read);
    await page.getByRole("heading", { name: "Queues", level: 1 }).waitFor();
    await page.context().clearCookies();
    await page.getByRole("link", { name: "Locks" }).click();
    await page.getByLabel("Secret").waitFor();
  });

  test("a server that goes away and comes back leaves the page as it was, and it goes on", async () => {
    stage = await newStage(browser, "sqlite");
    const job = stage.holdfast.job("study", { run: async () => null });
    await job.enqueue({ no: 1 }, { delay: "1h" });
    await stage.serve();
    const page = await stage.visit("/runs");
    await page.locator("[data-run]").first().waitFor();
    await page.locator("[data-connection=live]:visible").waitFor();
    await stage.unserve();
    await page
      .locator("[data-connection=connecting]:visible, [data-connection=lost]:visible")
      .waitFor();
    expect(await page.locator("[data-run]").count()).toBe(1);
    await job.enqueue({ no: 2 }, { delay: "1h" });
    await stage.serve();
    await page.locator("[data-connection=live]:visible").waitFor();
    await page.locator("[data-run]").nth(1).waitFor();
    stage.expectNoTrouble();
  });

  test.for(BOTH)(
    "hostile text in every field is text and nothing else, on %s",
    async (database) => {
      stage = await newStage(browser, database);
      const all = HOSTILE.join(" ");
      const nasty = stage.holdfast.job(HOSTILE[0] ?? "", {
        retry: { attempts: 1 },
        async run(input, ctx) {
          ctx.log.error({ [all]: all }, all);
          await ctx.progress({ stage: all.slice(0, 190) });
          await ctx.item(all, async () => ({ [all]: all }), {
            outcome: () => (HOSTILE[1] ?? "").slice(0, 60),
          });
          if (input === "fail") throw Object.assign(new Error(all), { stack: all });
          return { [all]: all };
        },
      });
      const name = (HOSTILE[1] ?? "").slice(0, 190);
      await stage.holdfast.schedules.upsert(name, {
        job: nasty,
        cron: "0 2 * * *",
        input: { [all]: all },
        tags: [(HOSTILE[2] ?? "").slice(0, 40)],
      });
      await stage.holdfast.schedules.pause(name, all, { by: (HOSTILE[2] ?? "").slice(0, 60) });
      await stage.holdfast.start();
      await stage.serve();
      const options = { key: HOSTILE[2] ?? "", tags: [HOSTILE[3] ?? ""] };
      const done = await nasty.enqueue({ [all]: all } as never, options);
      const failed = await nasty.enqueue("fail" as never);
      for (const { id } of [done, failed]) await stage.holdfast.runs.wait(id, { timeout: "5m" });
      await stage.holdfast.queues.pause(HOSTILE[4] ?? "", all);
      const held = stage.holdfast.lock(
        HOSTILE[0] ?? "",
        {},
        () =>
          new Promise<void>((resolve) => {
            stage.holdfast[serverInternals].stopSignal.addEventListener("abort", () => resolve());
          }),
      );
      held.catch(() => undefined);
      const page = await stage.visit("/");
      for (const where of [
        "/",
        "/schedules",
        `/schedules/${encodeURIComponent(name)}?at=${encodeURIComponent(all)}`,
        `/schedules/${encodeURIComponent(all)}`,
        "/runs",
        `/runs?text=${encodeURIComponent(all)}&job=${encodeURIComponent(all)}&tag=${encodeURIComponent(all)}`,
        `/runs/${done.id}`,
        `/runs/${failed.id}`,
        `/runs/${encodeURIComponent(all)}`,
        "/queues",
        "/locks",
        `/locks?name=${encodeURIComponent(all)}`,
        "/instances",
        "/alerts",
        `/alerts?state=${encodeURIComponent(all)}`,
        "/check",
        "/audit",
        `/audit?noun=${encodeURIComponent(all)}&who=${encodeURIComponent(all)}`,
        "/settings",
        `/?range=${encodeURIComponent(all)}`,
      ]) {
        await page.goto(stage.url + where);
        await page.locator("h1").waitFor();
        await page.waitForLoadState("load");
        expect(await page.evaluate("window.owned"), where).toBeUndefined();
        expect(await page.locator("#root script, #root iframe, #root img").count(), where).toBe(0);
      }
      // The same by hand, into every field of the forms.
      const dialog = page.getByRole("dialog");
      const there = `/schedules/${encodeURIComponent(name)}`;
      for (const [where, button] of [
        ["/schedules", "New schedule"],
        [there, "Trigger…"],
        [there, "Clone"],
        ["/runs", "Enqueue a run"],
        [`/runs/${done.id}`, "Run again…"],
        ["/queues", "Resume"],
        ["/instances", "Quiet"],
        ["/", "Pause all"],
      ] as const) {
        await page.goto(stage.url + where);
        await page.getByRole("button", { name: button }).first().click();
        if (button === "Resume") continue;
        for (const summary of await dialog.locator("summary").all()) await summary.click();
        for (const text of HOSTILE.slice(0, 3))
          for (const field of await dialog
            .locator(
              "input:not([type=radio], [type=checkbox], [type=number], [disabled]), textarea",
            )
            .all())
            await field.fill(text);
        expect(await page.evaluate("window.owned"), button).toBeUndefined();
        expect(await page.locator("#root script, #root iframe, #root img").count(), button).toBe(0);
      }
      await page.goto(`${stage.url}/runs`);
      await page.getByRole("searchbox").first().waitFor();
      for (const field of await page.getByRole("searchbox").all())
        await field.fill(HOSTILE[1] ?? "");
      await expect.poll(() => page.url()).toContain("text=");
      expect(await page.evaluate("window.owned")).toBeUndefined();
      stage.expectNoTrouble();
    },
  );

  test("a hundred thousand runs scroll with a few dozen rows in the page", async () => {
    stage = await newStage(browser, "sqlite", { options: { synchronous: "NORMAL" } });
    const job = stage.holdfast.job<{ no: number }>("study", {});
    for (let from = 0; from < 100_000; from += 5_000)
      await job.enqueueMany(
        Array.from({ length: 5_000 }, (_, index) => ({ no: from + index })),
        {},
      );
    await stage.serve();
    const page = await stage.visit("/runs");
    await page.locator("[data-run]").first().waitFor();
    const seen = new Set<string>();
    for (let step = 0; step < 40; step += 1) {
      await page.mouse.wheel(0, 3_000);
      const ids = (await page.evaluate(
        `new Promise((resolve) => requestAnimationFrame(() => resolve([...document.querySelectorAll("[data-run]")].map((row) => row.dataset.run))))`,
      )) as string[];
      expect(ids.length).toBeLessThan(80);
      for (const id of ids) seen.add(id);
    }
    await page.locator("[data-run]").nth(10).waitFor();
    expect(seen.size).toBeGreaterThan(300);
    await page.getByRole("searchbox", { name: /Search input/ }).fill('"no":77777}');
    await expect.poll(() => page.locator("[data-run]").count()).toBe(1);
    stage.expectNoTrouble();
  });
});
