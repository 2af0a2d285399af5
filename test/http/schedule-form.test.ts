// Checks that the page's form of a schedule sends back the values that it was given: saving without a change changes
// nothing.

import { afterEach, beforeEach, expect, test } from "vitest";
import { bodyOf, draftOf } from "../../dashboard/schedules/draft.js";
import { SCHEDULE_MEMBERS, type ScheduleOptions } from "../../src/schedules/rules/schedule.js";
import { type House, newHouse } from "./house.js";

let house: House;
beforeEach(async () => {
  house = await newHouse("sqlite");
  house.holdfast.job("study", {});
  await house.holdfast.calendars.upsert("holidays", { dates: ["2030-12-25"] });
});
afterEach(() => house.end());

const BOUNDS = {
  timezone: "Europe/Paris",
  from: "2030-01-01T00:00:00Z",
  until: "2031-01-01T00:00:00Z",
  exclude: ["2030-05-01", "2030-05-08"],
  calendars: ["holidays"],
};
const POLICIES = {
  input: { market: "eu", depth: [1, 2.5, null] },
  overlap: "queue",
  missed: { run: "skip", within: "6h", limit: 7 },
  afterFailure: "20m..40m",
  grace: "90s",
  priority: -3,
  queue: "slow",
  tags: ["eu", "nightly"],
  alerts: { stale: "30m", silent: false, slow: { total: "1h" } },
} as const;
const CRON = { cron: "30 2 * * *", dst: { gap: "skip", overlap: "both" } } as const;
const OF_A_MONITOR = { monitor: true, grace: "45m", tags: ["ops"], alerts: false } as const;

const SCHEDULES: readonly (readonly [string, ScheduleOptions & { readonly job?: string }])[] = [
  ["by cron, with every option", { job: "study", ...CRON, ...BOUNDS, ...POLICIES }],
  ["by interval, with every option", { job: "study", every: "10m..15m", ...BOUNDS, ...POLICIES }],
  ["at one instant", { job: "study", at: "2030-06-01T00:00:00Z", ...POLICIES }],
  ["of a monitor", { ...CRON, ...BOUNDS, ...OF_A_MONITOR }],
  ["with nothing but its cron", { job: "study", cron: "0 2 * * *" }],
];

test("a change that somebody saved after the form was opened is not overwritten", async () => {
  const save = (cron: string, ifVersion: number) =>
    house.ask("PUT", `/api/schedules/studies?ifVersion=${ifVersion}`, {
      body: { job: "study", cron },
    });
  expect(await save("0 2 * * *", 0)).toMatchObject({
    status: 200,
    body: { schedule: { version: 1 } },
  });
  expect(await save("0 3 * * *", 1)).toMatchObject({
    status: 200,
    body: { schedule: { version: 2 } },
  });
  expect(await save("0 4 * * *", 1)).toMatchObject({
    status: 409,
    body: { error: "schedule_changed", detail: expect.stringContaining("at version 2, not 1") },
  });
  expect(await save("0 4 * * *", 0)).toMatchObject({ status: 409 });
  expect(await save("0 4 * * *", -1)).toMatchObject({ status: 400 });
  expect(await house.holdfast.schedules.get("studies")).toMatchObject({ cron: "0 3 * * *" });
});

test("the schedules below have every option that there is", () => {
  const given = new Set(SCHEDULES.flatMap(([, options]) => Object.keys(options)));
  expect(SCHEDULE_MEMBERS.filter((name) => !given.has(name))).toEqual([]);
});

test.for(SCHEDULES)(
  "a form that is saved as it was opened keeps a schedule %s",
  async ([, options]) => {
    await house.holdfast.schedules.upsert("studies", options as never);
    const before = (await house.ask("GET", "/api/schedules/studies")).body;
    const { value: body, problem } = bodyOf(draftOf(before));
    expect(problem).toBe(null);
    expect((await house.ask("PUT", "/api/schedules/studies", { body })).status).toBe(200);
    expect((await house.ask("GET", "/api/schedules/studies")).body).toEqual(before);
  },
);
