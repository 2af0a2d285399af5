// Named calendars: business days, holidays, blackout windows and the events of an .ics file. What a
// calendar excludes is no tick of the schedules that name it. Read strictly into rules that can be
// stored and copied into a schedule; evaluated as spans of excluded time. Pure.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { kindOf, refuse } from "../../shared/nested-problems.js";
import { gather } from "../../shared/problems.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import { requireZone, type Zone } from "../cron/zone.js";
import { dateSources, readDates } from "./dates.js";
import { eventSources, type IcsEvent, readIcs } from "./ics.js";
import { onClockOf, SpanList, type SpanSource } from "./spans.js";
import { otherDays, readWeekdays, weekdaysText } from "./weekdays.js";
import {
  type CalendarWindow,
  dailySource,
  readWindows,
  windowSpan,
  windowText,
} from "./windows.js";

export type CalendarOptions = {
  /** The weekdays that count, such as `["mon", "tue", "wed", "thu", "fri"]`; the others are excluded. */
  readonly days?: readonly string[] | undefined;
  /** Excluded dates: `"2026-12-25"`, `"2026-12-24..2026-12-26"`, or `"12-25"` for every year. */
  readonly dates?: readonly string[] | undefined;
  /**
   * Blackout windows; `to` no longer belongs to them. Daily ones (`"22:00"` to `"06:00"`) may pass
   * midnight and may name the `days` on which they begin; single ones have two ISO instants, or two
   * local times such as `"2026-12-20T18:00"`.
   */
  readonly windows?:
    | readonly {
        readonly from: string;
        readonly to: string;
        readonly days?: readonly string[] | undefined;
      }[]
    | undefined;
  /** The text of an .ics file: its events are excluded. */
  readonly ics?: string | undefined;
  /**
   * IANA name.
   * @default the zone of the schedule
   */
  readonly timezone?: string | undefined;
};

/** A checked calendar as stored: JSON, and equal calendars are equal JSON. */
export type CalendarRules = {
  readonly timezone: string | null;
  readonly days: readonly string[] | null;
  readonly dates: readonly string[];
  readonly windows: readonly CalendarWindow[];
  readonly events: readonly IcsEvent[];
};

export const CALENDAR_MEMBERS: readonly string[] = ["days", "dates", "windows", "ics", "timezone"];

const EXAMPLE = '{ days: ["mon", "tue", "wed", "thu", "fri"], dates: ["12-25"] }';
const WINDOWS_LISTED_MAX = 3;

/** The rules, or a `ConfigurationError` with everything that is wrong with them. */
export function readCalendar(options: CalendarOptions, field: string): CalendarRules {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    return refuse(field, `must be a calendar such as ${EXAMPLE}, but is ${kindOf(options)}.`);
  }
  const name = (member: string) => (field === "" ? member : `${field}.${member}`);
  const problems: Problem[] = refuseUnknownMembers(options, CALENDAR_MEMBERS, field);
  const { days, dates, windows, ics, timezone } = options;
  const isEmpty = [days, dates, windows, ics].every((each) => each === undefined);
  if (isEmpty) {
    const message = `must have one of days, dates, windows or ics, such as ${EXAMPLE}.`;
    problems.push({ field: field === "" ? "calendar" : field, message });
  }
  const given = <T, N>(member: unknown, none: N, read: () => T) =>
    member === undefined ? none : gather(problems, read);
  const rules = {
    timezone: given(timezone, null, () => requireZone(timezone, name("timezone")).name),
    days: given(days, null, () => readWeekdays(days, name("days"))),
    dates: given(dates, [], () => readDates(dates, name("dates"))),
    windows: given(windows, [], () => readWindows(windows, name("windows"))),
    events: given(ics, [], () => readIcs(ics, name("ics"))),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    timezone: rules.timezone ?? null,
    days: rules.days ?? null,
    dates: rules.dates ?? [],
    windows: rules.windows ?? [],
    events: rules.events ?? [],
  };
}

/** The excluded times of a calendar; `scheduleZone` counts where it has no zone of its own. */
export function calendarSources(rules: CalendarRules, scheduleZone: Zone): SpanSource[] {
  const { timezone, days, dates, windows, events } = rules;
  const zone = timezone === null ? scheduleZone : requireZone(timezone, "timezone");
  const ofEvents = eventSources(events, zone);
  const wall = [
    ...(days === null ? [] : [otherDays(days)]),
    ...dateSources(dates),
    ...windows.filter(({ kind }) => kind === "daily").map(dailySource),
    ...ofEvents.wall,
  ];
  const single = windows.filter(({ kind }) => kind !== "daily");
  const instants =
    single.length === 0 ? [] : [new SpanList(single.map((w) => windowSpan(w, zone)))];
  return [...wall.map((each) => onClockOf(zone, each)), ...instants, ...ofEvents.instants];
}

/** For example "mon to fri only; not on 12 dates; not 22:00 to 06:00 every day". */
export function describeCalendar(rules: CalendarRules): string {
  const { timezone, days, dates, windows, events } = rules;
  const parts: string[] = [];
  if (days !== null) parts.push(`${weekdaysText(days)} only`);
  const [firstDate] = dates;
  if (dates.length === 1) parts.push(`not on ${firstDate?.replace("..", " to ")}`);
  else if (dates.length > 1) parts.push(`not on ${dates.length} dates`);
  for (const window of windows.slice(0, WINDOWS_LISTED_MAX))
    parts.push(`not ${windowText(window)}`);
  const restCount = windows.length - WINDOWS_LISTED_MAX;
  if (restCount > 0) parts.push(`not in ${restCount} more window${restCount === 1 ? "" : "s"}`);
  const [event] = events;
  if (events.length === 1) parts.push(`not during ${JSON.stringify(event?.summary)}`);
  else if (events.length > 1) parts.push(`not during ${events.length} events`);
  const rule = parts.length === 0 ? "excludes nothing" : parts.join("; ");
  return timezone === null ? rule : `${rule}; ${timezone}`;
}
