// Plays an order that commits and one that is rolled back.

import assert from "node:assert/strict";
import { DatabaseSync } from "@photostructure/sqlite";
import { type Handle, newShop } from "./shop.js";

const sent: string[] = [];
const handle = new DatabaseSync("shop.db") as Handle;
handle.exec("pragma journal_mode = wal");
const { holdfast, order } = newShop(handle, async (to, text) => {
  sent.push(`${to}: ${text}`);
});
await holdfast.start();

const { id } = order({ id: "1042", mail: "ada@example.org", cents: 1900 });
assert.throws(() => order({ id: "1043", mail: "bob@example.org", cents: 0 }), /costs nothing/);

const run = await holdfast.runs.wait(id, { timeout: "5m" });
assert.equal(run.status, "completed");
// The rolled-back order left nothing: no row, no run, no mail.
const orders = handle.prepare("select id from orders").all({}) as { id: string }[];
assert.deepEqual(
  orders.map((row) => row.id),
  ["1042"],
);
assert.equal((await holdfast.runs.list({ job: "confirm-order" })).runs.length, 1);
assert.deepEqual(sent, ["ada@example.org: Thank you for order 1042."]);

// Its key is free as well: the same order, this time with a price, is new.
assert.equal(order({ id: "1043", mail: "bob@example.org", cents: 500 }).deduplicated, false);
await holdfast.stop();
handle.close();
