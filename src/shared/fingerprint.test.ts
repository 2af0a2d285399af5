// Errors that are the same for whoever has to mend them.

import { expect, test } from "vitest";
import { errorPattern } from "./failure.js";

test.for([
  ["connect ECONNREFUSED 10.0.0.7:5432", "connect ECONNREFUSED <n>.<n>:<n>"],
  ["order 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 is gone", "order <id> is gone"],
  ["not before 2026-01-31T09:00:00.000Z", "not before <time>"],
  ["address 0xDEADbeef01 refused", "address <hex> refused"],
  ["commit 4bf92f3577b34da6 not found", "commit <hex> not found"],
  ["took 12.5 s after 3 tries", "took <n> s after <n> tries"],
  ["the facade decided", "the facade decided"],
])("%j is like %j", ([message, pattern]) => {
  expect(errorPattern(message as string)).toBe(pattern);
});
