// Measures a year of a schedule of every five minutes in the test kit: the real time that a test would wait.

import { withProcesses } from "../processes.mjs";

const YEAR = { cron: "*/5 * * * *", nowAt: "2026-01-01T00:00:00Z" };
const TICKS_PER_DAY = 288;

export const testingYear = {
  name: "testing-year",
  title: "virtual days of a five-minute schedule in the test kit (365 in a full run), real time",
  engines: ["none"],
  isFor: ({ name }) => name === "testing-kit",
  unit: "s",
  primary: "seconds",
  isLowerBetter: true,
  roundsMax: 3,
  async measure({ contestant, sizes }) {
    const { testDays: days } = sizes;
    return withProcesses(contestant, 1, async (process) => {
      await process.ask("open", {});
      const { handled, completed, ms } = await process.ask("pass", { ...YEAR, days });
      if (handled !== days * TICKS_PER_DAY || completed !== handled)
        throw new Error(`${handled} runs, ${completed} completed, of ${days * TICKS_PER_DAY}`);
      return { seconds: ms / 1000, runs: handled, runsPerSecond: (handled / ms) * 1000 };
    });
  },
};
