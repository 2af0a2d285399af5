// Did you mean …?

import { expect, test } from "vitest";
import { listShort, quoteShort, refuseUnknownMembers, suggest } from "./suggest.js";

const RETRY = ["attempts", "delay", "factor", "max", "jitter"];

test.each([
  ["attempt", "attempts"],
  ["Attempts", "attempts"],
  ["atempts", "attempts"],
  ["dealy", "delay"], // Swapped neighbours are one mistake, not two.
  ["jiter", "jitter"],
  ["maxx", "max"],
])("%s is taken for %s", (word, meant) => {
  expect(suggest(word, RETRY)).toBe(meant);
});

test.each([["backoff"], ["zzz"], [""], ["a".repeat(100_000)]])(
  "%s is taken for nothing",
  (word) => {
    expect(suggest(word, RETRY)).toBeUndefined();
  },
);

test("the nearest word wins, the first of equally near ones", () => {
  expect(suggest("send-mail", ["send-mails", "send-mail-2", "send-mail"])).toBe("send-mail");
  expect(suggest("cat", ["bat", "hat"])).toBe("bat");
});

test("every unknown member is named with its field, and known ones are not", () => {
  const problems = refuseUnknownMembers({ attempts: 3, dealy: "1s", zz: 1 }, RETRY, "retry");
  expect(problems.map(({ field }) => field)).toEqual(["retry.dealy", "retry.zz"]);
  expect(problems[0]?.message).toContain('Did you mean "delay"?');
  expect(problems[1]?.message).toBe("is not known. Known: attempts, delay, factor, max, jitter.");
});

test("members inherited from the prototype's names are unknown, not known", () => {
  const given: object = JSON.parse('{"__proto__":{"admin":1},"constructor":1}');
  expect(refuseUnknownMembers(given, RETRY, "retry").map(({ field }) => field)).toEqual([
    "retry.__proto__",
    "retry.constructor",
  ]);
});

test("neither a long word nor many words can flood a message", () => {
  expect(quoteShort("x".repeat(100_000)).length).toBeLessThan(80);
  expect(quoteShort('a"\n')).toBe('"a\\"\\n"');
  expect(listShort(Array.from({ length: 25 }, (_, i) => `job-${i}`))).toMatch(/job-19 and 5 more$/);
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`m${i}`, i]));
  expect(refuseUnknownMembers(many, RETRY, "retry").length).toBe(20);
});
