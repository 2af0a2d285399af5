// Runs the example: one charge that succeeds, one that fails for good.

import assert from "node:assert/strict";
import { alerts, charge, counts, holdfast } from "./jobs.js";

await holdfast.start();
const good = await charge.enqueue({ account: "open" });
const bad = await charge.enqueue({ account: "closed" }, { tags: ["eu"] });
const [paid, refused] = await Promise.all([
  holdfast.runs.wait(good.id, { timeout: "5m" }),
  holdfast.runs.wait(bad.id, { timeout: "5m" }),
]);
assert.deepEqual(paid.result, { receipt: good.id });
assert.equal(refused.status, "failed");
assert.deepEqual(counts, { completed: 1, retried: 1, failed: 1 });
assert.deepEqual(alerts, ["charge [eu]: The account is closed."]);
const { lines } = await holdfast.runs.logs(bad.id);
assert.deepEqual(
  lines.map(({ attempt, message }) => [attempt, message]),
  [
    [1, "charging"],
    [2, "charging"],
  ],
);
await holdfast.stop();
