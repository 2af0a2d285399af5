// Where something is inside a value.

import { expect, test } from "vitest";
import { pathText } from "./problems.js";

test.each<[readonly (string | number | symbol)[], string]>([
  [[], "input"],
  [["market"], "input.market"],
  [["items", 2, "price"], "input.items[2].price"],
  [["odd key"], 'input["odd key"]'],
  [["a-b"], 'input["a-b"]'],
  [["10"], 'input["10"]'],
  [[""], 'input[""]'],
  [['"\n'], 'input["\\"\\n"]'],
  [[Symbol("s")], "input[Symbol(s)]"],
])("%o is written %s", (segments, text) => {
  expect(pathText("input", segments)).toBe(text);
});

test("neither a deep place nor a long key makes a long path", () => {
  const deep = pathText("input", new Array(1_000).fill("x".repeat(100_000)));
  expect(deep.length).toBeLessThan(2_000);
  expect(deep.endsWith("…")).toBe(true);
});
