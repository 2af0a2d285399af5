// Plays every response of the bank, and a caller who pays twice.

import assert from "node:assert/strict";
import { KeyConflictError } from "holdfast";
import { type Bank, newShop } from "./payments.js";

const calls: { order: string; key: string }[] = [];
const bank: Bank = async ({ order }, key) => {
  calls.push({ order, key });
  const count = calls.filter((call) => call.order === order).length;
  if (order === "flaky" && count < 3) throw Object.assign(new Error("hung up"), { code: "EPIPE" });
  if (order === "refused") return { status: "refused", reference: "" };
  if (order === "evening" && count < 3) return { status: "closed", reference: "" };
  return { status: "paid", reference: `ref-${order}` };
};

const { holdfast, pay } = newShop("sqlite:payments.db", bank);
await holdfast.start();

async function outcome(order: string) {
  const { id } = await pay(order, 1900);
  const { status, attempt, result, error } = await holdfast.runs.wait(id, { timeout: "5m" });
  return { status, attempt, result, error: error?.code };
}

assert.deepEqual(await outcome("simple"), {
  status: "completed",
  attempt: 1,
  result: { reference: "ref-simple" },
  error: undefined,
});
// Two attempts failed, the third one counted.
assert.deepEqual(await outcome("flaky"), {
  status: "completed",
  attempt: 3,
  result: { reference: "ref-flaky" },
  error: undefined,
});
// A refusal is final.
assert.deepEqual(await outcome("refused"), {
  status: "failed",
  attempt: 1,
  result: null,
  error: "PERMANENT",
});
// Coming back later cost no attempt.
assert.deepEqual(await outcome("evening"), {
  status: "completed",
  attempt: 1,
  result: { reference: "ref-evening" },
  error: undefined,
});

// Each order had one idempotency key, however often the bank was called.
for (const order of ["flaky", "evening"]) {
  const keys = calls.filter((call) => call.order === order).map(({ key }) => key);
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
}

// Asked again: the same run. With another amount: refused.
const first = await pay("simple", 1900);
assert.equal(first.deduplicated, true);
await assert.rejects(pay("simple", 9900), KeyConflictError);
assert.equal(calls.filter(({ order }) => order === "simple").length, 1);

await holdfast.stop();
