// That a seed is the same sequence of events whichever Node runs it.

import { expect, test } from "vitest";
import { HOW_TO_GET_ONE, otherNode } from "../../scripts/other-node.mjs";
import { runHalf } from "./half.js";

const other = otherNode();
if (!other) console.warn(`SKIPPED: seeds are not compared with another Node. ${HOW_TO_GET_ONE}`);

test.skipIf(!other)("the same seeds have the same event logs on another Node", async () => {
  const request = { from: 1, seeds: 5, budgetMs: 100_000 };
  const here = await runHalf(request);
  const there = await runHalf(request, other?.program);
  expect(there.hash).toBe(here.hash);
});
