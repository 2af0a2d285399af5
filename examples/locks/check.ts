// Runs the example with two instances on one database, as two processes would.

import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { Holdfast, LeaseLostError } from "holdfast";
import { importPrices, PriceList } from "./import.js";

const database = "sqlite:shop.db";
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const one = new Holdfast({ database, logger: quiet });
const other = new Holdfast({ database, logger: quiet });
const list = new PriceList();

// Two at the same time: one imports, the other gets the name of the holder.
let arrived = () => {};
const begun = new Promise<void>((resolve) => {
  arrived = resolve;
});
let deliver = (_text: string) => {};
const first = importPrices(one, list, () => {
  arrived();
  return new Promise((resolve) => {
    deliver = resolve;
  });
});
await begun;
const second = await importPrices(other, list, async () => "never fetched");
deepEqual(
  { ...second, until: null },
  { acquired: false, reason: "locked", holder: one.instanceId, until: null },
);

// A waiting caller gets it next.
const waiting = other.lock("import-prices", { wait: "10s" }, ({ fence }) => fence);
deliver("monday");
const done = await first;
ok(done.acquired && done.value);
equal(list.text, "monday");
const served = await waiting;
ok(served.acquired && Number(served.value) > Number(done.fence));

// If an operator takes the lock, its holder loses it, and a late write of the holder is refused.
const lost = one.lock("import-prices", { lease: "5m" }, async ({ fence }) => {
  await other.locks.release("import-prices", "it hangs");
  const next = await importPrices(other, list, async () => "tuesday");
  ok(next.acquired);
  equal(list.write({ fence: fence ?? 0, text: "monday, again" }), false);
});
await rejects(lost, LeaseLostError);
equal(list.text, "tuesday");

const { grants } = await one.locks.history({ name: "import-prices" });
deepEqual(
  grants.map(({ state }) => state),
  ["released", "revoked", "released", "released"],
);
await Promise.all([one.stop(), other.stop()]);
console.log("One at a time, and the last word belongs to the newest fence.");
