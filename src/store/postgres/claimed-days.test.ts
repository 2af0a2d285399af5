// The days that a claim looks into, stepped by hand.

import { expect, test } from "vitest";
import type { Clock } from "../../shared/ports.js";
import { firstIdAt } from "../retention.js";
import { ALL_DAYS, ClaimedDays } from "./claimed-days.js";

const NOON = Date.UTC(2026, 10, 19, 12);

function place() {
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs, wallMs: () => NOON + nowMs } as Clock;
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { days: new ClaimedDays(clock), pass };
}

test("a claim looks into the two days before today, today and tomorrow", () => {
  const { days } = place();
  expect(days.range()).toEqual({
    idsFrom: firstIdAt(Date.UTC(2026, 10, 17)),
    idsUntil: firstIdAt(Date.UTC(2026, 10, 21)),
  });
});

test("after a claim of an older run, claims look into all days for a minute", () => {
  const { days, pass } = place();
  days.missed();
  expect(days.range()).toEqual(ALL_DAYS);
  pass(59_999);
  expect(days.range()).toEqual(ALL_DAYS);
  pass(1);
  expect(days.range()).not.toEqual(ALL_DAYS);
});
