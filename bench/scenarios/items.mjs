// Measures the storing of a run's items: one after the other, and sixteen at the same time.

import { withProcesses } from "../processes.mjs";

function itemScenario({ name, title, callers }) {
  return {
    name,
    title,
    engines: ["postgres"],
    isFor: ({ items }) => items !== undefined,
    unit: "items/s",
    primary: "perSecond",
    async measure({ contestant, places, sizes }) {
      const place = await places.fresh(contestant, {});
      try {
        return await withProcesses(contestant, 1, async (process) => {
          await process.ask("openItems", { url: place.url });
          return process.ask("itemsFor", {
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

export const itemScenarios = [
  itemScenario({ name: "items-1", title: "items of a run, one after the other", callers: 1 }),
  itemScenario({ name: "items-16", title: "items of a run, 16 at the same time", callers: 16 }),
];
