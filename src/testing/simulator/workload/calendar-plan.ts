// What calendars of a simulation look like: blackout windows that lie within its hour or so, by the
// clock on a wall or between two instants, and now and then a weekday. They are changed meanwhile.

import type { CalendarOptions } from "../../../schedules/calendars/calendar.js";
import { offsetAt, WEEKDAYS } from "../checkers/tick-oracle.js";
import type { Draw } from "../random.js";
import { CALENDARS, type Setting } from "./schedule-plan.js";

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
