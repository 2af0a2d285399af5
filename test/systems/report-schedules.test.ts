// Document 003, played: users' report schedules against a marketing API that rate-limits, fails and hangs up.

import { randomUUID } from "node:crypto";
import path from "node:path";
import { Holdfast } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { ApiClient } from "../../examples/report-schedules/api-client.js";
import { reportsApi } from "../../examples/report-schedules/http.js";
import { type Mood, startMarketingApi } from "../../examples/report-schedules/marketing-api.js";
import { defineReports } from "../../examples/report-schedules/reports.js";
import { until } from "../support/until.js";
import { type AppDatabase, migrate, onHandle, openDatabase } from "./app-database.js";
import { EXAMPLES, type Place, POSTGRES_URL, placed } from "./places.js";

const MIGRATIONS = path.join(EXAMPLES, "report-schedules/migrations");
const quiet = () => undefined;
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet };

async function marketing() {
  const api = await startMarketingApi();
  onTestFinished(() => api.close());
  return api;
}

async function connectUser(db: AppDatabase, user: string): Promise<string> {
  const id = randomUUID();
  const values = [id, user, `amc-${user}`];
  await db.query("insert into instances (id, name, api_instance_id) values ($1, $2, $3)", values);
  return id;
}

/** Makes a schedule of the report's job or changes it, as the HTTP surface does. */
function saver({ schedules }: Holdfast) {
  return (name: string, wanted: { readonly cron: string; readonly input: object }) =>
    schedules.upsert(name, { job: "report", timezone: "UTC", ...wanted });
}

/** The service with time in the test's hands. */
async function kitted() {
  const api = await marketing();
  const kit = await createTestHoldfast({
    now: "2026-01-15T11:59:00Z",
    setup: async (holdfast, { database }) => {
      const db = onHandle(database);
      await migrate(db, MIGRATIONS);
      defineReports(holdfast, { db: db.db, api: new ApiClient(api.url) });
      return { db, save: saver(holdfast) };
    },
  });
  onTestFinished(() => kit.close());
  await kit.start();
  return { kit, api, ...kit.app };
}

for (const kind of ["sqlite", "postgres"] as const) {
  const test = placed(kind);
  describe.skipIf(kind === "postgres" && POSTGRES_URL === undefined)(`on ${kind}`, () => {
    test("four instances poll the same schedules, and no tick is executed twice", async ({
      place,
    }) => {
      const api = await marketing();
      const instances = [];
      for (let at = 0; at < 4; at += 1) instances.push(await instance(place, api.url));
      const [first] = instances as [(typeof instances)[0]];
      const user = await connectUser(first.db, "ada");
      for (let at = 0; at < 20; at += 1)
        await first.save(`report ${at}`, {
          cron: "* * * * * *",
          input: { instance: user, report: `report ${at}` },
        });
      for (const { holdfast } of instances) await holdfast.start();
      await until("a hundred reports", () => api.executions.length >= 100);
      for (const { holdfast } of instances) await holdfast.stop();
      const keys = api.executions.map(({ idempotencyKey }) => idempotencyKey);
      expect(new Set(keys).size).toBe(keys.length);
      const reader = new Holdfast({ database: first.db.handle, logger: SILENT });
      const { runs } = await reader.runs.list({ limit: 1_000 });
      const ticks = runs.map(
        ({ schedule, nominalAt }) => `${schedule} ${nominalAt?.toISOString()}`,
      );
      expect(new Set(ticks).size).toBe(ticks.length);
      const stored = await first.db.query("select run_id from report_executions");
      expect(stored).toHaveLength(runs.filter(({ status }) => status === "completed").length);
      await reader.stop();
    });

    test("a scheduled run, one by hand and a test send the same bytes", async ({ place }) => {
      const api = await marketing();
      const { db, holdfast, save } = await instance(place, api.url);
      const user = await connectUser(db, "ada");
      const input = { instance: user, report: "sales", days: 3 };
      await save("sales", { cron: "* * * * * *", input });
      await holdfast.start();
      await until("a scheduled one", () => api.bodies.length > 0);
      await holdfast.schedules.pause("sales");
      await until("it is idle", async () => {
        // A run that sleeps until its report is ready is pending.
        const live = (["running", "pending"] as const).map((status) =>
          holdfast.runs.list({ status }),
        );
        return (await Promise.all(live)).every(({ runs }) => runs.length === 0);
      });
      const scheduled = api.bodies.length;
      for (const mode of ["manual", "test"] as const) {
        const { runId } = (await holdfast.schedules.trigger("sales", { mode })) as {
          runId: string;
        };
        await holdfast.runs.wait(runId, { timeout: "5m" });
      }
      expect(api.bodies).toHaveLength(scheduled + 2);
      expect(new Set(api.bodies).size).toBe(1);
    });
  });
}

async function instance(place: Place, apiUrl: string) {
  const db = await openDatabase(place.url);
  await migrate(db, MIGRATIONS);
  const holdfast = new Holdfast({ database: db.handle, logger: SILENT, poll: "100ms" });
  place.after(async () => {
    await holdfast.stop({ grace: 0 });
    await db.close();
  });
  defineReports(holdfast, { db: db.db, api: new ApiClient(apiUrl) });
  return { db, holdfast, save: saver(holdfast) };
}

