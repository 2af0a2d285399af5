// Measures a claim of five runs while another process claims too, out of a full queue: from the call to the runs.

import { withProcesses } from "../processes.mjs";

const LIMIT = 5;
const UNCOUNTED = 20;

const percentile = (values, share) =>
  values[Math.min(values.length - 1, Math.floor(values.length * share))];

export const claimTime = {
  name: "claim-time",
  title: "a claim of five by two processes at once, median, 99th percentile and longest",
  engines: ["postgres", "sqlite"],
  isFor: ({ name }) => name.startsWith("holdfast"),
  unit: "ms",
  primary: "p50",
  isLowerBetter: true,
  async measure({ contestant, places, sizes }) {
    const place = await places.fresh(contestant, { pending: sizes.sqliteDrain });
    try {
      return await withProcesses(contestant, 2, async (...processes) => {
        for (const process of processes) await process.ask("open", { url: place.url });
        const lists = await Promise.all(
          processes.map((process) =>
            process.ask("claimFor", { count: UNCOUNTED + sizes.pickups, limit: LIMIT }),
          ),
        );
        const times = lists.flatMap((list) => list.slice(UNCOUNTED)).sort((a, b) => a - b);
        return {
          p50: percentile(times, 0.5),
          p99: percentile(times, 0.99),
          longest: times.at(-1),
        };
      });
    } finally {
      await place.drop();
    }
  },
};
