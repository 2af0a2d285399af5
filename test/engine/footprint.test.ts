// Tests the footprint of an instance on the server: it opens at most as many connections as it says, whatever it
// does, and holds two when idle.

import pg from "pg";
import { describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { until } from "../support/until.js";
import { POSTGRES_URL } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("connections to PostgreSQL", () => {
  test("an instance under every kind of load opens no more connections than it said, and two when idle", async () => {
    const id = crypto.randomUUID().replaceAll("-", "_");
    const schema = `footprint_${id}`;
    const url = new URL(POSTGRES_URL as string);
    url.searchParams.set("application_name", `hf_${id.slice(0, 20)}`);
    const started: { connections: number }[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const holdfast = new Holdfast({ database: url.href, schema, logger, poll: "50ms" });
    holdfast.on("instance.started", (facts) => void started.push(facts));
    const committing = holdfast.job("committing", {
      run: (_, ctx) =>
        ctx.commit(async (tx) =>
          (tx as { query(text: string): Promise<unknown> }).query("select pg_sleep(0.02)"),
        ),
    });
    const limited = holdfast.job<{ n: number }>("limited", {
      concurrency: { limit: 3, key: "n" },
      run: () => undefined,
    });
    holdfast.schedule("each-second", limited, { every: "1s", input: { n: 0 } });
    const watcher = new pg.Client(POSTGRES_URL);
    await watcher.connect();
    const open = async () => {
      const { rows } = await watcher.query(
        `select count(*)::int as open from pg_stat_activity where application_name = 'hf_${id.slice(0, 20)}'`,
      );
      return rows[0].open as number;
    };
    await holdfast.start({ worker: { concurrency: 30 } });
    const budget = started[0]?.connections ?? 0;
    expect(budget).toBe(9);
    let isOver = false;
    let most = 0;
    const watching = (async () => {
      while (!isOver) most = Math.max(most, await open());
    })();
    const runs = await committing.enqueueMany(Array.from({ length: 60 }, () => ({})));
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        limited.enqueue({ n: n % 4 }, { key: `k${n % 9}`, onDuplicate: "replace" }),
      ),
    );
    await Promise.all([
      holdfast.check(),
      holdfast.repair(),
      holdfast.schedules.trigger("each-second"),
    ]);
    for (const run of runs) await holdfast.runs.wait(run.id, { timeout: "60s" });
    isOver = true;
    await watching;
    expect(most).toBeGreaterThan(2);
    expect(most).toBeLessThanOrEqual(budget);
    await holdfast.schedules.pause("each-second");
    await until("two connections are left", async () => (await open()) === 2);
    await holdfast.stop();
    await watcher.query(`drop schema "${schema}" cascade`);
    await watcher.end();
  });
});
