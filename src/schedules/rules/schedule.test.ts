// Options of a schedule become a definition, whole, or are refused by the names of their fields.

import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { MISSED_LIMIT_MAX, readSchedule, type ScheduleOptions } from "./schedule.js";

const NOW = Date.UTC(2026, 0, 15, 12);
const read = (options: object) =>
  readSchedule(options as ScheduleOptions, {
    field: "s",
    nowMs: NOW,
    calendar: () => undefined,
    calendarNames: [],
  });

function fieldsRefused(options: object): string[] {
  try {
    read(options);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems.map(({ field }) => field);
    throw error;
  }
  return [];
}

describe("a definition", () => {
  test("has every default", () => {
    expect(read({ cron: "* * * * *" })).toMatchObject({
      overlap: "skip",
      missed: { run: "latest", withinMs: null, limit: 100 },
      afterFailure: null,
      graceMs: 30_000,
      priority: null,
      queue: null,
      tags: [],
    });
  });

  test("of a monitor waits five minutes by default, and has nothing that says how runs are made", () => {
    const monitor = { monitor: true, cron: "0 2 * * *" };
    expect(read(monitor)).toMatchObject({ monitor: true, graceMs: 300_000 });
    expect(read({ ...monitor, monitor: false })).toEqual(read({ cron: "0 2 * * *" }));
    expect(JSON.stringify(read({ cron: "0 2 * * *" }))).not.toContain("monitor");
    expect(fieldsRefused({ ...monitor, input: 1, overlap: "queue", missed: "all" })).toEqual([
      "s.input",
      "s.overlap",
      "s.missed",
    ]);
    expect(fieldsRefused({ monitor: true, every: "10m..15m" })).toEqual(["s.every"]);
    expect(fieldsRefused({ ...monitor, monitor: "yes" })).toEqual(["s.monitor"]);
    expect(fieldsRefused({ ...monitor, grace: "2d" })).toEqual(["s.grace"]);
  });

  test("takes short and long forms alike, members left out by their defaults", () => {
    const cron = "* * * * *";
    expect(read({ cron, missed: "all" })).toEqual(read({ cron, missed: { run: "all" } }));
    expect(read({ cron, missed: { within: "6h" } }).missed).toEqual({
      run: "latest",
      withinMs: 21_600_000,
      limit: 100,
    });
    expect(read({ cron, afterFailure: "30m" }).afterFailure).toEqual({
      minMs: 1_800_000,
      maxMs: 1_800_000,
    });
    expect(read({ cron, afterFailure: "20m..40m" }).afterFailure?.maxMs).toBe(2_400_000);
  });

  test("is equal JSON for equal options, in whatever order they are written", () => {
    const one = read({ cron: "0 2 * * *", overlap: "queue", grace: "1m", tags: ["a"] });
    const other = read({ tags: ["a"], grace: 60_000, overlap: "queue", cron: "0 2 * * *" });
    expect(JSON.stringify(one)).toBe(JSON.stringify(other));
  });
});

describe("problems", () => {
  const cron = "* * * * *";
  test.each([
    [{ cron, overlap: "Skip" }, "s.overlap"],
    [{ cron, missed: "newest" }, "s.missed"],
    [{ cron, missed: ["all"] }, "s.missed"],
    [{ cron, missed: null }, "s.missed"],
    [{ cron, missed: { run: "some" } }, "s.missed.run"],
    [{ cron, missed: { run: "all", limit: 0 } }, "s.missed.limit"],
    [{ cron, missed: { run: "all", limit: 1.5 } }, "s.missed.limit"],
    [{ cron, missed: { run: "all", limit: MISSED_LIMIT_MAX + 1 } }, "s.missed.limit"],
    [{ cron, missed: { within: "10ms" } }, "s.missed.within"],
    [{ cron, afterFailure: "40m..20m" }, "s.afterFailure"],
    [{ cron, grace: "100ms" }, "s.grace"],
    [{ cron, grace: "2d" }, "s.grace"],
    [{ cron, priority: 101 }, "s.priority"],
    [{ cron, queue: "" }, "s.queue"],
    [{ cron, tags: "eu" }, "s.tags"],
    [{}, "s.cron"],
    [{ cron, every: "1m" }, "s.every"],
  ])("in %j is named", (options, field) => {
    expect(fieldsRefused(options)).toEqual([field]);
  });

  test("in several places is named all at once", () => {
    const fields = fieldsRefused({
      cron: "61 * * * *",
      overlap: "no",
      grace: "x",
      priority: 1_000,
    });
    expect(fields).toEqual(["s.cron", "s.overlap", "s.grace", "s.priority"]);
  });

  test("in a misspelt member of missed suggest the right name", () => {
    expect(() => read({ cron, missed: { run: "all", limits: 3 } })).toThrow(/limits.*limit/s);
  });
});