test("network errors are tried again after 10, 20 and 40 seconds, and then the schedule goes on with its next time", async () => {
  const { kit, api, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "0 * * * *", input: { instance: user, report: "sales" } });
  api.plan("failing", "hanging_up", "failing", "hanging_up");
  await kit.advance("30m");
  const starts = kit.calls("report").map(({ startedAt }) => startedAt.getTime());
  expect(starts.map((at) => (at - Number(starts[0])) / 1_000)).toEqual([0, 10, 30, 70]);
  const [failed] = await kit.runs({ status: "failed" });
  expect(failed).toMatchObject({ attempt: 4 });
  const schedule = await kit.holdfast.schedules.get("sales");
  expect(schedule?.nextAt).toEqual(new Date("2026-01-15T13:00:00Z"));
  await kit.advance("1h");
  expect(await kit.runs({ status: "completed" })).toHaveLength(1);
});

test("no wait is longer than 60 seconds", async () => {
  const { kit } = await kitted();
  const [job] = await kit.holdfast.jobs();
  expect(job?.policy.retry).toMatchObject({ attempts: 4, delay: "10s", factor: 2, max: "1m" });
});

test("what the API forbids, and an instance that is not connected, are not tried again", async () => {
  const { kit, api, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "0 * * * *", input: { instance: user, report: "sales" } });
  await save("clicks", { cron: "0 * * * *", input: { instance: randomUUID(), report: "clicks" } });
  api.plan("forbidding");
  await kit.advance("30m");
  const failed = await kit.runs({ status: "failed" });
  expect(failed.map(({ schedule, attempt }) => [schedule, attempt]).sort()).toEqual([
    ["clicks", 1],
    ["sales", 1],
  ]);
  expect(failed.map(({ error }) => error?.message).join()).toMatch(/403/);
  expect(failed.map(({ error }) => error?.code)).toContain("INSTANCE_UNMAPPED");
  expect(api.bodies).toHaveLength(1);
});

test("our own id is sent as the API's, with dates that have no zone", async () => {
  const { kit, api, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "0 * * * *", input: { instance: user, report: "sales" } });
  await kit.advance("10m");
  expect(api.executions).toMatchObject([
    {
      instanceId: "amc-ada",
      timeWindowStart: "2026-01-08T00:00:00",
      timeWindowEnd: "2026-01-15T00:00:00",
    },
  ]);
});

test("a token that has expired is replaced once; if the new one is refused too, the run fails at once", async () => {
  const { kit, api, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "0 * * * *", input: { instance: user, report: "sales" } });
  await kit.advance("10m");
  api.expireTokens();
  await kit.advance("1h");
  expect(api.tokensGiven()).toBe(2);
  expect(await kit.runs({ status: "completed" })).toHaveLength(2);
  api.expireTokens({ forGood: true });
  await kit.advance("1h");
  expect(await kit.runs({ status: "failed" })).toMatchObject([
    { attempt: 1, error: { code: "TOKEN_REFUSED" } },
  ]);
});

test("a test run leaves the cadence, and the success rate, as they are", async () => {
  const { kit, api, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "0 * * * *", input: { instance: user, report: "sales" } });
  await kit.advance("10m");
  const before = await kit.holdfast.schedules.get("sales");
  api.plan("forbidding");
  await kit.holdfast.schedules.trigger("sales", { mode: "test" });
  await kit.advance("10m");
  expect(await kit.runs({ mode: "test" })).toMatchObject([{ status: "failed" }]);
  const after = await kit.holdfast.schedules.get("sales");
  expect(after?.nextAt).toEqual(before?.nextAt);
  expect(await kit.ranAt("sales")).toEqual([new Date("2026-01-15T12:00:00Z")]);
  const { overall } = await kit.holdfast.stats({ since: "1h" });
  expect(overall.successRate).toBe(1);
});

test("a schedule that was left behind is found within five minutes and fired, with the evidence in the log", async () => {
  const { kit, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "*/10 * * * *", input: { instance: user, report: "sales" } });
  const { nextAt } = (await kit.holdfast.schedules.get("sales")) ?? {};
  const setNext = (at: number | null) =>
    db.query("update holdfast_schedule set next_at = $1 where name = 'sales'", [at]);
  // Polls that cannot find anything are left out in a test; this one gives each minute a reason.
  await save("clicks", { cron: "* * * * *", input: { instance: user, report: "clicks" } });
  await setNext(Number(nextAt) + 3_600_000);
  await kit.advance("7m");
  expect(await kit.ticks("sales")).toEqual([]);
  await setNext(Number(nextAt));
  await kit.advance("1m");
  const reasons = (await kit.ticks("sales")).map(({ reason }) => reason);
  expect(reasons).toContain("stuck_reset");
  expect(kit.log.map(({ fields }) => fields.event)).toContain("schedule.stuck");
  // One that has no next time at all gets it back with the next poll.
  await setNext(null);
  await kit.advance("4m");
  expect((await kit.ticks("sales")).slice(-1)).toMatchObject([{ reason: "on_time" }]);
});

