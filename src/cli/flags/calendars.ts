// The flags that say what a calendar excludes, as options of the library.

import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { CalendarOptions } from "../../schedules/calendars/calendar.js";
import { WEEKDAYS } from "../../schedules/calendars/windows.js";
import { textProp } from "../../shared/failure.js";
import { UsageError } from "./usage.js";

type Window = NonNullable<CalendarOptions["windows"]>[number];

export type CalendarFlags = {
  readonly days?: readonly string[];
  readonly dates?: readonly string[];
  readonly window?: readonly Window[];
  readonly ics?: string;
  readonly timezone?: string;
};

export function withCalendarOptions(command: Command): Command {
  return command
    .option("--days <days>", "only these weekdays count, for example mon-fri,sun", readDays)
    .option("--dates <dates>", "excluded: 2026-12-25,12-24..12-26,05-01; repeatable", readDates)
    .option(
      "--window <from..to>",
      "excluded: 22:00..06:00, 'mon-fri 09:00..17:00' or two times; repeatable",
      readWindow,
    )
    .option("--ics <file>", "excluded: the events of this .ics file")
    .option("--tz, --timezone <zone>", "IANA name (default: the zone of each schedule)");
}

/** "mon-fri,sun" as a list; what is no weekday is left to the library to refuse. */
export function readDays(text: string): readonly string[] {
  return text.split(",").flatMap((part) => {
    const [first = "", last, ...more] = part.trim().toLowerCase().split("-");
    const start = WEEKDAYS.indexOf(first);
    const end = WEEKDAYS.indexOf(last ?? first);
    if (start < 0 || end < 0 || more.length > 0) return [part.trim()];
    // Over the end of the week, as in fri-mon.
    const count = ((end - start + WEEKDAYS.length) % WEEKDAYS.length) + 1;
    return [...WEEKDAYS, ...WEEKDAYS].slice(start, start + count);
  });
}

function readDates(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").map((each) => each.trim())];
}

/** "22:00..06:00", with weekdays before it where only those begin one. */
export function readWindow(text: string, before: readonly Window[] = []): readonly Window[] {
  const words = text.trim().split(/ +/);
  const span = words.pop() ?? "";
  const [days, ...more] = words;
  const middle = span.indexOf("..", 1);
  const from = span.slice(0, middle);
  const to = span.slice(middle + "..".length);
  if (middle < 0 || to === "" || more.length > 0 || /\s/.test(words.join("") + span)) {
    throw new InvalidArgumentError(
      "It must be from..to, for example 22:00..06:00, 'mon-fri 09:00..17:00' or " +
        "2026-12-20T18:00..2027-01-02T06:00.",
    );
  }
  return [...before, { from, to, ...(days === undefined ? {} : { days: readDays(days) }) }];
}

export function calendarOptions(flags: CalendarFlags): CalendarOptions {
  const { days, dates, window, ics, timezone } = flags;
  if ([days, dates, window, ics].every((each) => each === undefined)) {
    throw new UsageError(
      "Say what it excludes: --days mon-fri, --dates 12-25, --window 22:00..06:00 or --ics FILE.",
    );
  }
  return {
    ...(days === undefined ? {} : { days }),
    ...(dates === undefined ? {} : { dates }),
    ...(window === undefined ? {} : { windows: window }),
    ...(ics === undefined ? {} : { ics: readIcsFile(ics) }),
    ...(timezone === undefined ? {} : { timezone }),
  };
}

function readIcsFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = textProp(error, "code") === "ENOENT" ? "There is no such file" : String(error);
    throw new UsageError(`--ics: ${file} could not be read. ${why}.`);
  }
}
