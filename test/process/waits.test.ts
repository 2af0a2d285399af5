// Processes that are killed in the middle of steps, waits and calls: no step is lost or stored twice.

import { expect } from "vitest";
import { until } from "../support/until.js";
import { ended, onBothDatabases } from "./worker-processes.js";

const JOURNEYS = 8;
const KILLS = 6;

onBothDatabases((test) => {
  test("journeys end with every step stored once, however often their processes are killed", async ({
    processes,
  }) => {
    const observer = processes.observer();
    const orders = { lease: "1s", poll: "100ms", concurrency: 8, attempts: 100 };
    await (await processes.start("first", orders)).stops();
    const keys = Array.from({ length: JOURNEYS }, (_, at) => `journey-${at}`);
    const runs = await Promise.all(keys.map((key) => observer.enqueue("journey", { key })));
    for (let kill = 0; kill < KILLS; kill += 1) {
      const worker = await processes.start(`worker-${kill}`, orders);
      // Each dies somewhere else: after so many steps, or while everything waits.
      await until(
        "it has done something",
        () => worker.heard("step").length > kill || worker.heard("run.suspended").length > kill,
        { withinMs: 20_000, everyMs: 5 },
      ).catch(() => undefined);
      worker.signal("SIGKILL");
      await worker.exit;
      const key = keys[kill] as string;
      await observer.signal("go", { key, value: kill });
    }
    await processes.start("last", orders);
    for (const [at, key] of keys.entries())
      expect(await observer.signal("go", { key, value: at })).toEqual({ repeated: at < KILLS });
    for (const [at, { id }] of runs.entries()) {
      const run = await ended(observer, id);
      expect(run).toMatchObject({
        status: "completed",
        result: { done: [0, 1, 2, 3], value: at, called: 2 },
      });
      const { runs: children } = await observer.runs.children(id);
      expect(children.map(({ status }) => status)).toEqual(["completed", "completed"]);
    }
    const report = await observer.check();
    expect(report.checks.filter(({ violations }) => violations > 0)).toEqual([]);
  });
});
