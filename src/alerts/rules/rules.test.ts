// Rules of alerts: what is left out takes its default, and every wrong member is named.

import { expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { readAlerts } from "../alert-options.js";
import { DEFAULT_RULES, readScheduleAlerts, writeScheduleAlerts } from "./rules.js";

function problemsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigurationError)
      return error.problems.map(({ field, message }) => `${field} ${message}`);
    throw error;
  }
  return [];
}

test("the usual alerts are on, and running, slow, streaks and slow claims are not", () => {
  expect(readAlerts(undefined)?.rules).toEqual(DEFAULT_RULES);
  const on = Object.entries(DEFAULT_RULES).filter(([, rule]) => rule !== null);
  expect(on.map(([kind]) => kind)).toEqual([
    ...["stale", "failureRate", "silent", "stuck", "broken", "skipped", "noWorker", "clockSkew"],
  ]);
  expect(readAlerts(false)).toBeNull();
});

test("the values of a night of market studies are read as they are written", () => {
  const config = readAlerts({
    stale: "10m",
    failureRate: { above: 0.2, over: "24h" },
    running: { above: 5 },
    slow: { perItem: "3m", total: "30m" },
    consecutiveFailures: { pauseAfter: 5 },
    noWorker: false,
  });
  expect(config?.rules).toMatchObject({
    stale: 600_000,
    failureRate: { above: 0.2, overMs: 86_400_000, atLeast: 5 },
    running: { above: 5 },
    slow: { perItemMs: 180_000, totalMs: 1_800_000 },
    consecutiveFailures: { after: 5, pauseAfter: 5 },
    noWorker: null,
    silent: DEFAULT_RULES.silent,
  });
});

test("every wrong member is named at once, with a right example and without its secret", () => {
  const problems = problemsOf(() =>
    readAlerts({
      stael: "10m",
      stale: "10",
      failureRate: { above: 20 },
      running: 5,
      slow: {},
      stuck: "yes",
      consecutiveFailures: { after: 5, pauseAfter: 3 },
      to: [
        "slack",
        { slack: "https://hooks.slack.example/secret", webhook: "https://a.example" },
        { webhook: "ftp://a.example/secret", secret: "secret" },
        { email: "ops", from: "a\r\nBcc: b@c.d", smtp: "http://secret" },
      ],
      heartbeatUrl: { url: "http://127.0.0.1/secret", token: "a secret" },
    }),
  );
  const named = problems.map((problem) => problem.split(" ")[0]);
  expect(named).toEqual([
    "alerts.stael",
    "alerts.stale",
    "alerts.failureRate.above",
    "alerts.running",
    "alerts.slow",
    "alerts.stuck",
    "alerts.consecutiveFailures.pauseAfter",
    "alerts.to[0]",
    "alerts.to[1]",
    "alerts.to[2].webhook",
    "alerts.to[2].secret",
    "alerts.to[3].email",
    "alerts.to[3].from",
    "alerts.to[3].smtp",
    "alerts.heartbeatUrl",
    "alerts.heartbeatUrl.token",
  ]);
  expect(problems[0]).toContain('Did you mean "stale"?');
  expect(problems[2]).toContain("from 0 to 1, for example 0.2");
  expect(problems[3]).toContain("{ above: 5 }");
  expect(problems.join("\n")).not.toMatch(/example\/secret|a secret|http:\/\/secret/);
});

test("options that are none at all are refused", () => {
  for (const wrong of [true, null, "10m", []])
    expect(problemsOf(() => readAlerts(wrong))).toHaveLength(1);
});

test("a schedule keeps only the rules that it has, and says them as they were written", () => {
  const options = { slow: { total: "1h" }, silent: false, stale: "90s", broken: true } as const;
  const rules = readScheduleAlerts(options, "alerts");
  expect(rules).toEqual({
    stale: 90_000,
    slow: { perItemMs: null, totalMs: 3_600_000 },
    silent: null,
    broken: true,
  });
  expect(writeScheduleAlerts(rules)).toEqual(options);
  const none = readScheduleAlerts(false, "alerts");
  expect(new Set(Object.values(none))).toEqual(new Set([null]));
  expect(readScheduleAlerts(writeScheduleAlerts(none), "alerts")).toEqual(none);
});

test("a schedule has no say about instances and the database", () => {
  const problems = problemsOf(() => readScheduleAlerts({ clockSkew: "5s", stale: 0 }, "alerts"));
  expect(problems.map((each) => each.split(" ")[0])).toEqual(["alerts.clockSkew", "alerts.stale"]);
  expect(problemsOf(() => readScheduleAlerts("10m", "alerts"))).toHaveLength(1);
});
