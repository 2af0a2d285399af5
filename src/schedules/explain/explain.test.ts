// The words of an explanation: every reason has its own, and no fact that is missing breaks a sentence.
// What the engine really brings about is in test/engine/explain-suite.ts.

import { expect, test } from "vitest";
import { readSchedule } from "../rules/schedule.js";
import { type Evidence, OUTCOME_OF, REASONS, type Reason } from "../rules/tick.js";
import { explainNoTick, explainRecorded, explainUnknowable } from "./explain.js";
import type { NoTickFacts, RecordedFacts, StandingFacts } from "./facts.js";
import type { RunFacts } from "./run.js";

const CREATED_AT = Date.UTC(2026, 0, 1);
const AT = Date.UTC(2026, 0, 15, 1);
const MINUTE_MS = 60_000;

const READING = {
  field: "",
  nowMs: CREATED_AT,
  calendar: () => undefined,
  calendarNames: [],
};

const STANDING: StandingFacts = {
  paused: null,
  allPaused: null,
  broken: null,
  hold: null,
  isEnded: false,
  isJobKnown: true,
  live: [],
};

function recorded(reason: Reason, more: Partial<RecordedFacts> = {}): RecordedFacts {
  const options = { cron: "0 2 * * *", timezone: "Europe/Paris", afterFailure: "20m..40m" };
  const definition = readSchedule(options, READING);
  return {
    schedule: "nightly",
    job: "backup",
    at: AT,
    now: AT + 60 * MINUTE_MS,
    rule: {
      version: { version: 1, kind: "created", at: CREATED_AT, by: null },
      definition,
      anchorAt: CREATED_AT,
      isCurrent: true,
    },
    drawn: null,
    standing: STANDING,
    backfills: [],
    ledger: ledger(reason),
    run: null,
    obstacle: null,
    replacedBy: null,
    ...more,
  };
}

function ledger(reason: Reason, evidence: Evidence | null = null): RecordedFacts["ledger"] {
  const run = OUTCOME_OF[reason] === "fired" ? "run-1" : null;
  const recordedAt = AT + 5 * MINUTE_MS;
  const count = 1;
  return {
    firstAt: AT,
    lastAt: AT,
    count,
    reason,
    run,
    evidence,
    recordedAt,
    recordedBy: "host:1",
  };
}

function run(more: Partial<RunFacts> = {}): RunFacts {
  return {
    id: "run-1",
    mode: "scheduled",
    status: "failed",
    nominalAt: AT,
    createdAt: AT,
    dueAt: AT,
    startedAt: AT,
    finishedAt: AT + 1_000,
    attempt: 9,
    attemptsMax: 9,
    holder: "host:1",
    leaseUntil: null,
    cancelRequestedAt: null,
    error: "boom",
    attempts: [],
    waitsFor: [],
    ...more,
  };
}

test("every reason has a sentence and a policy of its own, also without any evidence", () => {
  const said = REASONS.map((reason) => explainRecorded(recorded(reason)));
  expect(said.map(({ outcome, reason }) => ({ outcome, reason }))).toEqual(
    REASONS.map((reason) => ({ outcome: OUTCOME_OF[reason], reason })),
  );
  expect(said.map(({ text }) => text.replace(/^The tick .+? was /, ""))).toMatchInlineSnapshot(`
    [
      "fired on time; its run is no longer kept.",
      "fired 5 min late, as the most recent missed tick; its run is no longer kept.",
      "fired 5 min late, as one of the missed ticks that are run in order; its run is no longer kept.",
      "fired 5 min late, since the schedule was stuck: no next tick was stored, and no instance evaluated it; its run is no longer kept.",
      "skipped: an earlier run was still live.",
      "skipped: an earlier run was already waiting.",
      "skipped: an earlier run had failed, and ticks were held back.",
      "skipped: the schedule was paused.",
      "missed: no instance evaluated it until 2026-01-15 02:05 Europe/Paris, and the missed policy does not run it late.",
      "missed: no instance evaluated it until it was 5 min old, which exceeds \`within\`.",
      "missed: no instance evaluated it in time, and only the newest missed ticks are run late.",
      "missed: the schedule could not be evaluated: no reason was kept.",
      "missed: no check-in arrived in time.",
    ]
  `);
  expect(new Set(said.map(({ text }) => text)).size).toBe(REASONS.length);
  for (const { text, evidence } of said) {
    for (const line of [text, ...evidence]) {
      expect(line).toMatch(/^\S.*[^.]\.$/);
      expect(line).not.toMatch(/undefined|null|NaN|Invalid/);
    }
    expect(evidence.filter((line) => line.startsWith("Policy: "))).toHaveLength(1);
  }
});

test("a missing ping is missed, and says so", () => {
  expect(explainRecorded(recorded("no_ping"))).toMatchInlineSnapshot(`
    {
      "evidence": [
        "Tick: 2026-01-15T01:00:00.000Z, which is 2026-01-15 02:00 Europe/Paris, UTC+01:00.",
        "Definition: "0 2 * * *", at 02:00 every day, Europe/Paris; version 1, created 2026-01-01 01:00 Europe/Paris.",
        "Ledger: missed (no_ping), recorded 2026-01-15 02:05 Europe/Paris, 5 min after the tick, by host:1.",
        "Policy: a monitor expects a check-in within the grace of 30 seconds after the tick, or after the reported start; a tick without a check-in is missed.",
      ],
      "outcome": "missed",
      "reason": "no_ping",
      "text": "The tick of "nightly" at 2026-01-15 02:00 Europe/Paris was missed: no check-in arrived in time.",
    }
  `);
});

