// Plays three orders in virtual time: one is approved at once, one after its reminder, one never.

import assert from "node:assert/strict";
import { createTestHoldfast } from "holdfast/testing";
import { APPROVED, approvals } from "./approval.js";

const done: string[] = [];
const kit = await createTestHoldfast({
  setup: (holdfast) =>
    approvals(holdfast, {
      ask: async (order) => void done.push(`ask ${order}`),
      remind: async (order) => void done.push(`remind ${order}`),
      ship: async (order) => {
        done.push(`ship ${order}`);
        return { parcel: `parcel of ${order}` };
      },
    }),
});
await kit.start();
const runs = await kit.app.enqueueMany([{ order: "1" }, { order: "2" }, { order: "3" }]);

await kit.advance("1h");
await kit.signal(APPROVED, { key: "1", value: true });
await kit.advance("25h");
await kit.signal(APPROVED, { key: "2", value: true });
await kit.untilIdle({ within: "3d" });

const results = await Promise.all(runs.map(({ id }) => kit.holdfast.runs.get(id)));
assert.deepEqual(
  results.map((run) => run?.result),
  [
    { isShipped: true, parcel: "parcel of 1" },
    { isShipped: true, parcel: "parcel of 2" },
    { isShipped: false },
  ],
);
// Each step was done once, however often the handler began again.
assert.deepEqual(done.sort(), [
  "ask 1",
  "ask 2",
  "ask 3",
  "remind 2",
  "remind 3",
  "ship 1",
  "ship 2",
]);
await kit.stop();
