// Measures how soon an idle worker in another process starts a run that was just enqueued: from the acknowledgement of
// the enqueue, and also from the call, since a slow enqueue hides a wait.

import { setTimeout as pause } from "node:timers/promises";
import { withProcesses } from "../processes.mjs";

const UNCOUNTED = 20;
const PATIENCE_MS = 30_000;

const percentile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
};

export const pickup = {
  name: "pickup",
  title: "pickup by an idle worker in another process, median and 99th percentile",
  engines: ["postgres", "redis"],
  unit: "ms",
  primary: "p50",
  isLowerBetter: true,
  async measure({ contestant, places, sizes }) {
    const warm = await places.warm(contestant);
    const place = await places.fresh(contestant, {});
    try {
      return await withProcesses(contestant, 2, async (worker, caller) => {
        await worker.ask("warm", { count: 500, url: warm.url, tuning: "latency" });
        await worker.ask("open", { url: place.url, tuning: "latency" });
        await caller.ask("open", { url: place.url, tuning: "latency" });
        await worker.ask("go", { keepStarts: true });
        const calls = await caller.ask("trickle", {
          count: UNCOUNTED + sizes.pickups,
          gapMs: [20, 40],
        });
        const starts = await startsOf(worker, calls.length);
        const counted = calls.slice(UNCOUNTED);
        const afterAnswer = counted.map(
          ([number, , answeredAt]) => starts.get(number) - answeredAt,
        );
        const afterCall = counted.map(([number, calledAt]) => starts.get(number) - calledAt);
        return {
          p50: percentile(afterAnswer, 0.5),
          p99: percentile(afterAnswer, 0.99),
          p50FromCall: percentile(afterCall, 0.5),
          p99FromCall: percentile(afterCall, 0.99),
        };
      });
    } finally {
      await place.drop();
    }
  },
};

async function startsOf(worker, count) {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const { starts } = await worker.ask("notes");
    if (starts.length >= count) return new Map(starts);
    if (performance.now() > until)
      throw new Error(`Only ${starts.length} of ${count} runs were picked up.`);
    await pause(50);
  }
}
