// The hints of claims, stepped by hand.

import { expect, test } from "vitest";
import type { Clock } from "../../shared/ports.js";
import { firstIdAt } from "../retention.js";
import { ALL_DAYS, ClaimedDays, ClaimScanStart, FROM_THE_START } from "./claim-hints.js";

// ── where a claim starts to read the index ───────────────────────────────────────────────────────

const SCOPE = "false null noop";

function place() {
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs } as Clock;
  const bound = new ClaimScanStart(clock);
  const claim = (params: { limit: number; count: number; head: string; tookMs?: number }) => {
    const low = bound.low(SCOPE);
    bound.saw({ scope: SCOPE, low, tookMs: 1, ...params });
    return low;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { claim, pass, low: () => bound.low(SCOPE) };
}

test("a small claim looks at everything, so an urgent run is never passed by", () => {
  const { claim, low } = place();
  claim({ limit: 10, count: 10, head: "500" });
  expect(low()).toBe(FROM_THE_START);
});

test("a bulk claim that got all it asked for begins the next one where it saw the oldest run", () => {
  const { claim, low } = place();
  claim({ limit: 1_000, count: 1_000, head: "500" });
  expect(low()).toBe("500");
});

test("a claim that came back short makes the next one look at everything", () => {
  const { claim, low } = place();
  claim({ limit: 1_000, count: 1_000, head: "500" });
  claim({ limit: 1_000, count: 999, head: "700" });
  expect(low()).toBe(FROM_THE_START);
});

test("everything is looked at again after half a second, however long the drain goes on", () => {
  const { claim, pass, low } = place();
  for (let round = 0; round < 5; round += 1) {
    claim({ limit: 1_000, count: 1_000, head: String(500 + round) });
    pass(100);
  }
  expect(low()).toBe(FROM_THE_START);
});

test("looking back takes no more than a tenth of the time, however much lies behind", () => {
  const { claim, pass, low } = place();
  claim({ limit: 1_000, count: 1_000, head: "500", tookMs: 300 });
  pass(2_999);
  expect(low()).toBe("500");
  pass(1);
  expect(low()).toBe(FROM_THE_START);
});

// ── which days hold the runs ─────────────────────────────────────────────────────────────────────

const NOON = Date.UTC(2026, 10, 19, 12);

function daysAtNoon() {
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs, wallMs: () => NOON + nowMs } as Clock;
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { days: new ClaimedDays(clock), pass };
}

test("a claim looks into the two days before today, today and tomorrow", () => {
  const { days } = daysAtNoon();
  expect(days.range()).toEqual({
    idsFrom: firstIdAt(Date.UTC(2026, 10, 17)),
    idsUntil: firstIdAt(Date.UTC(2026, 10, 21)),
  });
});

test("after a claim of an older run, claims look into all days for a minute", () => {
  const { days, pass } = daysAtNoon();
  days.missed();
  expect(days.range()).toEqual(ALL_DAYS);
  pass(59_999);
  expect(days.range()).toEqual(ALL_DAYS);
  pass(1);
  expect(days.range()).not.toEqual(ALL_DAYS);
});
