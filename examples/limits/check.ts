// Plays a busy day of the shop, and checks that every limit held.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { newShop } from "./limits.js";

const now = new Map<string, number>();
let most = 0;
const mails: { to: string; at: number }[] = [];
const indexed: string[] = [];

const shop = newShop("sqlite:limits.db", {
  async import(customer) {
    now.set(customer, (now.get(customer) ?? 0) + 1);
    most = Math.max(most, now.get(customer) ?? 0);
    await pause(20);
    now.set(customer, (now.get(customer) ?? 0) - 1);
  },
  async mail(to) {
    mails.push({ to, at: Date.now() });
  },
  async index(product) {
    indexed.push(product);
  },
});
const { holdfast } = shop;
await holdfast.start();

// A pending run reports why it does not begin.
await holdfast.queues.pause("default", "before opening");
const imports = [];
for (let file = 0; file < 12; file += 1)
  imports.push(await shop.importFile(file % 3 === 0 ? "small" : "large", `${file}.csv`));
const first = await holdfast.runs.get(imports[0]?.id ?? "");
assert.equal(first?.waitingFor?.reason, "paused_queue");
await holdfast.queues.resume("default");
for (const { id } of imports) await holdfast.runs.wait(id, { timeout: "5m" });
assert.equal(most, 2);

// Twenty-five mails at ten a second take more than two seconds.
const sent = await Promise.all(Array.from({ length: 25 }, (_, n) => shop.mail(`user-${n}`)));
for (const { id } of sent) await holdfast.runs.wait(id, { timeout: "5m" });
assert.equal(mails.length, 25);

// Five changes, one index.
for (let change = 0; change < 5; change += 1) {
  const { deduplicated } = await shop.changed("shoe");
  assert.equal(deduplicated, change > 0);
}
const last = await shop.changed("shoe");
await holdfast.runs.wait(last.id, { timeout: "5m" });
assert.deepEqual(indexed, ["shoe"]);

// Requested three times, sent once.
const reminders = [await shop.remind("ada"), await shop.remind("ada"), await shop.remind("ada")];
assert.equal(new Set(reminders.map(({ id }) => id)).size, 1);

await holdfast.stop();
