// Reads the blackout windows and weekdays of a calendar, and evaluates them as spans of excluded time. Daily windows go by
// the clock ("22:00" to "06:00", which may pass midnight), single ones from one instant or local time to another; the end
// is exclusive.

import { ConfigurationError } from "../../shared/errors.js";
import { readInstant } from "../../shared/instant.js";
import { kindOf, readList, refuse } from "../../shared/problems.js";
import { quoteShort, refuseUnknownMembers, suggest } from "../../shared/suggest.js";
import type { Zone } from "../cron/zone.js";

/** A window as stored. Texts are canonical: "22:00", "2026-12-20T18:00:00.000Z", "2026-12-20T18:00". */
export type CalendarWindow = {
  readonly kind: "daily" | "instant" | "local";
  readonly from: string;
  readonly to: string;
  /** The weekdays on which a daily window begins; null: all of them. */
  readonly days: readonly string[] | null;
};

const WINDOWS_MAX = 100;

const TEXT_LENGTH_MAX = 40;
const CLOCK = /^(?:([01]\d|2[0-3]):([0-5]\d)|24:00)$/;
const LOCAL = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$/;
const EXAMPLE =
  '{ from: "22:00", to: "06:00" } or { from: "2026-12-20T18:00", to: "2027-01-02T06:00" }';

/** The windows in canonical form: sorted, each once. */
export function readWindows(value: unknown, field: string): CalendarWindow[] {
  const rule = { field, countMax: WINDOWS_MAX, example: `[${EXAMPLE}]`, read: readWindow };
  const byText = new Map(readList(value, rule).map((each) => [JSON.stringify(each), each]));
  return [...byText.keys()].sort().flatMap((text) => byText.get(text) ?? []);
}

function readWindow(value: unknown, field: string): CalendarWindow {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse(field, `must be a window such as ${EXAMPLE}, but is ${kindOf(value)}.`);
  }
  const unknown = refuseUnknownMembers(value, ["from", "to", "days"], field);
  if (unknown.length > 0) throw new ConfigurationError(unknown);
  const { from, to, days } = value as Record<string, unknown>;
  const start = readEdge(from, `${field}.from`);
  const end = readEdge(to, `${field}.to`);
  if (start.kind !== end.kind) {
    refuse(field, `must have two times of one kind, such as ${EXAMPLE}.`);
  }
  const { kind } = start;
  if (kind === "daily") {
    if (start.text === "24:00") refuse(`${field}.from`, 'must be before "24:00", such as "00:00".');
    if (start.text === end.text) {
      refuse(field, 'must not be empty; for a whole day use { from: "00:00", to: "24:00" }.');
    }
    const read = days === undefined ? null : readWeekdays(days, `${field}.days`);
    return { kind, from: start.text, to: end.text, days: read };
  }
  if (days !== undefined) refuse(`${field}.days`, 'goes only with times such as "22:00".');
  if (end.ms <= start.ms) refuse(field, `must end after it begins, such as ${EXAMPLE}.`);
  return { kind, from: start.text, to: end.text, days: null };
}

type Edge = { readonly kind: CalendarWindow["kind"]; readonly text: string; readonly ms: number };

function readEdge(value: unknown, field: string): Edge {
  const right = '"22:00", "2026-12-20T18:00" or "2026-12-20T18:00:00Z"';
  if (typeof value !== "string") {
    return refuse(field, `must be a time such as ${right}, but is ${kindOf(value)}.`);
  }
  if (value.length > TEXT_LENGTH_MAX) {
    return refuse(field, `must be a time such as ${right}, but has ${value.length} characters.`);
  }
  if (CLOCK.test(value)) return { kind: "daily", text: value, ms: clockMs(value) };
  // A local time is checked as if it were UTC, and stored without the seconds if it has none.
  const isLocal = LOCAL.test(value);
  const ms = readInstant(isLocal ? `${value}Z` : value);
  const isInstant = typeof ms === "number" && value.includes("T");
  if (!isInstant) {
    return refuse(field, `must be a time such as ${right}, but is ${quoteShort(value)}.`);
  }
  const text = new Date(ms).toISOString();
  if (!isLocal) return { kind: "instant", text, ms };
  return { kind: "local", text: text.slice(0, text.endsWith(":00.000Z") ? 16 : 19), ms };
}

function clockMs(text: string): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return (hours * 60 + minutes) * 60_000;
}

