// Measures how late schedules fire: many at one instant, and many over a minute. Lateness is the commit of a fire minus
// its tick, by the database's own record of commits. The instance is started, warm and idle when the instant comes; no
// worker executes the runs meanwhile.

import { setTimeout as pause } from "node:timers/promises";
import { withProcesses } from "../processes.mjs";

/** Between the end of making schedules and the first tick; and at least from the warming ticks to the measured. */
const LEAD_MS = 4000;
const GAP_MS = 8000;
/** A second before its instant an instance must be idle; otherwise the measurement starts again with more time. */
const QUIET_MS = 1000;
const SLACKS = [1, 3, 9];

const upTo = (ms, everyMs) => Math.ceil(ms / everyMs) * everyMs;

class NotReady extends Error {}

async function fireOnce(params) {
  for (const slack of SLACKS) {
    try {
      return await fireWith({ ...params, slack });
    } catch (error) {
      if (!(error instanceof NotReady) || slack === SLACKS.at(-1)) throw error;
    }
  }
}

/** One batch that warms the process up, then the one that counts. */
async function fireWith({
  contestant,
  places,
  count,
  slack,
  spreadMs = 0,
  patienceMs = 120_000,
  synchronous,
}) {
  const { tickEveryMs, seedsPerSecond, warm } = contestant.schedules;
  const place = await places.fresh(contestant, synchronous ? { synchronous } : {});
  try {
    return await withProcesses(contestant, 2, async (scheduler, watcher) => {
      const params = { url: place.url, synchronous };
      await scheduler.ask("openSchedules", params);
      await watcher.ask("openSchedules", params);
      const seedMs = (1000 * (count + warm)) / seedsPerSecond;
      const warmAt = upTo(Date.now() + (seedMs + LEAD_MS) * slack, tickEveryMs);
      const atMs = upTo(warmAt + GAP_MS * slack, tickEveryMs);
      await scheduler.ask("seedSchedules", { label: "main", count, atMs, spreadMs });
      await scheduler.ask("seedSchedules", { label: "warm", count: warm, atMs: warmAt });
      await scheduler.ask("startSchedules");
      refuseLate(warmAt, "made and started");
      const warming = { atMs: warmAt, untilMs: warmAt, count: warm, patienceMs };
      await watcher.ask("watchFires", warming);
      refuseLate(atMs, "warm");
      await pause(atMs - Date.now() - QUIET_MS / 2);
      await scheduler.ask("markCost");
      const late = await watcher.ask("watchFires", {
        atMs,
        untilMs: atMs + spreadMs,
        count,
        before: warm,
        patienceMs: patienceMs + spreadMs,
      });
      const { cpuMs } = await scheduler.ask("cost");
      return { ...late, cpuMsPer1000: cpuMs / (count / 1000) };
    });
  } finally {
    await place.drop();
  }
}

function refuseLate(atMs, what) {
  const leftMs = atMs - Date.now();
  if (leftMs < QUIET_MS)
    throw new NotReady(`It was ${what} only ${Math.round(leftMs)} ms before its instant.`);
}

const hasSchedules = ({ schedules }) => schedules !== undefined;
const only =
  (...names) =>
  ({ name }) =>
    names.includes(name);

function instantScenario({ name, title, engines, isFor, count, patienceMs, synchronous }) {
  return {
    name,
    title,
    engines,
    isFor,
    isHeavy: true,
    unit: "ms p99",
    primary: "p99",
    isLowerBetter: true,
    async measure(params) {
      const late = await fireOnce({ ...params, count, patienceMs, synchronous });
      const { first, p50, p99, last, cpuMsPer1000 } = late;
      return { p99, p50, first, last, perSecond: (count / last) * 1000, cpuMsPer1000 };
    },
  };
}

export const fireScenarios = [
  instantScenario({
    name: "fire-10k",
    title: "10,000 schedules due at one instant: commit of the fire − tick",
    engines: ["postgres", "redis"],
    isFor: hasSchedules,
    count: 10_000,
    // pg-boss forwards 50 a second.
    patienceMs: 400_000,
  }),
  {
    name: "fire-100k",
    title: "100,000 schedules due at one instant: seconds until all are committed",
    engines: ["postgres"],
    isFor: only("holdfast", "raw"),
    isHeavy: true,
    roundsMax: 3,
    unit: "s",
    primary: "seconds",
    isLowerBetter: true,
    async measure(params) {
      const count = 100_000;
      const { p50, last, cpuMsPer1000 } = await fireOnce({ ...params, count });
      return {
        seconds: last / 1000,
        p50Seconds: p50 / 1000,
        perSecond: (count / last) * 1000,
        cpuMsPer1000,
      };
    },
  },
  {
    name: "fire-spread",
    title: "100,000 schedules spread evenly over one minute: commit of the fire − tick",
    engines: ["postgres"],
    isFor: only("holdfast"),
    isHeavy: true,
    roundsMax: 3,
    unit: "ms p99",
    primary: "p99",
    isLowerBetter: true,
    async measure(params) {
      const late = await fireOnce({ ...params, count: 100_000, spreadMs: 60_000 });
      const { p50, p99, last, cpuMsPer1000 } = late;
      return { p99, p50, worst: last, cpuMsPer1000 };
    },
  },
  instantScenario({
    name: "sqlite-fire-10k",
    title:
      "SQLite: 10,000 schedules due at one instant, synchronous = FULL: seen by another process − tick",
    engines: ["sqlite"],
    isFor: hasSchedules,
    count: 10_000,
    synchronous: "full",
  }),
];
