// Reads the events of an .ics file as excluded times: single and repeated VEVENTs of holidays and maintenance. An event
// that cannot be read fully is refused by name, as a half-read event would silently exclude the wrong times. Pure; the
// text, the events and the counted occurrences are limited.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { kindOf, PROBLEMS_OF_LIST_MAX, refuse } from "../../shared/problems.js";
import { requireZone, type Zone } from "../cron/zone.js";
import {
  type IcsComponent,
  type IcsProperty,
  type IcsRepeat,
  type IcsTime,
  instantOf,
  nextOccurrence,
  readComponents,
  readIcsDuration,
  readRepeat,
  readTime,
  readTimes,
  readTimeText,
  unescapeText,
} from "./ics-repeat.js";
import { type Reach, type Span, SpanList, type SpanSource } from "./windows.js";

/** An event as stored. It ends `nominalMs` later by the clock on the wall, and `exactMs` after that. */
export type IcsEvent = {
  readonly summary: string;
  /** Whole days of the calendar's zone. */
  readonly isDate: boolean;
  /** The zone of its times; null: that of the calendar. */
  readonly timezone: string | null;
  /** The local time at which it begins, as if it were UTC. */
  readonly startMs: number;
  readonly nominalMs: number;
  readonly exactMs: number;
  readonly repeat: IcsRepeat | null;
};

const TEXT_LENGTH_MAX = 1_000_000;
const EVENTS_MAX = 10_000;
/** For all events of a file together, so that no file takes long to read. */
const COUNTED_MAX = 200_000;
const EXCEPT_MAX = 1_000;
const SUMMARY_LENGTH_MAX = 80;
const DAY_MS = 86_400_000;
/** Offsets and changes of the clocks are shorter than this. */
const SLACK_MS = 3 * DAY_MS;

