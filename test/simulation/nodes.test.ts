// Proves that a seed is the same sequence of events on every version of Node.

import { expect, test } from "vitest";
import { HOW_TO_GET_ONE, otherNode } from "../../scripts/other-node.mjs";
import { runHalf } from "./half.js";

const other = otherNode();
if (!other) console.warn(`SKIPPED: seeds are not compared with another Node. ${HOW_TO_GET_ONE}`);

/** Only for a seed that never ends: what is compared is the number of seeds, however slow the machine. */
const PATIENCE_MS = 300_000;

test.skipIf(!other)(
  "the same seeds have the same event logs on another Node",
  {
    timeout: 2 * PATIENCE_MS,
  },
  async () => {
    const request = { from: 1, seeds: 5, budgetMs: PATIENCE_MS };
    const [here, there] = await Promise.all([runHalf(request), runHalf(request, other?.program)]);
    expect([here.seeds, there.seeds]).toEqual([5, 5]);
    expect(there.hash).toBe(here.hash);
  },
);
