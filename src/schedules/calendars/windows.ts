// Blackout windows of a calendar: daily ones by the clock ("22:00" to "06:00", which may pass
// midnight), and single ones between two instants or two local times. Read strictly into one
// canonical form; the end of a window no longer belongs to it.

import { ConfigurationError } from "../../shared/errors.js";
import { readInstant } from "../../shared/instant.js";
import { kindOf, readList, refuse } from "../../shared/nested-problems.js";
import { quoteShort, refuseUnknownMembers } from "../../shared/suggest.js";
import type { Zone } from "../cron/zone.js";
import { DAY_MS } from "./dates.js";
import type { Reach, Span, SpanSource } from "./spans.js";
import { readWeekdays, WEEKDAYS, weekdaysText } from "./weekdays.js";

/** A window as stored. Texts are canonical: "22:00", "2026-12-20T18:00:00.000Z", "2026-12-20T18:00". */
export type CalendarWindow = {
  readonly kind: "daily" | "instant" | "local";
  readonly from: string;
  readonly to: string;
  /** The weekdays on which a daily window begins; null: all of them. */
  readonly days: readonly string[] | null;
};

export const WINDOWS_MAX = 100;

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
