// Tests locks on SQLite alone: the number of transactions, and the public views.

import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { systemRandom } from "../../src/shared/adapters/random.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";

async function opened() {
  const database = new DatabaseSync(":memory:");
  const sent: string[] = [];
  const handle = {
    exec: (text: string) => {
      sent.push(text);
      return database.exec(text);
    },
    prepare: (text: string) => database.prepare(text),
    close: () => database.close(),
    get isTransaction() {
      return database.isTransaction;
    },
  };
  const store = new SqliteStore({
    source: { handle: handle as unknown as SqliteHandle },
    clock: systemClock,
    random: systemRandom,
    synchronous: "FULL",
    migrate: "auto",
    mayCreate: true,
  });
  await store.open();
  return { database, sent, locks: store.locks, store };
}

const REQUEST = { name: "import", holder: "host:1:a", leaseMs: 60_000, waiting: null };

test("one short transaction to acquire and one to release", async () => {
  const { sent, locks, store } = await opened();
  const transactions = () => sent.filter((text) => /^(begin|commit|rollback)/.test(text));
  for (let times = 0; times < 2; times += 1) {
    sent.length = 0;
    const answer = await locks.acquire({ ...REQUEST, token: crypto.randomUUID() });
    expect(transactions()).toEqual(["begin immediate", "commit"]);
    if (!answer.isGranted) throw new Error("The lock was refused.");
    sent.length = 0;
    await locks.release({ name: "import", fence: answer.fence });
    expect(transactions()).toEqual(["begin immediate", "commit"]);
  }
  await store.close();
});

test("the public views show locks and their history with times as ISO text", async () => {
  const { database, locks, store } = await opened();
  const answer = await locks.acquire({ ...REQUEST, token: crypto.randomUUID() });
  const held = database.prepare("select * from v_locks").all() as Record<string, unknown>[];
  expect(held).toMatchObject([{ name: "import", holder: "host:1:a", expired: 0, waiting: 0 }]);
  expect(held[0]?.lease_until).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  await locks.release({ name: "import", fence: answer.isGranted ? answer.fence : 0 });
  expect(database.prepare("select * from v_locks").all()).toEqual([]);
  const history = database.prepare("select status, ended_at from v_lock_history").all();
  expect(history).toMatchObject([{ status: "released", ended_at: expect.stringMatching(/Z$/) }]);
  await store.close();
});