test("a definition that cannot be read still leaves a sentence for every reason", () => {
  const rule = { ...recorded("on_time").rule, definition: null };
  for (const reason of REASONS) {
    const { text, evidence } = explainRecorded(recorded(reason, { rule }));
    expect(text).toContain("2026-01-15 01:00 UTC");
    expect(evidence.join("\n")).not.toMatch(/undefined|null|NaN/);
  }
});

test("an instance that polled without evaluating the tick is distinguished from an absent one", () => {
  const lines = (lastPolledAt: number | null) =>
    explainRecorded(recorded("nobody", { ledger: ledger("nobody", { lastPolledAt }) })).evidence;
  expect(lines(AT + MINUTE_MS)).toContain(
    "Last poll: an instance with the scheduler on polled at 2026-01-15 02:01 Europe/Paris, after the tick, without evaluating it; the next poll was at 2026-01-15 02:05 Europe/Paris.",
  );
  expect(lines(null)).toContain(
    "Last poll: no earlier poll of an instance with the scheduler on is known.",
  );
});

test("an error of many lines becomes one that is not too long, and many attempts a few", () => {
  const attempts = Array.from({ length: 9 }, (_, index) => ({
    attempt: index + 1,
    holder: "host:1",
    end: index === 8 ? ("failed" as const) : ("lost" as const),
    startedAt: AT,
    endedAt: AT + 1_000,
    error: index === 8 ? `first line\n  second line ${"x".repeat(1_000)}` : null,
  }));
  const error = `first line\n  second line ${"x".repeat(1_000)}`;
  const { text, evidence } = explainRecorded(
    recorded("on_time", { run: run({ attempts, error }) }),
  );
  expect(text).toContain("its run failed at attempt 9 of 9: first line second line xxx");
  expect(text).not.toContain("\n");
  expect(text.length).toBeLessThan(500);
  expect(
    evidence.filter((line) => line.startsWith("Attempt")).map((line) => line.slice(0, 80)),
  ).toMatchInlineSnapshot(`
    [
      "Attempts of run run-1: 4 earlier ones are not shown.",
      "Attempt 5 of run run-1: was lost, as its holder stopped responding, at 2026-01-1",
      "Attempt 6 of run run-1: was lost, as its holder stopped responding, at 2026-01-1",
      "Attempt 7 of run run-1: was lost, as its holder stopped responding, at 2026-01-1",
      "Attempt 8 of run run-1: was lost, as its holder stopped responding, at 2026-01-1",
      "Attempt 9 of run run-1: failed at 2026-01-15 02:00:01 Europe/Paris after 1 s, he",
    ]
  `);
});

test("a drawn tick names the run whose end drew it, or says that it was not drawn", () => {
  const options = { every: "10m..15m" };
  const definition = readSchedule(options, READING);
  const rule = { ...recorded("on_time").rule, definition };
  const line = (finishedAt: number | null) =>
    explainRecorded(
      recorded("on_time", { rule, drawn: { run: "run-0", finishedAt, hasFailed: false } }),
    ).evidence.find((each) => each.startsWith("Definition"));
  expect(
    [AT - 12 * MINUTE_MS, AT - 90 * MINUTE_MS, AT + MINUTE_MS, null].map(line),
  ).toMatchInlineSnapshot(`
    [
      "Definition: 10 to 15 minutes after the last run ended: drawn 12 min after the end of run run-0 at 2026-01-15 00:48 UTC; version 1, created 2026-01-01 00:00 UTC.",
      "Definition: 10 to 15 minutes after the last run ended: set by a resume, an edit or the end of excluded time, 1 h 30 min after the end of run run-0 at 2026-01-14 23:30 UTC; version 1, created 2026-01-01 00:00 UTC.",
      "Definition: 10 to 15 minutes after the last run ended: the upper bound after the previous tick was recorded, as run run-0 had not ended by then; version 1, created 2026-01-01 00:00 UTC.",
      "Definition: 10 to 15 minutes after the last run ended: the upper bound after the previous tick was recorded; a new time is drawn when run run-0 ends; version 1, created 2026-01-01 00:00 UTC.",
    ]
  `);
});

test("an interval that is drawn has no ticks while its schedule is paused", () => {
  const definition = readSchedule({ every: "10m..15m" }, READING);
  const facts: NoTickFacts = {
    ...recorded("on_time"),
    rule: { ...recorded("on_time").rule, definition },
    isInPattern: false,
    excludedBy: null,
    before: null,
    after: null,
    others: [],
    created: null,
    deleted: null,
    standing: { ...STANDING, paused: { at: AT - MINUTE_MS, by: "ann", note: null } },
  };
  expect(explainNoTick(facts).text).toMatchInlineSnapshot(
    `"2026-01-15 01:00 UTC is not a tick of "nightly": the schedule has been paused by ann since 2026-01-15 00:59 UTC."`,
  );
  expect(explainUnknowable({ ...facts, standing: STANDING }).text).toMatchInlineSnapshot(
    `"Whether "nightly" has a tick at 2026-01-15 01:00 UTC cannot be known: each of its ticks is drawn when the previous run has ended."`,
  );
});
