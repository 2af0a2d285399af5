// Tests every button: its action is done on the server, and the page shows the result.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { until } from "../support/until.js";
import { hasChromium } from "./chromium.js";
import { DATABASES, newStage, openBrowser, PermanentError, type Stage } from "./stage.js";

describe.skipIf(!hasChromium()).each(DATABASES)("the buttons on %s", (database) => {
  let browser: Browser;
  let stage: Stage;
  let isFailing: boolean;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  beforeEach(async () => {
    isFailing = false;
    stage = await newStage(browser, database);
    stage.holdfast.job("study", {
      input: z.looseObject({ market: z.string(), depth: z.number().optional() }),
      retry: { attempts: 1 },
      run(input) {
        if (isFailing) throw new PermanentError("no such market");
        return input;
      },
    });
    stage.holdfast.job("hang", {
      run: (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        ),
    });
    await stage.holdfast.start();
    await stage.serve();
  });
  afterEach(async () => {
    stage.expectNoTrouble();
    await stage.end();
  });

  const schedule = () => stage.holdfast.schedules.get("studies");

  test("a schedule is made with its next ten in sight, changed, cloned and deleted", async () => {
    const page = await stage.visit("/schedules");
    await page.getByRole("button", { name: "New schedule" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).fill("studies");
    await dialog.getByRole("combobox", { name: "Job" }).selectOption("study");
    await dialog.getByRole("textbox", { name: "Cron" }).fill("61 2 * * *");
    await dialog.getByText("must be 0–59", { exact: false }).waitFor();
    await dialog.getByRole("textbox", { name: "Cron" }).fill("30 2 * * *");
    await dialog.getByLabel("Time zone").fill("Europe/Paris");
    await dialog.getByText("at 02:30 every day, Europe/Paris").waitFor();
    expect(await dialog.getByRole("listitem").count()).toBe(10);
    await dialog.getByLabel("Input").fill('{"market":"eu"}');
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "studies", level: 1 }).waitFor();
    expect(await schedule()).toMatchObject({
      cron: "30 2 * * *",
      input: { market: "eu" },
      source: "api",
    });

    await page.getByRole("button", { name: "Edit" }).click();
    await dialog.getByRole("textbox", { name: "Cron" }).fill("45 3 * * *");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("at 03:45 every day, Europe/Paris").first().waitFor();
    await page.getByText('+ "45 3 * * *"').waitFor();

    await page.getByRole("button", { name: "Clone" }).click();
    await dialog.getByRole("textbox", { name: "Name" }).fill("studies-two");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "studies-two", level: 1 }).waitFor();

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete it" }).click();
    await page.getByRole("heading", { name: "Schedules", level: 1 }).waitFor();
    await page.getByRole("link", { name: "studies-two" }).waitFor({ state: "detached" });
    expect(await stage.holdfast.schedules.get("studies-two")).toBe(null);
  });

  test("of two concurrent edits of a schedule the second is refused, and a new schedule cannot take an existing name", async () => {
    const options = { job: "study", cron: "0 2 * * *", input: { market: "eu" } };
    await stage.holdfast.schedules.upsert("studies", options);
    const [first, second] = [
      await stage.visit("/schedules/studies"),
      await stage.visit("/schedules/studies"),
    ];
    for (const page of [first, second]) await page.getByRole("button", { name: "Edit" }).click();
    await first.getByRole("textbox", { name: "Cron" }).fill("15 2 * * *");
    await first.getByRole("button", { name: "Save" }).click();
    // The page behind the second form shows what is there now; the form still goes by what it was filled from.
    await second.getByText("at 02:15 every day").first().waitFor();
    await second.getByRole("textbox", { name: "Cron" }).fill("45 2 * * *");
    await second.getByRole("button", { name: "Save" }).click();
    await second.getByRole("alert").getByText("was changed meanwhile", { exact: false }).waitFor();
    expect(await schedule()).toMatchObject({ cron: "15 2 * * *", version: 2 });

    await second.goto(`${stage.url}/schedules`);
    await second.getByRole("button", { name: "New schedule" }).click();
    const dialog = second.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).fill("studies");
    await dialog.getByRole("combobox", { name: "Job" }).selectOption("hang");
    await dialog.getByRole("textbox", { name: "Cron" }).fill("0 5 * * *");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").getByText("studies already", { exact: false }).waitFor();
    expect(await schedule()).toMatchObject({ job: "study", version: 2 });
  });

  test("a monitor is checked in for, and offers nothing that would run it from here", async () => {
    await stage.holdfast.schedules.upsert("backup", { monitor: true, cron: "0 3 1 1 *" });
    const page = await stage.visit("/schedules/backup");
    await page.getByText("monitor of another system").waitFor();
    expect(await page.getByRole("button", { name: /Trigger|Test|Backfill/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Check in" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Check in" }).click();
    await until("the check-in", async () => (await stage.holdfast.runs.list()).runs.length === 1);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Wait for a check-in up to", { exact: false }).fill("45m");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("up to 45m after its time", { exact: false }).waitFor();
    expect(await stage.holdfast.schedules.get("backup")).toMatchObject({
      monitor: true,
      grace: "45m",
      lastStatus: "completed",
    });
  });

  test("a schedule is triggered, tested, paused with a note, resumed, backfilled and explained", async () => {
    await stage.holdfast.schedules.upsert("studies", {
      job: "study",
      cron: "0 * * * *",
      input: { market: "eu" },
    });
    const page = await stage.visit("/schedules/studies");
    await page.getByRole("button", { name: "Trigger…" }).click();
    await page.getByRole("dialog").getByLabel("Input").fill('{"market":"us"}');
    await page.getByRole("button", { name: "Trigger", exact: true }).click();
    await page.getByRole("heading", { name: "study", level: 1 }).waitFor();
    await page.getByText("manual").waitFor();

    await page.goBack();
    await page.getByRole("button", { name: "Test" }).click();
    await until("the test run", async () => (await stage.holdfast.runs.list()).runs.length === 2);
    const modes = (await stage.holdfast.runs.list()).runs.map(({ mode, input }) => [mode, input]);
    expect(modes).toEqual([
      ["test", { market: "eu" }],
      ["manual", { market: "us" }],
    ]);

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByLabel("Why?", { exact: false }).fill("the API is down");
    await page.getByRole("button", { name: "Pause it" }).click();
    await page.getByText("the API is down").first().waitFor();
    expect(await schedule()).toMatchObject({ status: "paused", pauseNote: "the API is down" });
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    expect(await schedule()).toMatchObject({ status: "active" });

    await page.getByRole("button", { name: "Backfill" }).click();
    await page.getByRole("dialog").getByLabel("From").fill("2026-01-01T00:00");
    await page.getByRole("dialog").getByLabel("To").fill("2026-01-01T03:00");
    await page.getByRole("dialog").getByRole("button", { name: "Backfill", exact: true }).click();
    await page.getByText(/runs made, .* had one, of [34] ticks/).waitFor();

    await page.getByRole("region", { name: "Next ten" }).getByRole("listitem").first().click();
    await page.locator("[data-explanation]").getByText("planned", { exact: true }).waitFor();
    expect(page.url()).toContain("at=20");
  });

  test("a failed run is retried from one of its steps", async () => {
    const done: string[] = [];
    let isBroken = true;
    const chain = stage.holdfast.job("chain", {
      retry: { attempts: 1 },
      async run(_: unknown, ctx) {
        for (const name of ["fetch", "render"]) await ctx.step(name, () => done.push(name));
        if (isBroken) throw new Error("the printer is away");
      },
    });
    const { id } = await chain.enqueue(null);
    await stage.holdfast.runs.wait(id, { timeout: "5m" });
    isBroken = false;
    const page = await stage.visit(`/runs/${id}`);
    const render = page.locator('[data-step="render"]');
    await render.getByRole("button", { name: "Retry from here" }).click();
    await page.getByRole("dialog").getByText("Retry from render?").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
    await page.getByText("It will be retried.").waitFor();
    await stage.holdfast.runs.wait(id, { timeout: "5m" });
    expect(done).toEqual(["fetch", "render", "render"]);
    await page.getByText("completed", { exact: true }).first().waitFor();
    expect(await page.getByRole("button", { name: "Retry from here" }).count()).toBe(0);
  });

  test("a run is cancelled, retried, run again with another input, and removed", async () => {
    const { id } = await stage.holdfast.enqueue("hang", null);
    const page = await stage.visit(`/runs/${id}`);
    await page.getByText("running", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel it" }).click();
    await page.getByText("cancelled", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
    await page.getByText("It will be retried.").waitFor();
    await until(
      "the run runs again",
      async () => (await stage.holdfast.runs.get(id))?.status === "running",
    );
    await stage.holdfast.runs.cancel(id);

    isFailing = true;
    const failed = await stage.holdfast.enqueue("study", { market: "nowhere" });
    await stage.holdfast.runs.wait(failed.id, { timeout: "5m" });
    await page.goto(`${stage.url}/runs/${failed.id}`);
    await page.getByText("no such market").first().waitFor();
    isFailing = false;
    await page.getByRole("button", { name: "Run again…" }).click();
    await page.getByRole("dialog").getByLabel("market *").fill("eu");
    await page.getByRole("dialog").getByLabel("depth").fill("3");
    await page.getByRole("button", { name: "Enqueue" }).click();
    await page.getByText("completed", { exact: true }).first().waitFor();
    const [newest] = (await stage.holdfast.runs.list({ limit: 1 })).runs;
    expect(newest?.input).toEqual({ market: "eu", depth: 3 });
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove it" }).click();
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    expect(await stage.holdfast.runs.get(newest?.id ?? "")).toBe(null);
  });

  test("several runs are cancelled and retried together", async () => {
    isFailing = true;
    const ids: string[] = [];
    for (const market of ["a", "b", "c"])
      ids.push((await stage.holdfast.enqueue("study", { market })).id);
    for (const id of ids) await stage.holdfast.runs.wait(id, { timeout: "5m" });
    isFailing = false;
    const page = await stage.visit("/runs?status=failed");
    await page.locator("[data-run]").nth(2).waitFor();
    await page.getByRole("checkbox").first().check();
    await page.getByRole("button", { name: "Select all loaded" }).click();
    await page.getByRole("button", { name: "Retry 3" }).click();
    await page.getByText("3 of study.").waitFor();
    await page.getByRole("button", { name: "Retry them" }).click();
    await page.getByText("3 runs will be retried.").waitFor();
    for (const id of ids) await stage.holdfast.runs.wait(id, { timeout: "5m" });
    const { id } = await stage.holdfast.enqueue("hang", null, { delay: "1h" });
    await page.goto(`${stage.url}/runs?status=pending`);
    await page.getByRole("checkbox").first().check();
    await page.getByRole("button", { name: "Cancel 1" }).click();
    await page.getByRole("button", { name: "Cancel them" }).click();
    await page.getByText("1 run cancelled or stopping.").waitFor();
    expect((await stage.holdfast.runs.get(id))?.status).toBe("cancelled");
  });

  test("a run is enqueued by a form that its job's schema gives", async () => {
    const page = await stage.visit("/runs");
    await page.getByRole("button", { name: "Enqueue a run" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Job" }).selectOption("study");
    await dialog.getByRole("button", { name: "Enqueue" }).isEnabled();
    await dialog.getByLabel("Input as JSON").fill("{");
    await dialog.getByText("Not JSON yet").waitFor();
    await dialog.getByLabel("Input as JSON").fill('{"market":5}');
    await dialog.getByRole("button", { name: "Enqueue" }).click();
    await dialog.getByRole("alert").getByText("market").first().waitFor();
    await dialog.getByLabel("market *").fill("asia");
    await dialog.getByRole("button", { name: "Enqueue" }).click();
    await page.getByRole("heading", { name: "study", level: 1 }).waitFor();
    expect((await stage.holdfast.runs.list()).runs[0]?.input).toEqual({ market: "asia" });
  });

  test("everything is paused with a note that every page shows, and resumed", async () => {
    const page = await stage.visit("/");
    await page.getByRole("button", { name: "Pause all" }).click();
    await page.getByLabel("Why?", { exact: false }).fill("the provider is down");
    await page.getByRole("button", { name: "Pause everything" }).click();
    await page.getByText("the provider is down", { exact: false }).waitFor();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByText("the provider is down", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Resume all" }).click();
    await page.getByText("Everything is paused", { exact: true }).waitFor({ state: "detached" });
  });

  test("an instance is made quiet and woken, and the audit trail shows it", async () => {
    const page = await stage.visit("/instances");
    await page.getByRole("button", { name: "Quiet" }).click();
    await page
      .getByRole("dialog")
      .getByLabel("Why?", { exact: false })
      .fill("about to be replaced");
    await page.getByRole("button", { name: "Make it quiet" }).click();
    await page.getByText("about to be replaced").waitFor();
    await page.getByRole("button", { name: "Wake" }).click();
    await page.getByRole("button", { name: "Quiet" }).waitFor();
    await page.getByRole("link", { name: "Audit" }).click();
    await page.getByText("about to be replaced").waitFor();
    await page.getByLabel("What was changed").selectOption("lock");
    await page.getByText("No entry").waitFor();
  });

  test("a queue is paused and resumed, a lock is taken from its holder", async () => {
    await stage.holdfast.enqueue("study", { market: "eu" });
    const page = await stage.visit("/queues");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Why?", { exact: false }).fill("too much");
    await page.getByRole("button", { name: "Pause it" }).click();
    await page.getByText("too much").waitFor();
    expect((await stage.holdfast.queues.list())[0]).toMatchObject({ pauseNote: "too much" });
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();

    const held = stage.holdfast
      .lock(
        "import",
        { lease: "2s" },
        ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)),
      )
      .catch((error: Error) => error);
    await page.getByRole("link", { name: "Locks" }).click();
    await page.getByRole("button", { name: "Release" }).click();
    await page.getByRole("button", { name: "Release it" }).click();
    await page.getByText("Released.").waitFor();
    await page.getByText("revoked").first().waitFor();
    expect(await held).toMatchObject({ code: "LEASE_LOST" });
  });
});