test("a tick is never early, and from 30 seconds on it is late and says by how much", async () => {
  const { kit, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  await save("sales", { cron: "0 * * * *", input: { instance: user, report: "sales" } });
  await kit.advance("30m");
  await kit.restart({ downFor: "32m" });
  await kit.advance("1m");
  const [onTime, late] = await kit.ticks("sales");
  expect(onTime).toMatchObject({ reason: "on_time" });
  expect(Number(onTime?.lateMs)).toBeGreaterThanOrEqual(0);
  expect(late).toMatchObject({ outcome: "fired", reason: "late" });
  expect(Number(late?.lateMs)).toBeGreaterThan(30_000);
});

test("a user sees, changes, tries and deletes only schedules of their own, through the HTTP surface", async () => {
  const { kit, db } = await kitted();
  const mine = await connectUser(db, "ada");
  const his = await connectUser(db, "ben");
  const userOf = (request: Request) => request.headers.get("x-user");
  const api = reportsApi({ holdfast: kit.holdfast, db: db.db, userOf });
  const ask = async (user: string, method: string, where: string, body?: object) => {
    const options = { method, headers: { "x-user": user }, body: body && JSON.stringify(body) };
    const response = await api(new Request(`http://reports${where}`, options as RequestInit));
    return {
      status: response.status,
      body: (await response.json()) as { readonly error?: string },
    };
  };
  const sales = { cron: "0 * * * *", input: { instance: mine, report: "sales" } };
  expect(await ask("ada", "PUT", "/schedules/sales", sales)).toMatchObject({
    status: 200,
    body: { name: "sales", cron: "0 * * * *" },
  });
  expect((await ask("ada", "GET", "/schedules")).body).toHaveLength(1);
  expect((await ask("ben", "GET", "/schedules")).body).toEqual([]);
  for (const [method, where] of [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/test"],
  ] as const)
    expect(await ask("ben", method, `/schedules/sales${where}`)).toMatchObject({ status: 404 });
  // Neither by the name of somebody else's schedule, nor for somebody else's instance.
  expect((await ask("ben", "GET", "/schedules/ada%2Fsales")).status).toBe(404);
  expect(await ask("ben", "PUT", "/schedules/sales", sales)).toMatchObject({
    status: 400,
    body: { error: "input.instance is not yours" },
  });
  const wrong = { ...sales, cron: "0 * * *" };
  expect((await ask("ada", "PUT", "/schedules/sales", wrong)).body.error).toMatch(/cron/);
  const own = { ...sales, input: { instance: his, report: "sales" } };
  expect(await ask("ben", "PUT", "/schedules/sales", own)).toMatchObject({ status: 200 });
  expect(await ask("ada", "POST", "/schedules/sales/test")).toMatchObject({ status: 202 });
  await kit.advance("1h");
  const executed = await db.query(
    "select schedule, is_test from report_executions order by is_test desc",
  );
  expect(executed.map(({ schedule, is_test }) => [schedule, is_test]).sort()).toEqual([
    ["ada/sales", 0],
    ["ada/sales", 1],
    ["ben/sales", 0],
  ]);
  expect(await ask("ada", "DELETE", "/schedules/sales")).toMatchObject({ status: 200 });
  expect((await ask("ben", "GET", "/schedules")).body).toHaveLength(1);
});

test("a test call is refused with 409 while a run of its schedule is not over, and accepted afterwards", async () => {
  const { kit, db, save } = await kitted();
  const mine = await connectUser(db, "ada");
  const api = reportsApi({ holdfast: kit.holdfast, db: db.db, userOf: () => "ada" });
  const tried = () => api(new Request("http://reports/schedules/sales/test", { method: "POST" }));
  await save("ada/sales", { cron: "0 * * * *", input: { instance: mine, report: "sales" } });
  // The run of 12:00 sleeps until its report is ready.
  await kit.advance("1m");
  const [live] = await kit.runs({ schedule: "ada/sales" });
  expect(live?.finishedAt).toBeNull();
  const refused = await tried();
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ skipped: true, reason: "locked" });
  await kit.advance("10m");
  expect((await tried()).status).toBe(202);
});

test("under the API's mix of faults at least 95 of 100 reports succeed", async () => {
  const { kit, api, db, save } = await kitted();
  const user = await connectUser(db, "ada");
  for (let at = 0; at < 5; at += 1)
    await save(`report ${at}`, {
      cron: `${at * 10} * * * *`,
      input: { instance: user, report: `report ${at}` },
    });
  // A third of all calls fails in some way that passes.
  const faults: Mood[] = ["failing", "rate_limited", "hanging_up"];
  for (let call = 0; call < 400; call += 1)
    api.plan((call * 7) % 10 < 3 ? (faults[call % 3] as Mood) : "ok");
  await kit.advance("1d");
  const { overall } = await kit.holdfast.stats({ since: "2d" });
  expect(overall.total).toBeGreaterThanOrEqual(115);
  expect(Number(overall.successRate)).toBeGreaterThanOrEqual(0.95);
});