/** A single window as a span of time in the zone. */
export function windowSpan({ kind, from, to }: CalendarWindow, zone: Zone): Span {
  const words = `blackout ${shortText(from)} to ${shortText(to)}`;
  if (kind === "instant") return { startMs: Date.parse(from), endMs: Date.parse(to), words };
  // Where the clocks go back, it begins at the first pass and ends at the second.
  const start = zone.fromLocal(Date.parse(`${from}Z`));
  const end = zone.fromLocal(Date.parse(`${to}Z`));
  const startMs =
    start.kind === "gap" ? start.endMs : start.kind === "once" ? start.atMs : start.firstMs;
  const endMs = end.kind === "gap" ? end.endMs : end.kind === "once" ? end.atMs : end.secondMs;
  return { startMs, endMs, words };
}

/** "2026-12-20T18:00:00.000Z" as "2026-12-20 18:00 UTC". */
function shortText(text: string): string {
  return text
    .replace("T", " ")
    .replace(/(:00)?\.000Z$/, " UTC")
    .replace(/Z$/, " UTC");
}

/** A daily window, as times of the clock on the wall. */
export function dailySource({ from, to, days }: CalendarWindow): SpanSource {
  const startOfDayMs = clockMs(from);
  const lastsMs = (clockMs(to) - startOfDayMs + DAY_MS) % DAY_MS || DAY_MS;
  const isOn = WEEKDAYS.map((day) => days === null || days.includes(day));
  const on = days === null ? "" : ` on ${weekdaysText(days)}`;
  const words = `blackout ${from} to ${to}${on}`;
  return {
    firstSpan({ fromMs, untilMs }: Reach): Span | null {
      // Yesterday's may have passed midnight; beyond eight days the week repeats.
      const today = Math.floor(fromMs / DAY_MS);
      for (let day = today - 1; day <= today + 8; day++) {
        const startMs = day * DAY_MS + startOfDayMs;
        if (startMs >= untilMs) return null;
        const isDay = isOn[(((day + 3) % 7) + 7) % 7];
        if (isDay && startMs + lastsMs > fromMs) {
          return { startMs, endMs: startMs + lastsMs, words };
        }
      }
      return null;
    },
  };
}

/** The window in a few words, for the description of a calendar. */
export function windowText({ kind, from, to, days }: CalendarWindow): string {
  const on = kind !== "daily" ? "" : days === null ? " every day" : ` on ${weekdaysText(days)}`;
  return `${shortText(from)} to ${shortText(to)}${on}`;
}

// ── excluded time as spans. A source does not list its spans: it returns the first one of a range, so endless rules cost
// nothing. Times are UTC or local; `onClockOf` converts local spans to UTC. ──

export type Span = {
  readonly startMs: number;
  /** The first instant that no longer belongs to the span. */
  readonly endMs: number;
  /** The rule that excludes it, in words. */
  readonly words: string;
};

export type Reach = { readonly fromMs: number; readonly untilMs: number };

export interface SpanSource {
  /**
   * The span that contains `fromMs`; else the first one that begins before `untilMs`; else null. A span may come in
   * several adjacent pieces.
   */
  firstSpan(reach: Reach): Span | null;
}

/** Spans that are all known. Where they overlap, the earlier one keeps the time. */
export class SpanList implements SpanSource {
  readonly #spans: readonly Span[];

  constructor(spans: readonly Span[]) {
    const sorted = spans.toSorted((a, b) => a.startMs - b.startMs || b.endMs - a.endMs);
    const disjoint: Span[] = [];
    let endMs = Number.NEGATIVE_INFINITY;
    for (const span of sorted) {
      if (span.endMs <= endMs) continue;
      disjoint.push(span.startMs < endMs ? { ...span, startMs: endMs } : span);
      endMs = span.endMs;
    }
    this.#spans = disjoint;
  }

  firstSpan({ fromMs, untilMs }: Reach): Span | null {
    // By halving: the first one that ends after `fromMs`.
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#spans[middle]?.endMs ?? 0) > fromMs) high = middle;
      else low = middle + 1;
    }
    const span = this.#spans[low];
    return span !== undefined && span.startMs < untilMs ? span : null;
  }
}

/**
 * Spans of the clock on the wall as spans of time: an instant is excluded if the clock of the zone
 * then shows an excluded time. So an hour that comes twice is excluded twice, and an excluded date
 * ends when the date does, wherever the clocks change.
 */