/** The events in canonical order, or a `ConfigurationError` that names every event that cannot be read. */
export function readIcs(value: unknown, field: string): IcsEvent[] {
  if (typeof value !== "string") {
    return refuse(field, `must be the text of an .ics file, but is ${kindOf(value)}.`);
  }
  if (value.length > TEXT_LENGTH_MAX) {
    return refuse(
      field,
      `must have at most ${TEXT_LENGTH_MAX} characters, but has ${value.length}.`,
    );
  }
  const components = readComponents(value);
  if (typeof components === "string") {
    return refuse(field, `must be the text of an .ics file; this one ${components}.`);
  }
  if (components.length > EVENTS_MAX) {
    refuse(field, `must have at most ${EVENTS_MAX} events, but has ${components.length}.`);
  }
  const problems: Problem[] = [];
  const file = { moved: movedOccurrences(components), counts: { left: COUNTED_MAX } };
  const events: IcsEvent[] = [];
  for (const component of components) {
    const read = readEvent(component, file);
    if (typeof read === "string") {
      const where = `event ${JSON.stringify(summaryOf(component))} in line ${component.line}`;
      problems.push({ field, message: `${where}: ${read}.` });
      if (problems.length >= PROBLEMS_OF_LIST_MAX) break;
    } else if (read !== null) events.push(read);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return canonical(events);
}

function canonical(events: readonly IcsEvent[]): IcsEvent[] {
  const byText = new Map(events.map((event) => [JSON.stringify(event), event]));
  return [...byText.entries()]
    .sort(([a, one], [b, other]) => one.startMs - other.startMs || (a < b ? -1 : 1))
    .map(([, event]) => event);
}

/** By UID: the occurrences of repeated events that single events replace. */
function movedOccurrences(components: readonly IcsComponent[]): Map<string, IcsProperty[]> {
  const moved = new Map<string, IcsProperty[]>();
  for (const component of components) {
    const id = property(component, "RECURRENCE-ID");
    const uid = property(component, "UID")?.value;
    if (id === undefined || uid === undefined) continue;
    const others = moved.get(uid);
    if (others) others.push(id);
    else moved.set(uid, [id]);
  }
  return moved;
}

/** Returns the event, null if it takes no time, or its problem in words. */
function readEvent(
  component: IcsComponent,
  { moved, counts }: { moved: ReadonlyMap<string, IcsProperty[]>; counts: { left: number } },
): IcsEvent | null | string {
  const twice = ONCE.find((name) => properties(component, name).length > 1);
  if (twice !== undefined) return `it has ${twice} twice`;
  const isMoved = property(component, "RECURRENCE-ID");
  if (isMoved?.params.has("RANGE")) return "a RECURRENCE-ID with RANGE is not supported";
  const isCancelled = property(component, "STATUS")?.value.trim().toUpperCase() === "CANCELLED";
  const isFree = property(component, "TRANSP")?.value.trim().toUpperCase() === "TRANSPARENT";
  if (isCancelled || isFree) return null;
  if (property(component, "RDATE")) return "RDATE is not supported; give these dates as `dates`";
  if (property(component, "EXRULE")) return "EXRULE is not supported";
  const dtstart = property(component, "DTSTART");
  if (dtstart === undefined) return "it has no DTSTART";
  const start = readTime(dtstart);
  if (typeof start === "string") return `its DTSTART ${start}`;
  const lasts = readLength(component, start);
  if (typeof lasts === "string") return lasts;
  const uid = property(component, "UID")?.value;
  const repeat = readRule(component, {
    start,
    counts,
    moved: isMoved || uid === undefined ? [] : (moved.get(uid) ?? []),
  });
  if (typeof repeat === "string") return repeat;
  if (lasts.nominalMs + lasts.exactMs === 0) return null;
  return {
    summary: summaryOf(component),
    isDate: start.isDate,
    timezone: start.zone?.name ?? null,
    startMs: start.wallMs,
    ...lasts,
    repeat,
  };
}

const ONCE = "DTSTART DTEND DURATION RRULE STATUS TRANSP UID RECURRENCE-ID".split(" ");

type Length = { readonly nominalMs: number; readonly exactMs: number };

function readLength(component: IcsComponent, start: IcsTime): Length | string {
  const dtend = property(component, "DTEND");
  const duration = property(component, "DURATION");
  if (dtend && duration) return "it has both DTEND and DURATION";
  if (duration) {
    const read = readIcsDuration(duration.value);
    if (typeof read === "string") return `its DURATION ${read}`;
    if (start.isDate && read.exactMs > 0)
      return "its DURATION must be of whole days, as its start is";
    return read;
  }
  if (!dtend) return { nominalMs: start.isDate ? DAY_MS : 0, exactMs: 0 };
  const end = readTime(dtend);
  if (typeof end === "string") return `its DTEND ${end}`;
  const isAlike = start.isDate === end.isDate && (start.zone === null) === (end.zone === null);
  if (!isAlike) return "its DTEND must be of the same kind as its DTSTART";
  const isEmpty = start.isDate && end.wallMs === start.wallMs;
  const length =
    start.zone === null || end.zone === null
      ? { nominalMs: end.wallMs - start.wallMs, exactMs: 0 }
      : {
          nominalMs: 0,
          exactMs: instantOf(end.zone, end.wallMs) - instantOf(start.zone, start.wallMs),
        };
  if (length.nominalMs < 0 || length.exactMs < 0 || isEmpty) return "it ends before it begins";
  return length;
}

type RuleParams = {
  readonly start: IcsTime;
  readonly moved: readonly IcsProperty[];
  readonly counts: { left: number };
};

function readRule(
  component: IcsComponent,
  { start, moved, counts }: RuleParams,
): IcsRepeat | null | string {
  const rrule = property(component, "RRULE");
  if (rrule === undefined) return null;
  const repeat = readRepeat(rrule.value, {
    startMs: start.wallMs,
    counts,
    readUntil(text) {
      const until = readTimeText(text, undefined);
      if (typeof until === "string") return until;
      // A bare date means the whole day, even if the start has a time.
      return until.isDate ? until.wallMs + DAY_MS - 1 : onWallOf(start, until);
    },
  });
  if (typeof repeat === "string") return `its RRULE ${repeat}`;
  const except = new Set<number>();
  for (const each of [...properties(component, "EXDATE"), ...moved]) {
    const times = readTimes(each);
    if (typeof times === "string") return `its ${each.name} ${times}`;
    for (const time of times) {
      if (time.isDate !== start.isDate)
        return `its ${each.name} must be of the same kind as DTSTART`;
      except.add(onWallOf(start, time));
    }
  }
  if (except.size > EXCEPT_MAX) return `it has more than ${EXCEPT_MAX} exceptions`;
  return { ...repeat, except: [...except].sort((a, b) => a - b) };
}

/** Converts an instant to the local time of the event's start. */
function onWallOf(start: IcsTime, time: IcsTime): number {
  if (time.zone === null || start.zone === null || time.zone === start.zone) return time.wallMs;
  const atMs = instantOf(time.zone, time.wallMs);
  return atMs + start.zone.offsetAt(atMs);
}

function property(component: IcsComponent, name: string): IcsProperty | undefined {
  return component.properties.find((each) => each.name === name);
}

function properties(component: IcsComponent, name: string): IcsProperty[] {
  return component.properties.filter((each) => each.name === name);
}

function summaryOf(component: IcsComponent): string {
  const text = unescapeText(property(component, "SUMMARY")?.value ?? "").slice(0, 4_000);
  const plain = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\s]+/gu, " ").trim();
  const cut = [...plain].slice(0, SUMMARY_LENGTH_MAX).join("");
  return cut === "" ? "without a summary" : cut;
}

