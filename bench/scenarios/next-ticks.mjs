// Measures how fast the next tick of a cron schedule is found, beside other libraries. Each search starts from the
// previous tick, over ten years and then again from the start. No database takes part.

import { withProcesses } from "../processes.mjs";

const ZONES = ["Europe/Paris", "America/New_York"];
const EXPRESSIONS = {
  everyFiveMinutes: "*/5 * * * *",
  dailyAtTwo: "0 2 * * *",
  halfPastOneAndTwo: "30 1,2 * * *",
  workdays: "0 9 * * 1-5",
  lastOfMonth: "0 0 L * *",
};
const SPAN = { fromMs: Date.UTC(2026, 0, 1), untilMs: Date.UTC(2036, 0, 1) };

/** No library reads these zones before its first tick is timed; nine of the sixteen have clock changes. */
const UNSEEN = {
  coldZone: "Europe/Berlin",
  warmZones: ["Europe/Paris", "America/New_York", "UTC"],
  zones: [
    "Africa/Cairo",
    "Africa/Johannesburg",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Santiago",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/London",
    "Pacific/Auckland",
    "Pacific/Honolulu",
  ],
  cron: EXPRESSIONS.workdays,
  fromMs: Date.UTC(2026, 10, 15),
};

const isCron = ({ name }) => name !== "testing-kit";

function tickScenario({ name, title, zones }) {
  return {
    name,
    title,
    engines: ["none"],
    isFor: isCron,
    unit: "ticks/s",
    primary: "perSecond",
    async measure({ contestant, sizes }) {
      const cases = Object.entries(EXPRESSIONS).flatMap(([label, cron]) =>
        zones.map((timezone) => ({ label, cron, timezone, ...SPAN })),
      );
      const rates = await withProcesses(contestant, 1, async (process) => {
        await process.ask("open", {});
        return process.ask("walkFor", { cases, warmMs: sizes.tickMs / 2, ms: sizes.tickMs });
      });
      const ofLabel = (label) => rates.filter((_, index) => cases[index].label === label);
      return {
        perSecond: evenly(rates),
        ...Object.fromEntries(
          Object.keys(EXPRESSIONS).map((label) => [label, evenly(ofLabel(label))]),
        ),
      };
    },
  };
}

/** The rate when every case gives the same number of ticks; a fast case cannot hide a slow one. */
function evenly(rates) {
  return rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0);
}

export const nextTickScenarios = [
  tickScenario({
    name: "next-ticks",
    title: `next cron ticks in ${ZONES.join(" and ")}, as many of each expression`,
    zones: ZONES,
  }),
  tickScenario({
    name: "next-ticks-utc",
    title: "next cron ticks in UTC, as many of each expression",
    zones: ["UTC"],
  }),
  {
    name: "next-ticks-first",
    title: `parsing and first tick in a zone not seen before, median of ${UNSEEN.zones.length} zones; cold = the first of its process`,
    engines: ["none"],
    isFor: isCron,
    unit: "ms",
    primary: "p50",
    isLowerBetter: true,
    async measure({ contestant, sizes }) {
      return withProcesses(contestant, 1, async (process) => {
        await process.ask("open", {});
        const { coldMs, ms } = await process.ask("firstTicks", {
          ...UNSEEN,
          warmMs: sizes.tickMs,
        });
        const sorted = ms.sort((a, b) => a - b);
        return { p50: sorted[sorted.length >> 1], longest: sorted.at(-1), cold: coldMs };
      });
    },
  },
];
