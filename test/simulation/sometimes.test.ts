// After how many seeds a rare state that was never reached is a failure.

import { expect, test } from "vitest";
import { missing, SOMETIMES } from "../../src/testing/simulator/index.js";

test("a rare state counts as missed as soon as there were enough seeds to reach it", () => {
  const missed = (seeds: number, counters = {}) => missing({ seeds, counters });
  expect(missed(99)).toEqual([]);
  expect(missed(100)).toContain("takeover-from-the-dead");
  expect(missed(100, { "takeover-from-the-dead": 1 })).not.toContain("takeover-from-the-dead");
  expect(missed(299)).not.toContain("lost-commit");
  expect(missed(300)).toContain("lost-commit");
  expect(missed(9_999)).not.toContain("stuck-reset");
  expect(missed(10_000)).toEqual(Object.keys(SOMETIMES));
});

test("every rare state has words", () => {
  for (const text of Object.values(SOMETIMES)) expect(text).toMatch(/^[a-z].{15,}/);
});
