// The next local time that a cron expression means, without any time zone: local times are
// milliseconds since 1970-01-01T00:00 of the clock on the wall. Arithmetic only.

import type { Work } from "./days.js";
import { type CronExpression, NONE } from "./parse.js";

const DAY_MS = 86_400_000;

/** The first fitting local time at or after `fromMs`, a whole second. */
export function nextLocal(cron: CronExpression, fromMs: number, work: Work): number {
  const today = Math.floor(fromMs / DAY_MS);
  const day = cron.days.next(today, work);
  if (day === today) {
    const time = nextTime(cron, (fromMs - today * DAY_MS) / 1_000);
    if (time !== -1) return today * DAY_MS + time * 1_000;
    return cron.days.next(today + 1, work) * DAY_MS + nextTime(cron, 0) * 1_000;
  }
  return day * DAY_MS + nextTime(cron, 0) * 1_000;
}

/** The first fitting second of a day at or after `from`; −1 if the rest of the day has none. */
function nextTime(cron: CronExpression, from: number): number {
  const { nextSecond, nextMinute, nextHour } = cron;
  const fromHour = Math.floor(from / 3_600);
  let hour = at(nextHour, fromHour);
  if (hour === fromHour) {
    const fromMinute = Math.floor(from / 60) % 60;
    let minute = at(nextMinute, fromMinute);
    if (minute === fromMinute) {
      const second = at(nextSecond, from % 60);
      if (second !== NONE) return hour * 3_600 + minute * 60 + second;
      minute = at(nextMinute, fromMinute + 1);
    }
    if (minute !== NONE) return hour * 3_600 + minute * 60 + at(nextSecond, 0);
    hour = at(nextHour, fromHour + 1);
  }
  return hour === NONE ? -1 : hour * 3_600 + at(nextMinute, 0) * 60 + at(nextSecond, 0);
}

function at(table: Uint8Array, index: number): number {
  return table[index] ?? NONE;
}
