// Measures acquiring and releasing a lock, by one caller and by sixteen with a lock each, beside hand-written SQL with
// a fence and a history. No other caller wants these locks.

import { withProcesses } from "../processes.mjs";

function lockScenario({ name, title, engines, callers }) {
  return {
    name,
    title,
    engines,
    isFor: ({ locks }) => locks !== undefined,
    unit: "locks/s",
    primary: "perSecond",
    async measure({ contestant, places, sizes }) {
      const synchronous = contestant.engine === "sqlite" ? { synchronous: "full" } : {};
      const place = await places.fresh(contestant, synchronous);
      try {
        return await withProcesses(contestant, 1, async (caller) => {
          await caller.ask("openLocks", { url: place.url });
          return caller.ask("lockFor", {
            callers,
            warmMs: sizes.enqueueMs / 2,
            ms: sizes.enqueueMs,
          });
        });
      } finally {
        await place.drop();
      }
    },
  };
}

export const lockScenarios = [
  lockScenario({
    name: "locks",
    title: "acquire and release a lock, one caller",
    engines: ["postgres"],
    callers: 1,
  }),
  lockScenario({
    name: "locks-16",
    title: "acquire and release a lock, 16 callers, a lock for each",
    engines: ["postgres"],
    callers: 16,
  }),
];

export const sqliteLockScenarios = [
  lockScenario({
    name: "sqlite-locks",
    title: "SQLite: acquire and release a lock, one caller, synchronous = FULL",
    engines: ["sqlite"],
    callers: 1,
  }),
];
