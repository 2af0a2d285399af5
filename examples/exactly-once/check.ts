// Moves money while attempts fail after the move: the move is rolled back, and happens once in the end.

import assert from "node:assert/strict";
import { newBank } from "./transfers.js";

const { holdfast, open, transfer, balance } = newBank("sqlite:bank.db", (attempt) => {
  // As late as possible: both accounts are changed, and the run is about to be completed.
  if (attempt < 3) throw new Error("the power went off");
});
await holdfast.start();

async function ended(enqueued: Promise<{ id: string }>) {
  const { id } = await enqueued;
  const { status, attempt, result, error } = await holdfast.runs.wait(id, { timeout: "5m" });
  return { status, attempt, result, error: error?.message };
}

await ended(open.enqueue(null));
assert.deepEqual(await ended(transfer.enqueue({ from: "ada", to: "ben", cents: 2500 })), {
  status: "completed",
  attempt: 3,
  result: { moved: 2500 },
  error: undefined,
});
// A refusal by the function is final, and changes nothing.
assert.deepEqual(await ended(transfer.enqueue({ from: "ben", to: "ada", cents: 9900 })), {
  status: "failed",
  attempt: 1,
  result: null,
  error: "ben does not have 9900 cents",
});
assert.deepEqual((await ended(balance.enqueue("ada"))).result, { cents: 7500 });
assert.deepEqual((await ended(balance.enqueue("ben"))).result, { cents: 2500 });

await holdfast.stop();
