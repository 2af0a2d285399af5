// Measures enqueues: one caller, sixteen callers, and thousands in one call. No worker runs meanwhile.

import { withProcesses } from "../processes.mjs";

function enqueueScenario({ name, title, engines, action, synchronous }) {
  return {
    name,
    title,
    engines,
    unit: "runs/s",
    primary: "perSecond",
    async measure({ contestant, places, sizes }) {
      const place = await places.fresh(contestant, synchronous ? { synchronous } : {});
      try {
        return await withProcesses(contestant, 1, async (caller) => {
          await caller.ask("open", { url: place.url, tuning: "throughput", synchronous });
          return caller.ask(...action(sizes));
        });
      } finally {
        await place.drop();
      }
    },
  };
}

const callers = (count) => (sizes) => [
  "enqueueFor",
  { callers: count, warmMs: sizes.enqueueMs / 3, ms: sizes.enqueueMs },
];
const bulk = (sizes) => ["bulkFor", { size: sizes.bulk, ms: sizes.bulkMs }];
const SERVERS = ["postgres", "redis"];

export const enqueueScenarios = [
  enqueueScenario({
    name: "enqueue-1",
    title: "enqueue, one caller who waits for each answer",
    engines: SERVERS,
    action: callers(1),
  }),
  enqueueScenario({
    name: "enqueue-16",
    title: "enqueue, 16 callers at once, each waiting for its own answer",
    engines: SERVERS,
    action: callers(16),
  }),
  enqueueScenario({
    name: "bulk",
    title: "bulk enqueue, 5,000 runs a call",
    engines: SERVERS,
    action: bulk,
  }),
];

export const sqliteEnqueueScenarios = [
  enqueueScenario({
    name: "sqlite-enqueue",
    title: "SQLite: enqueue, one caller, synchronous = FULL",
    engines: ["sqlite"],
    action: callers(1),
    synchronous: "full",
  }),
  enqueueScenario({
    name: "sqlite-bulk",
    title: "SQLite: bulk enqueue, 5,000 runs a call, synchronous = FULL",
    engines: ["sqlite"],
    action: bulk,
    synchronous: "full",
  }),
];
