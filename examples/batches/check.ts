// Plays a night with one bad entry and two addresses that fail, and the morning after it.

import assert from "node:assert/strict";
import { PermanentError } from "holdfast";
import { newReconciliation } from "./reconciliation.js";

const all = [...Array.from({ length: 42 }, (_, at) => `0x${at}`), "not an address"];
const broken = new Set(["0x7", "0x11"]);
const done: string[] = [];

const { holdfast, reports, start } = newReconciliation("sqlite:reconciliation.db", {
  addresses: async () => all,
  reconcile: async (address) => {
    if (broken.has(address)) throw new PermanentError(`no ledger for ${address}`);
    done.push(address);
    return { corrections: 0 };
  },
});
await holdfast.start();

// The run itself ends as soon as its children are stored: partial success is a valid result.
const { id } = await start("2030-01-15");
const night = await holdfast.runs.wait(id, { timeout: "5m" });
assert.equal(night.status, "completed");
const answer = night.result as { scheduled: number; errors: { index: number; code: string }[] };
assert.equal(answer.scheduled, 42);
assert.deepEqual(
  answer.errors.map(({ index, code }) => [index, code]),
  [[42, "INPUT_INVALID"]],
);

/** The run that follows the batch, once it exists and has ended. */
async function reported() {
  for (;;) {
    const [batch] = await holdfast.runs.batches(id);
    if (batch?.then) return holdfast.runs.wait(batch.then, { timeout: "5m" });
    const { runs } = await holdfast.runs.children(id, { status: "running", limit: 1 });
    if (runs[0]) await holdfast.runs.wait(runs[0].id, { timeout: "5m" });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
await reported();
assert.deepEqual(reports, [{ scheduled: 42, errors: 1, completed: 40, failed: 2, cancelled: 0 }]);

// In the morning: what failed, and why.
const { runs: failed } = await holdfast.runs.children(id, { status: "failed" });
assert.deepEqual(failed.map(({ error }) => error?.message).sort(), [
  "no ledger for 0x11",
  "no ledger for 0x7",
]);

// The ledgers are repaired: all failed children get one more attempt.
broken.clear();
assert.deepEqual(await holdfast.runs.retryFailed(id), { retried: 2 });
for (const run of failed) await holdfast.runs.wait(run.id, { timeout: "5m" });
const [batch] = await holdfast.runs.batches(id);
assert.deepEqual([batch?.completed, batch?.failed], [42, 0]);
assert.equal(new Set(done).size, 42);
assert.equal(done.length, 42);

// The report was made once, and a second request for the same day is the same run.
assert.equal(reports.length, 1);
assert.equal((await start("2030-01-15")).id, id);

await holdfast.stop();
