// Sixty seeds, for every change; the campaign has other seeds, and more. Two processes have half of them each.

import { expect, test } from "vitest";
import { runHalf } from "./half.js";

const SEEDS = 60;
const FROM = 100_001;
/** Only for a seed that never ends: what is run is the number of seeds, however slow the machine. */
const PATIENCE_MS = 400_000;

test("no seed of sixty breaks a promise", async () => {
  const half = { seeds: SEEDS / 2, budgetMs: PATIENCE_MS };
  const halves = await Promise.all([
    runHalf({ ...half, from: FROM }),
    runHalf({ ...half, from: FROM + SEEDS / 2 }),
  ]);
  expect(halves.flatMap(({ violations }) => violations)).toEqual([]);
  expect(halves.flatMap(({ few }) => few)).toEqual([]);
  expect(halves.map(({ seeds }) => seeds)).toEqual([SEEDS / 2, SEEDS / 2]);
});
