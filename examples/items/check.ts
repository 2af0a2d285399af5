// Plays a night with one market that is down for good, and one with a market that comes back.

import assert from "node:assert/strict";
import { newStudies } from "./studies.js";

const looks: string[] = [];
const { holdfast, study } = newStudies("sqlite:studies.db", async (market) => {
  looks.push(market);
  const count = looks.filter((each) => each === market).length;
  if (market === "atlantis" || (market === "north" && count < 3)) throw new Error("no answer");
  return { listings: market === "south" ? 0 : 7 };
});
await holdfast.start();

async function outcome(markets: string[], isStrict: boolean) {
  const { id } = await study.enqueue({ markets, isStrict });
  return holdfast.runs.wait(id, { timeout: "5m" });
}

// One failure is recorded: the run is completed, in part.
const partial = await outcome(["east", "south", "atlantis", "west"], false);
assert.equal(partial.status, "completed");
assert.equal(partial.partial, true);
assert.deepEqual(partial.result, { listings: 14 });
assert.deepEqual(partial.items, {
  total: 4,
  byOutcome: { NOTHING: 1, OPPORTUNITIES: 2, failed: 1 },
});
const { items } = await holdfast.runs.items(partial.id, { outcome: "failed" });
assert.deepEqual(
  items.map(({ key, error }) => [key, error?.message]),
  [["atlantis", "no answer"]],
);
const slowest = await holdfast.runs.items(partial.id, { sort: "slowest", limit: 1 });
assert.equal(slowest.items.length, 1);

// Retried until it works: done items are not repeated.
looks.length = 0;
const whole = await outcome(["east", "north", "west"], true);
assert.equal(whole.status, "completed");
assert.equal(whole.attempt, 3);
assert.equal(whole.partial, false);
assert.deepEqual(looks, ["east", "north", "north", "north", "west"]);

await holdfast.stop();
