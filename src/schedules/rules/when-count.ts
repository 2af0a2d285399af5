// How many ticks of a cron schedule are in a range, by multiplication: matching days × times of a
// day. Exact: it must always be what going through them with nextTick would count. Around changes
// of the clocks, where days are no plain days, it does go through them: nextTick alone decides there.

import type { CronSchedule } from "../cron/cron.js";
import type { Work } from "../cron/days.js";
import { nextTick } from "../cron/next.js";
import type { CronExpression } from "../cron/parse.js";
import type { Stretch } from "../cron/zone.js";

const DAY_MS = 86_400_000;

/** Ticks after `afterMs`, up to and including `untilMs`; at most a hundred years of them. */
export function countTicks(
  schedule: CronSchedule,
  { afterMs, untilMs }: { readonly afterMs: number; readonly untilMs: number },
  work: Work,
): number {
  // Ticks are whole seconds, and there are none before 1970.
  let fromMs = (Math.floor(Math.max(afterMs, -1) / 1_000) + 1) * 1_000;
  const endMs = Math.floor(untilMs) + 1;
  if (fromMs >= endMs) return 0;
  schedule.zone.cover(endMs);
  let count = 0;
  let stretch: Stretch | null = schedule.zone.stretchAt(fromMs);
  for (; stretch !== null && fromMs < endMs; stretch = stretch.next) {
    work.steps++;
    const highMs = Math.min(endMs, stretch.endMs);
    const plain = plainPart(schedule, stretch);
    const plainFromMs = Math.min(Math.max(fromMs, plain.fromMs), highMs);
    const plainEndMs = Math.min(Math.max(plainFromMs, plain.endMs), highMs);
    count += countOneByOne(schedule, { fromMs, endMs: plainFromMs }, work);
    count += countLocal(schedule.expression, {
      fromMs: plainFromMs + stretch.offsetMs,
      endMs: plainEndMs + stretch.offsetMs,
      work,
    });
    count += countOneByOne(schedule, { fromMs: plainEndMs, endMs: highMs }, work);
    fromMs = highMs;
  }
  return count;
}

/** The part of a stretch in which ticks are simply what the clock on the wall shows. */
function plainPart(
  { expression }: CronSchedule,
  { startMs, endMs, offsetMs, previous, next }: Stretch,
): { fromMs: number; endMs: number } {
  if (expression.isWildcard) return { fromMs: startMs, endMs };
  const before = Math.abs(offsetMs - (previous?.offsetMs ?? offsetMs));
  const after = Math.abs(offsetMs - (next?.offsetMs ?? offsetMs));
  return { fromMs: startMs + before, endMs: endMs - after };
}

function countOneByOne(
  schedule: CronSchedule,
  { fromMs, endMs }: { readonly fromMs: number; readonly endMs: number },
  work: Work,
): number {
  let count = 0;
  if (fromMs >= endMs) return 0;
  let tickMs = nextTick(schedule, fromMs - 1);
  while (tickMs !== null && tickMs < endMs) {
    work.steps++;
    count++;
    tickMs = nextTick(schedule, tickMs);
  }
  return count;
}

type LocalRange = { readonly fromMs: number; readonly endMs: number; readonly work: Work };

/** Fitting local times at or after `fromMs` and before `endMs`. */
function countLocal(cron: CronExpression, { fromMs, endMs, work }: LocalRange): number {
  if (fromMs >= endMs) return 0;
  const firstDay = Math.floor(fromMs / DAY_MS);
  const lastDay = Math.floor(endMs / DAY_MS);
  const perDay = timesBefore(cron, 86_400);
  let days = 0;
  for (let day = cron.days.next(firstDay, work); day < lastDay; ) {
    work.steps++;
    days++;
    day = cron.days.next(day + 1, work);
  }
  // All days but the last count whole; then what lies before the start and before the end.
  const before = isDay(cron, firstDay, work) ? timesBefore(cron, secondOf(fromMs)) : 0;
  const rest = isDay(cron, lastDay, work) ? timesBefore(cron, secondOf(endMs)) : 0;
  return days * perDay - before + rest;
}

function isDay(cron: CronExpression, day: number, work: Work): boolean {
  return cron.days.next(day, work) === day;
}

/** The first second of the day that is not before the time. */
function secondOf(localMs: number): number {
  return Math.ceil((localMs - Math.floor(localMs / DAY_MS) * DAY_MS) / 1_000);
}

/** How many fitting times of a day are before that second of it. */
function timesBefore({ nextHour, nextMinute, nextSecond }: CronExpression, second: number): number {
  const hour = Math.floor(second / 3_600);
  const minute = Math.floor(second / 60) % 60;
  const perMinute = valuesBefore(nextSecond, 60);
  const perHour = valuesBefore(nextMinute, 60) * perMinute;
  let count = valuesBefore(nextHour, hour) * perHour;
  if (hour >= 24 || nextHour[hour] !== hour) return count;
  count += valuesBefore(nextMinute, minute) * perMinute;
  if (nextMinute[minute] === minute) count += valuesBefore(nextSecond, second % 60);
  return count;
}

/** How many allowed values are smaller than `end`, by a table of the next allowed value for each. */
function valuesBefore(nextAllowed: Uint8Array, end: number): number {
  let count = 0;
  for (let value = nextAllowed[0] ?? end; value < end; value = nextAllowed[value + 1] ?? end) {
    count++;
  }
  return count;
}
