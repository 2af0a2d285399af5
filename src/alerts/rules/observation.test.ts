// The rate of a job without the runs of schedules that do not count for it.

import { expect, test } from "vitest";
import { apartOf, hoursRead, withoutApart } from "./observation.js";

const HOUR = 3_600_000;
const row = { schedule: "s", job: "study", hourAt: 10 * HOUR, oldestAt: 9 * HOUR, ticks: 5 };

test("only schedules with a rule of their own are read, and only where their job has failures", () => {
  const off = { failureRate: null };
  const schedules = [
    { name: "off", job: "study", rules: off },
    { name: "other", job: "study", rules: { stale: null } },
    { name: "fine", job: "mail", rules: off },
  ];
  const rates = [
    { name: "study", completed: 3, failed: 1 },
    { name: "mail", completed: 3, failed: 0 },
  ];
  expect(apartOf(schedules, rates)).toEqual({ schedules: ["off"], limit: 30_000 });
});

test("runs that were read are taken out of the rate of their job, and of no other", () => {
  const rows = [{ ...row, completed: 1, failed: 4 }];
  const of = (name: string) => withoutApart({ name, completed: 10, failed: 5 }, rows, 0);
  expect(of("study")).toEqual({ name: "study", completed: 9, failed: 1 });
  expect(of("mail")).toEqual({ name: "mail", completed: 10, failed: 5 });
});

test("of a schedule with more ticks than were read, the job is judged from the first whole hour that was", () => {
  const rows = [
    { ...row, completed: 1, failed: 4, oldestAt: 9 * HOUR + 1 },
    { ...row, schedule: "few", ticks: 2, completed: 1, failed: 1 },
  ];
  expect(hoursRead(rows, { limit: 6, sinceAt: 0 }).get("study")).toBe(null);
  expect(hoursRead(rows, { limit: 5, sinceAt: 0 }).get("study")).toBe(10 * HOUR);
  expect(hoursRead(rows, { limit: 5, sinceAt: 9 * HOUR + 1 }).get("study")).toBe(null);
  const rate = { name: "study", completed: 10, failed: 5 };
  expect(withoutApart(rate, rows, 11 * HOUR)).toEqual(rate);
});
