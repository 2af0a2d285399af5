// Draws the schedules and calendars of a simulation: every kind of rhythm, every policy, and in some seeds a zone whose
// clocks change during the simulation. Blackout windows lie within the hour of the simulation.

import type { CalendarOptions } from "../../../schedules/calendars/calendar.js";
import type { ScheduleOptions } from "../../../schedules/rules/schedule.js";
import { offsetAt, WEEKDAYS } from "../checkers/tick-oracle.js";
import type { Draw } from "../random.js";
import type { Behaviour } from "./jobs.js";

/** The start and the zone of a simulation. */
export type Setting = {
  readonly startsAt: number;
  readonly zone: string;
  /** Expressions that the change of the clocks affects; empty if there is no change. */
  readonly touched: readonly string[];
};

export type SchedulePlan = ScheduleOptions & { readonly job: Behaviour };

/** The calendars that schedules may use. */
export const CALENDARS = ["quiet-times", "holidays"] as const;

const PLAIN_START = Date.UTC(2026, 5, 10, 9, 3, 20);

/** Each starts half an hour or more before a change of the clocks. */
const CHANGES: readonly Setting[] = [
  {
    startsAt: Date.UTC(2026, 2, 8, 6, 22),
    zone: "America/New_York",
    touched: ["30 2 * * *", "15,45 2,3 * * *", "0,30 1-3 * * *"],
  },
  {
    startsAt: Date.UTC(2026, 10, 1, 5, 12),
    zone: "America/New_York",
    touched: ["30 1 * * *", "0,20,40 1,2 * * *", "0,30 1-3 * * *"],
  },
  {
    startsAt: Date.UTC(2026, 2, 29, 0, 24),
    zone: "Europe/Paris",
    touched: ["30 2 * * *", "10,50 2,3 * * *"],
  },
  {
    startsAt: Date.UTC(2026, 9, 25, 0, 15),
    zone: "Europe/Paris",
    touched: ["30 2 * * *", "0,20,40 2,3 * * *"],
  },
  {
    startsAt: Date.UTC(2026, 3, 4, 14, 31),
    zone: "Australia/Lord_Howe",
    touched: ["45 1 * * *", "0,15,30,45 1,2 * * *"],
  },
];

const CRONS = [
  "*/5 * * * *",
  "*/10 * * * *",
  "*/15 * * * *",
  "2,32 * * * *",
  "*/3 * * * *",
  "7 * * * *",
  "30 */4 * * * *",
  "10,40 */6 * * * *",
];
const GRIDS = ["2m", "3m", "5m", "7m", "10m", "90s"];
const RANGES = ["2m..4m", "45s..90s", "3m..10m", "1m..6m"];

export function drawSetting(draw: Draw): Setting {
  if (draw.isTrue(0.3)) return draw.pick(CHANGES);
  return { startsAt: PLAIN_START + draw.whole(0, 86_400_000), zone: "UTC", touched: [] };
}

export function drawSchedule(draw: Draw, setting: Setting, afterMs: number): SchedulePlan {
  const job = draw.weighted<Behaviour>([
    [5, "quick"],
    [4, "slow"],
    [4, "flaky"],
    [2, "wrong"],
    [1, "deaf"],
    [1, "once"],
    [1, "rare"],
  ]);
  return {
    job,
    input: { n: draw.whole(1, 1_000_000), lot: 1 },
    ...drawWhen(draw, setting, afterMs),
    overlap: draw.pick(["skip", "queue", "allow", "replace"]),
    missed: draw.weighted<NonNullable<ScheduleOptions["missed"]>>([
      [3, "latest"],
      [2, "skip"],
      [2, { run: "all", limit: draw.pick([1, 1, 2, 5]) }],
      [1, { run: "latest", within: "3m" }],
      [1, { run: "all", within: "4m" }],
    ]),
    grace: draw.pick(["2s", "10s", "30s", "60s"]),
    ...(draw.isTrue(0.3) ? { afterFailure: draw.pick(["2m", "3m..8m", "30s..90s"]) } : {}),
    ...(draw.isTrue(0.2) ? { priority: draw.whole(-3, 3) } : {}),
    ...(draw.isTrue(0.15) ? { queue: draw.pick(["side", "default"]) } : {}),
    ...(draw.isTrue(0.3) ? { calendars: [draw.pick(CALENDARS)] } : {}),
  };
}

function drawWhen(
  draw: Draw,
  { startsAt, zone, touched }: Setting,
  afterMs: number,
): Partial<ScheduleOptions> {
  const nowMs = startsAt + afterMs;
  const iso = (ms: number) => new Date(ms).toISOString();
  const bounds = draw.isTrue(0.15) ? { until: iso(nowMs + draw.whole(600_000, 3_000_000)) } : {};
  const kind = draw.weighted([
    [5, "cron"],
    [4, "grid"],
    [3, "range"],
    [1, "at"],
  ] as const);
  switch (kind) {
    case "cron": {
      const cron = touched.length > 0 && draw.isTrue(0.7) ? draw.pick(touched) : draw.pick(CRONS);
      return { cron, timezone: zone, ...bounds };
    }
    case "grid": {
      const from = draw.isTrue(0.3) ? { from: iso(nowMs + draw.whole(-300_000, 300_000)) } : {};
      return { every: draw.pick(GRIDS), ...from, ...bounds };
    }
    case "range":
      return { every: draw.pick(RANGES) };
    case "at":
      return { at: iso(nowMs + draw.whole(240_000, 2_400_000)) };
  }
}

// ── calendars ──────────────────────────────────────────────────────────────────────────────────────

export type CalendarPlan = {
  readonly name: (typeof CALENDARS)[number];
  readonly options: CalendarOptions;
};

const MINUTE_MS = 60_000;

export function drawCalendar(draw: Draw, setting: Setting, afterMs: number): CalendarPlan {
  const name = draw.pick(CALENDARS);
  const nowMs = setting.startsAt + afterMs;
  const timezone = draw.pick([undefined, "UTC", setting.zone, "Asia/Kolkata"]);
  const windows = Array.from({ length: draw.whole(1, 3) }, () => {
    const fromMs = nowMs + draw.whole(-10, 40) * MINUTE_MS;
    const toMs = fromMs + draw.whole(2, 20) * MINUTE_MS;
    if (draw.isTrue(0.4)) return { from: iso(fromMs), to: iso(toMs) };
    const clock = (ms: number) => iso(ms + offsetAt(timezone ?? setting.zone, ms)).slice(11, 16);
    const days = draw.isTrue(0.3) ? { days: drawDays(draw) } : {};
    return { from: clock(fromMs), to: clock(toMs), ...days };
  });
  return {
    name,
    options: {
      windows,
      ...(timezone === undefined ? {} : { timezone }),
      ...(draw.isTrue(0.1) ? { days: drawDays(draw) } : {}),
    },
  };
}

function drawDays(draw: Draw): string[] {
  const missing = draw.whole(0, WEEKDAYS.length - 1);
  return WEEKDAYS.filter((_, day) => day !== missing);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
