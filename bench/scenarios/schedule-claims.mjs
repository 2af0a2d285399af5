// How long a poll takes that claims schedules which are due, while nineteen others poll for the same ones: twenty schedules
// each second, beside a hand-written compare-and-set. A poll that wins nothing is not counted.

import { withProcesses } from "../processes.mjs";

const PROCESSES = 2;
const POLLERS = 10;
const SCHEDULES = 20;
const WARM_MS = 3_000;
const MEASURED_MS = 10_000;

const percentile = (values, share) =>
  values[Math.min(values.length - 1, Math.floor(values.length * share))];

function claimScenario({ name, title, engine }) {
  return {
    name,
    title,
    engines: [engine],
    isFor: (contestant) => contestant.engine === engine && contestant.polling !== undefined,
    unit: "ms p99",
    primary: "p99",
    isLowerBetter: true,
    async measure({ contestant, places }) {
      const place = await places.fresh(contestant, {});
      const params = {
        url: place.url,
        schedules: SCHEDULES,
        pollers: POLLERS,
        warmMs: WARM_MS,
        ms: MEASURED_MS,
      };
      try {
        return await withProcesses(contestant, PROCESSES, async (...processes) => {
          const lists = await Promise.all(processes.map((each) => each.ask("pollFor", params)));
          const won = lists.flat();
          const claims = won.reduce((sum, [, count]) => sum + count, 0);
          const most = SCHEDULES * (MEASURED_MS / 1000 + 2);
          if (claims > most) throw new Error(`${claims} claims, and there were ${most} ticks.`);
          const times = won.map(([took]) => took).sort((a, b) => a - b);
          return {
            p99: percentile(times, 0.99),
            p50: percentile(times, 0.5),
            longest: times.at(-1),
            claims,
          };
        });
      } finally {
        await place.drop();
      }
    },
  };
}

export const scheduleClaimScenarios = [
  claimScenario({
    name: "schedule-claims",
    title: "claim of due schedules by one of 20 pollers",
    engine: "postgres",
  }),
  claimScenario({
    name: "sqlite-schedule-claims",
    title: "SQLite: claim of due schedules by one of 20 pollers",
    engine: "sqlite",
  }),
];
