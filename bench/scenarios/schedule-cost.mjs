// Measures the cost of schedules that are not due, and how soon a schedule is back in cadence after a time without instances.

import { setTimeout as pause } from "node:timers/promises";
import { withProcesses } from "../processes.mjs";
import { buffersOf, explained } from "./explain.mjs";

const A_DAY_MS = 86_400_000;
const FEW = 10;
const MANY = 100_000;
const SETTLE_MS = 2000;
const AWAY_DAYS = 200;

const isHoldfast = ({ packageName }) => packageName === "holdfast";

/** An idle instance for a while, beside schedules that are due in a month. */
async function idleOnce({ contestant, places, sizes, count }) {
  const place = await places.fresh(contestant, {});
  try {
    return await withProcesses(contestant, 1, async (scheduler) => {
      await scheduler.ask("openSchedules", { url: place.url, isCounting: true });
      const atMs = Math.ceil(Date.now() / 1000) * 1000 + 30 * A_DAY_MS;
      // Spread over time, like idle schedules in practice.
      const spread = { spreadMs: A_DAY_MS };
      await scheduler.ask("seedSchedules", { label: "idle", count, atMs, ...spread });
      await scheduler.ask("startSchedules");
      await pause(SETTLE_MS);
      await scheduler.ask("markCost");
      await pause(sizes.idleMs);
      const { cpuMs, statements } = await scheduler.ask("cost");
      const session = await places.session(place.url);
      const plan = await explained(session, await scheduler.ask("pollStatement"));
      await session.end();
      const seconds = sizes.idleMs / 1000;
      return {
        statements: statements / seconds,
        cpuMs: cpuMs / (seconds / 60),
        buffers: buffersOf(plan),
      };
    });
  } finally {
    await place.drop();
  }
}

export const scheduleCostScenarios = [
  {
    name: "idle-schedules",
    title: `an idle instance with 100,000 schedules ÷ with ${FEW}: the larger ratio of statements and of buffers of a poll`,
    engines: ["postgres"],
    isFor: isHoldfast,
    isHeavy: true,
    roundsMax: 3,
    unit: "× growth",
    primary: "growth",
    isLowerBetter: true,
    async measure(params) {
      const few = await idleOnce({ ...params, count: FEW });
      const many = await idleOnce({ ...params, count: MANY });
      return {
        growth: Math.max(many.statements / few.statements, many.buffers / few.buffers),
        cpuGrowth: many.cpuMs / few.cpuMs,
        fewStatementsPerSecond: few.statements,
        manyStatementsPerSecond: many.statements,
        fewCpuMsPerMinute: few.cpuMs,
        manyCpuMsPerMinute: many.cpuMs,
        fewBuffersPerPoll: few.buffers,
        manyBuffersPerPoll: many.buffers,
      };
    },
  },
  {
    name: "catch-up",
    title: `a minutely schedule after ${AWAY_DAYS} days of nobody: start() → its next tick lies ahead`,
    engines: ["postgres", "sqlite"],
    isFor: isHoldfast,
    unit: "ms",
    primary: "ms",
    isLowerBetter: true,
    async measure({ contestant, places }) {
      const place = await places.fresh(contestant, {});
      try {
        return await withProcesses(contestant, 1, async (scheduler) => {
          await scheduler.ask("openSchedules", { url: place.url });
          const sinceMs = Date.now() - AWAY_DAYS * A_DAY_MS;
          await scheduler.ask("seedForgotten", { label: "forgotten", sinceMs });
          return scheduler.ask("catchUp", { label: "forgotten", patienceMs: 60_000 });
        });
      } finally {
        await place.drop();
      }
    },
  },
];