export function onClockOf(zone: Zone, wall: SpanSource): SpanSource {
  return {
    firstSpan({ fromMs, untilMs }) {
      let stretch = zone.stretchAt(fromMs);
      let lowMs = fromMs;
      while (lowMs < untilMs) {
        const { offsetMs } = stretch;
        const highMs = Math.min(untilMs, stretch.endMs);
        const found = wall.firstSpan({ fromMs: lowMs + offsetMs, untilMs: highMs + offsetMs });
        if (found !== null) {
          const startMs = Math.max(found.startMs - offsetMs, stretch.startMs);
          const endMs = Math.min(found.endMs - offsetMs, stretch.endMs);
          return { startMs, endMs, words: found.words };
        }
        lowMs = highMs;
        if (lowMs >= untilMs) return null;
        // At the edge of the table the stretch may go on, or another may follow.
        if (stretch.next === null) zone.cover(stretch.endMs + 1);
        if (lowMs >= stretch.endMs && stretch.next !== null) stretch = stretch.next;
      }
      return null;
    },
  };
}

/**
 * The same spans, with the last result cached: a walk through time over many sources requests the same span of most of
 * them again and again. A source's spans must come in order of their ends.
 */
export function remembered(source: SpanSource): SpanSource {
  let queriedMs = Number.POSITIVE_INFINITY;
  let last: Span | null = null;
  return {
    firstSpan(reach) {
      const { fromMs, untilMs } = reach;
      if (last !== null && queriedMs <= fromMs && fromMs < last.endMs) {
        return last.startMs < untilMs ? last : null;
      }
      const span = source.firstSpan(reach);
      if (span !== null) [last, queriedMs] = [span, fromMs];
      return span;
    },
  };
}

/** The span of any source that holds `fromMs` and reaches farthest, else the one that begins first. */
export function firstOfAll(sources: readonly SpanSource[], reach: Reach): Span | null {
  const { fromMs } = reach;
  let best: Span | null = null;
  for (const source of sources) {
    const span = source.firstSpan(reach);
    if (span === null) continue;
    const isBetter =
      best === null ||
      (span.startMs <= fromMs
        ? best.startMs > fromMs || span.endMs > best.endMs
        : span.startMs < best.startMs);
    if (isBetter) best = span;
  }
  return best;
}

// ── weekdays, Monday first ──

export const WEEKDAYS: readonly string[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");
const WEEKDAYS_EXAMPLE = '["mon", "tue", "wed", "thu", "fri"]';
const ENTRIES_MAX = 50;

/** The weekdays, Monday first, each once; null if that is all of them. */
export function readWeekdays(value: unknown, field: string): string[] | null {
  const given = readList(value, {
    field,
    countMax: ENTRIES_MAX,
    example: WEEKDAYS_EXAMPLE,
    read: readWeekday,
  });
  if (given.length === 0) {
    refuse(field, `must name at least one weekday, such as ${WEEKDAYS_EXAMPLE}, but is empty.`);
  }
  const days = WEEKDAYS.filter((day) => given.includes(day));
  return days.length === WEEKDAYS.length ? null : days;
}

function readWeekday(value: unknown, field: string): string {
  const right = `one of ${WEEKDAYS.join(", ")}`;
  if (typeof value !== "string") {
    return refuse(field, `must be ${right}, but is ${kindOf(value)}.`);
  }
  const day = value.length > 20 ? "" : value.toLowerCase();
  if (WEEKDAYS.includes(day)) return day;
  const meant = suggest(day.slice(0, 3), WEEKDAYS);
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return refuse(field, `must be ${right}, but is ${quoteShort(value)}.${hint}`);
}

/** "mon to fri", "sat and sun". */
export function weekdaysText(days: readonly string[]): string {
  const first = WEEKDAYS.indexOf(days[0] ?? "");
  const last = WEEKDAYS.indexOf(days.at(-1) ?? "");
  if (days.length >= 3 && last - first === days.length - 1) return `${days[0]} to ${days.at(-1)}`;
  if (days.length <= 1) return days.join("");
  return `${days.slice(0, -1).join(", ")} and ${days.at(-1)}`;
}

/** The days that are not among these, as times of the clock on the wall. */
export function otherDays(days: readonly string[]): SpanSource {
  const counts = WEEKDAYS.map((day) => days.includes(day));
  const only = weekdaysText(days);
  return {
    firstSpan({ fromMs, untilMs }: Reach): Span | null {
      const today = Math.floor(fromMs / DAY_MS);
      for (let day = today; day < today + 7 && day * DAY_MS < untilMs; day++) {
        // 1970-01-01 was a Thursday.
        const weekday = (((day + 3) % 7) + 7) % 7;
        if (counts[weekday]) continue;
        const words = `${NAMES[weekday]} is not one of its days (${only})`;
        return { startMs: day * DAY_MS, endMs: (day + 1) * DAY_MS, words };
      }
      return null;
    },
  };
}

export const DAY_MS = 86_400_000;