export type EventSources = {
  /** Whole days, as times of the clock on the wall. */
  readonly wall: SpanSource[];
  readonly instants: SpanSource[];
};

/** The excluded times of the events; `zone` is that of events without one. */
export function eventSources(events: readonly IcsEvent[], zone: Zone): EventSources {
  const wall: SpanSource[] = [];
  const instants: SpanSource[] = [];
  const days: Span[] = [];
  const times: Span[] = [];
  for (const event of events) {
    const eventZone = event.timezone === null ? zone : requireZone(event.timezone, "timezone");
    if (event.repeat !== null) {
      if (event.isDate) wall.push(repeatedDays(event));
      else instants.push(repeatedTimes(event, eventZone));
    } else if (event.isDate) days.push(daysSpan(event, event.startMs));
    else times.push(timesSpan({ event, zone: eventZone, startMs: event.startMs }));
  }
  if (days.length > 0) wall.unshift(new SpanList(days));
  if (times.length > 0) instants.unshift(new SpanList(times));
  return { wall, instants };
}

function wordsOf({ summary }: IcsEvent): string {
  return `event ${JSON.stringify(summary)}`;
}

function daysSpan(event: IcsEvent, startMs: number): Span {
  return { startMs, endMs: startMs + event.nominalMs, words: wordsOf(event) };
}

type TimesParams = { readonly event: IcsEvent; readonly zone: Zone; readonly startMs: number };

function timesSpan({ event, zone, startMs: wallMs }: TimesParams): Span {
  const startMs = instantOf(zone, wallMs);
  const nominalEndMs = event.nominalMs === 0 ? startMs : instantOf(zone, wallMs + event.nominalMs);
  return { startMs, endMs: nominalEndMs + event.exactMs, words: wordsOf(event) };
}

function repeatedDays(event: IcsEvent): SpanSource {
  const { startMs, nominalMs, repeat } = event;
  return {
    firstSpan({ fromMs, untilMs }: Reach): Span | null {
      if (repeat === null) return null;
      const foundMs = nextOccurrence({ startMs, repeat, fromMs: fromMs - nominalMs + 1 });
      return foundMs === null || foundMs >= untilMs ? null : daysSpan(event, foundMs);
    },
  };
}

function repeatedTimes(event: IcsEvent, zone: Zone): SpanSource {
  const { startMs, nominalMs, exactMs, repeat } = event;
  return {
    firstSpan({ fromMs, untilMs }: Reach): Span | null {
      if (repeat === null) return null;
      // The search begins earlier, because local time and UTC differ by up to the slack.
      let lowMs = fromMs - nominalMs - exactMs - SLACK_MS;
      for (;;) {
        const foundMs = nextOccurrence({ startMs, repeat, fromMs: lowMs });
        if (foundMs === null || foundMs >= untilMs + SLACK_MS) return null;
        const span = timesSpan({ event, zone, startMs: foundMs });
        if (span.endMs > fromMs) return span.startMs < untilMs ? span : null;
        lowMs = foundMs + 1;
      }
    },
  };
}
