// Computes the expected ticks of a schedule in a slow and obvious way: a grid by counting, cron by visiting every
// minute and reading its local time from `Intl`. It shares no code with the product, so that a mistake would have to be
// made twice. It supports only the schedules that simulations draw.

import type { WhenDefinition } from "../../../schedules/rules/when.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Returns every tick in (after, until]. Random intervals have no predictable ticks. */
export function oracleTicks(
  when: WhenDefinition,
  params: { readonly anchorAt: number; readonly after: number; readonly until: number },
): number[] {
  const after = Math.max(params.after, (when.fromMs ?? Number.NEGATIVE_INFINITY) - 1);
  const until = Math.min(params.until, when.untilMs ?? Number.POSITIVE_INFINITY);
  if (after >= until) return [];
  const ticks = patternTicks(when, { ...params, after, until });
  return when.calendars.length === 0 ? ticks : ticks.filter((at) => !isExcluded(when, at));
}

function patternTicks(
  when: WhenDefinition,
  { anchorAt, after, until }: { anchorAt: number; after: number; until: number },
): number[] {
  switch (when.kind) {
    case "at":
      return when.atMs !== null && when.atMs > after && when.atMs <= until ? [when.atMs] : [];
    case "grid":
      return gridTicks(when, anchorAt, after, until);
    case "cron":
      return cronTicks(when, after, until);
    case "range":
      return [];
  }
}

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Whether a calendar excludes this instant, by the local time of the calendar's zone. */
export function isExcluded({ calendars, timezone }: WhenDefinition, at: number): boolean {
  return calendars.some(({ rules }) => {
    const wall = new Date(at + offsetAt(rules.timezone ?? timezone, at));
    const clock = wall.toISOString().slice(11, 16);
    const today = WEEKDAYS[(wall.getUTCDay() + 6) % 7] ?? "";
    const yesterday = WEEKDAYS[(wall.getUTCDay() + 5) % 7] ?? "";
    if (rules.days !== null && !rules.days.includes(today)) return true;
    return rules.windows.some(({ kind, from, to, days }) => {
      if (kind === "instant") return at >= Date.parse(from) && at < Date.parse(to);
      const isOn = (day: string) => days === null || days.includes(day);
      if (from < to) return clock >= from && clock < to && isOn(today);
      // A window beyond midnight belongs to the day on which it began.
      return (clock >= from && isOn(today)) || (clock < to && isOn(yesterday));
    });
  });
}

function gridTicks(
  { everyMs, fromMs }: WhenDefinition,
  anchorAt: number,
  after: number,
  until: number,
): number[] {
  const every = everyMs ?? 0;
  const first = fromMs ?? anchorAt + every;
  const ticks: number[] = [];
  const skipped = Math.max(0, Math.floor((after - first) / every));
  for (let at = first + skipped * every; at <= until; at += every) if (at > after) ticks.push(at);
  return ticks;
}

function cronTicks({ cron, timezone }: WhenDefinition, after: number, until: number): number[] {
  const { minutes, hours, seconds, isWildcard } = readCron(cron ?? "");
  const fits = (wall: number) =>
    minutes.has((wall / MINUTE_MS) % 60) && hours.has(Math.floor(wall / HOUR_MS) % 24);
  const ticks: number[] = [];
  const firstMinute = Math.floor(after / MINUTE_MS) * MINUTE_MS;
  for (let at = firstMinute; at <= until; at += MINUTE_MS) {
    const offset = offsetAt(timezone, at);
    const wall = at + offset;
    const jumpedFrom = at - MINUTE_MS + offsetAt(timezone, at - MINUTE_MS);
    const isFound = fits(wall) && (isWildcard || !wasShownBefore(timezone, at, offset));
    let isMakeUp = false;
    if (!isWildcard) {
      for (let missing = jumpedFrom + MINUTE_MS; missing < wall; missing += MINUTE_MS)
        if (fits(missing)) isMakeUp = true;
    }
    const found = isFound ? [...seconds] : isMakeUp ? [0] : [];
    for (const second of found) {
      const tick = at + second * 1_000;
      if (tick > after && tick <= until) ticks.push(tick);
    }
  }
  return ticks;
}

/** Whether this minute is a repetition after the clock was set back. */
function wasShownBefore(zone: string, at: number, offset: number): boolean {
  const earlier = offsetAt(zone, at - 3 * HOUR_MS);
  if (earlier <= offset) return false;
  return offsetAt(zone, at - (earlier - offset)) === earlier;
}

const offsets = new Map<string, Map<number, number>>();
const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns the offset of a zone from UTC, cached by the quarter of an hour. */
export function offsetAt(zone: string, atMs: number): number {
  if (zone === "UTC") return 0;
  const quarter = Math.floor(atMs / 900_000) * 900_000;
  const known = offsets.get(zone) ?? new Map<number, number>();
  offsets.set(zone, known);
  let offset = known.get(quarter);
  if (offset === undefined) {
    let format = formats.get(zone);
    if (!format) {
      format = new Intl.DateTimeFormat("en-US", {
        timeZone: zone,
        hourCycle: "h23",
        year: "numeric",
        month: "2-digit",
        day: "2-digit",
        hour: "2-digit",
        minute: "2-digit",
      });
      formats.set(zone, format);
    }
    const text = format.format(quarter); // 03/08/2026, 03:00
    const part = (from: number, to: number) => Number(text.slice(from, to));
    offset =
      Date.UTC(part(6, 10), part(0, 2) - 1, part(3, 5), part(12, 14), part(15, 17)) - quarter;
    known.set(quarter, offset);
  }
  return offset;
}

type Fields = {
  readonly seconds: ReadonlySet<number>;
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly isWildcard: boolean;
};

const read = new Map<string, Fields>();

function readCron(text: string): Fields {
  const known = read.get(text);
  if (known) return known;
  const fields = text.split(" ");
  if (fields.length === 5) fields.unshift("0");
  const [second = "", minute = "", hour = "", ...rest] = fields;
  if (rest.some((field) => field !== "*")) throw new Error(`The oracle does not know "${text}".`);
  const made = {
    seconds: listed(second, 59),
    minutes: listed(minute, 59),
    hours: listed(hour, 23),
    isWildcard: minute.startsWith("*") || hour.startsWith("*"),
  };
  read.set(text, made);
  return made;
}

function listed(field: string, max: number): Set<number> {
  const values = new Set<number>();
  for (const item of field.split(",")) {
    const [range = "", step = "1"] = item.split("/");
    const [from, to] = range === "*" ? [0, max] : range.split("-").map(Number);
    const last = to ?? from ?? 0;
    for (let value = from ?? 0; value <= last; value += Number(step)) values.add(value);
  }
  return values;
}

/** Whether the clocks of the schedule's zone change within three hours of this instant. */
export function isNearChange(zone: string, atMs: number): boolean {
  return offsetAt(zone, atMs - 90 * MINUTE_MS) !== offsetAt(zone, atMs + 90 * MINUTE_MS);
}
