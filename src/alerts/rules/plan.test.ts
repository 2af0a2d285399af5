// Tests which alerts are opened, kept and resolved.

import { expect, test } from "vitest";
import type { AlertKind, Finding, OpenAlert } from "./alert.js";
import { APART_MAX, planAlerts } from "./plan.js";
import { type AlertRules, DEFAULT_RULES } from "./rules.js";

const NOW = 1_000_000_000;

function finding(name: string, kind: AlertKind = "silent", more: Partial<Finding> = {}): Finding {
  return { kind, subject: { type: "schedule", name }, message: "found", evidence: {}, ...more };
}

function open(name: string, kind: AlertKind = "silent", more: Partial<OpenAlert> = {}): OpenAlert {
  return { ...finding(name, kind), id: `id-${name}`, lastAt: NOW - 60_000, ...more };
}

function plan(found: Finding[], alerts: OpenAlert[], rules: AlertRules = DEFAULT_RULES) {
  const made = planAlerts({ found, open: alerts, rules, ownKinds: new Set(), now: NOW });
  return {
    ...made,
    names: made.opens.map(({ subject }) => subject.name),
    held: made.holds.map(({ id }) => id),
    over: made.resolves.map(({ alert }) => alert.id),
  };
}

test("opens new alerts, keeps those whose condition holds, and resolves the others", () => {
  const { names, held, over } = plan([finding("a"), finding("b")], [open("b"), open("c")]);
  expect({ names, held, over }).toEqual({ names: ["a"], held: ["id-b"], over: ["id-c"] });
});

test("the same subject with another kind is another alert; two reasons for one are one", () => {
  expect(plan([finding("a", "stuck")], [open("a")]).names).toEqual(["a"]);
  const twice = plan([finding("a"), finding("a", "silent", { message: "again" })], []);
  expect(twice.opens.map(({ message }) => message)).toEqual(["found"]);
});

test("alerts of rules that this instance does not have are left to other instances, and resolved after an hour", () => {
  const rules = { ...DEFAULT_RULES, running: null };
  expect(plan([], [open("runs", "running")], rules).over).toEqual([]);
  const old = open("runs", "running", { lastAt: NOW - 3_600_000 });
  const { resolves } = plan([], [old], rules);
  expect(resolves.map(({ message }) => message)).toEqual([
    "No instance has a rule for this any more.",
  ]);
});

test("too many new ones of a kind are one, those that were open stay, and other kinds are apart", () => {
  const crowd = Array.from({ length: APART_MAX + 5 }, (_, no) => finding(`s${no}`));
  const { names, held, over } = plan([...crowd, finding("x", "broken")], [open("s0")]);
  expect(names).toEqual(["x", "many schedules"]);
  expect(held).toEqual(["id-s0"]);
  expect(over).toEqual([]);
  const few = plan(crowd.slice(0, APART_MAX), []);
  expect(few.names).toHaveLength(APART_MAX);
});

test("the pause of a schedule stays in the evidence for as long as its alert is open", () => {
  const streak = open("s", "consecutiveFailures", { evidence: { pausedTickAt: 5 } });
  const rules = { ...DEFAULT_RULES, consecutiveFailures: { after: 3, pauseAfter: 5 } };
  const { holds } = plan([finding("s", "consecutiveFailures")], [streak], rules);
  expect(holds[0]?.finding).toMatchObject({
    message: "found The schedule was paused.",
    evidence: { pausedTickAt: 5 },
  });
});
