// Checks how many runs under a rate may begin within its window, whenever they were claimed.

import fc from "fast-check";
import { expect, test } from "vitest";
import { NO_LIMITS } from "./rules/limits.js";
import { type Admission, BeginWindow } from "./slots.js";

function claimed(
  claimedMs: number,
  { limit = 2, perMs = 1_000, account = "a", key = null as string | null } = {},
) {
  const limits = { ...NO_LIMITS, rate: { limit, perMs, key } };
  const input = JSON.stringify({ account });
  return { job: { name: "study", limits }, run: { input }, claimedMs } as never;
}

test("a run without a rate always begins", () => {
  const window = new BeginWindow();
  const free = { job: { name: "study", limits: NO_LIMITS }, run: { input: "{}" }, claimedMs: 0 };
  for (let at = 0; at < 5; at += 1) expect(window.admit(free as never, 9_999)).toBe("begins");
});

test("runs whose claim waited begin late, and those of the next claim wait for their window", () => {
  const window = new BeginWindow();
  expect([1, 2].map(() => window.admit(claimed(0), 400))).toEqual(["begins", "begins"]);
  expect(window.admit(claimed(1_000), 1_003)).toEqual({ waitMs: 397 });
  expect(window.admit(claimed(1_000), 1_399)).toEqual({ waitMs: 1 });
  expect(window.admit(claimed(1_000), 1_400)).toBe("begins");
});

test("a claim that waited for longer than half of its window, and at most 2 s, goes back", () => {
  const window = new BeginWindow();
  expect(window.admit(claimed(0), 500)).toBe("begins");
  expect(window.admit(claimed(0), 501)).toBe("late");
  expect(window.admit(claimed(0, { perMs: 60_000 }), 2_001)).toBe("late");
  // A short window allows for the way to the database and back.
  expect(window.admit(claimed(0, { perMs: 100 }), 250)).toBe("begins");
});

test("each key has a window of its own where the rate is for each key", () => {
  const window = new BeginWindow();
  const of = (account: string) => claimed(0, { limit: 1, key: "account", account });
  const admissions = ["a", "b", "a"].map((account) => window.admit(of(account), 10));
  expect(admissions).toEqual(["begins", "begins", "late"]);
});

test("no window has more begins than the limit, whatever the delays", () => {
  const delays = fc.array(fc.record({ gap: fc.nat(700), delay: fc.nat(900) }), { maxLength: 60 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), delays, (limit, steps) => {
      const window = new BeginWindow();
      const begins: number[] = [];
      let nowMs = 0;
      for (const { gap, delay } of steps) {
        nowMs += gap;
        const admission: Admission = window.admit(claimed(nowMs - delay, { limit }), nowMs);
        if (admission === "begins") begins.push(nowMs);
      }
      for (const from of begins)
        expect(begins.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(
          limit,
        );
    }),
  );
});
