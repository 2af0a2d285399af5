// Plays three orders in virtual time: one is approved by its link, one by a signal after its reminder, one never.

import assert from "node:assert/strict";
import { createTestHoldfast } from "holdfast/testing";
import { APPROVED, approvals } from "./approval.js";

const done: string[] = [];
const links = new Map<string, string>();
const kit = await createTestHoldfast({
  setup: (holdfast) =>
    approvals(
      holdfast,
      {
        ask: async (order, link) => {
          done.push(`ask ${order}`);
          links.set(order, link);
        },
        remind: async (order) => void done.push(`remind ${order}`),
        ship: async (order) => {
          done.push(`ship ${order}`);
          return { parcel: `parcel of ${order}` };
        },
      },
      "https://shop.example.com",
    ),
});
await kit.start();
const runs = await kit.app.job.enqueueMany([{ order: "1" }, { order: "2" }, { order: "3" }]);

await kit.advance("1h");
const link = String(links.get("1"));
const open = (body?: FormData) =>
  kit.app.page(new Request(link, body ? { method: "POST", body } : {}));
assert.match(await (await open()).text(), /Ship this order\?/);
const answer = (value: string) => {
  const form = new FormData();
  form.set("answer", value);
  return open(form).then((response) => response.text());
};
assert.equal(await answer("yes"), "Thank you.");
assert.equal(await answer("no"), "This order was answered before.");
// The dashboard shows the link with the log lines of the run.
const { lines } = await kit.holdfast.runs.logs(String(runs[0]?.id));
assert.ok(lines.some(({ message }) => message.includes(link)));
await kit.advance("25h");
const key = String(links.get("2")?.split("/").at(-1));
await kit.signal(APPROVED, { key, value: true });
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
