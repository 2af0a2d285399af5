// `holdfast calendars`: the group of commands for named sets of times at which schedules do not tick.

import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import type { CalendarOptions } from "../../schedules/calendars/calendar.js";
import { WEEKDAYS, windowText } from "../../schedules/calendars/windows.js";
import type { Calendar } from "../../schedules/calendars.js";
import { textProp } from "../../shared/failure.js";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../failure.js";
import { underFlagNames } from "../flags/errors.js";
import { readName, requireCalendar } from "../flags/read.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../instance.js";
import { type Fact, factLines, newTable, shortTime } from "../output/format.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";

const COMMANDS = [
  calendarsListCommand,
  calendarsShowCommand,
  calendarsSetCommand,
  calendarsDeleteCommand,
];

export function calendarsCommand(call: Call): Command {
  const command = newCommand({
    name: "calendars",
    summary: "Show and change calendars: times at which schedules do not tick.",
    examples: ["calendars set business-days --days mon-fri --dates 12-25,01-01"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}

// `holdfast calendars list`: every calendar, with what it excludes and who uses it.

const DESCRIPTION_LENGTH_MAX = 60;
const USERS_LENGTH_MAX = 40;

function calendarsListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List calendars by name.",
    examples: ["calendars list"],
  });
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags) => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const calendars = await holdfast.calendars.list();
        return { text: listPage(calendars, shell.colours), document: { calendars } };
      });
    },
  );
}

function listPage(calendars: readonly Calendar[], colours: Colours): string {
  if (calendars.length === 0) return "No calendars.";
  const table = newTable(["name", "rule", "used by", "changed"], colours);
  for (const { name, description, schedules, updatedAt } of calendars) {
    table.push([
      plain(name),
      cut(plain(description), DESCRIPTION_LENGTH_MAX),
      cut(plain(schedules.join(", ")), USERS_LENGTH_MAX),
      shortTime(updatedAt),
    ]);
  }
  return table.toString();
}

// `holdfast calendars show`: everything that one calendar excludes.

const EVENTS_SHOWN_MAX = 20;

function calendarsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one calendar: what it excludes, and which schedules use it.",
    examples: ["calendars show business-days"],
  }).argument("<name>", "name of the calendar", readName);
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const calendar = await requireCalendar(holdfast, name);
        return { text: calendarPage(calendar, shell.colours), document: calendar };
      });
    },
  );
}

function calendarPage(calendar: Calendar, colours: Colours): string {
  const { rules, schedules, updatedAt, updatedBy, version } = calendar;
  const by = updatedBy === null ? "" : ` by ${plain(updatedBy)}`;
  const list = (values: readonly string[]) => (values.length ? plain(values.join(", ")) : null);
  const facts: Fact[] = [
    ["calendar", plain(calendar.name)],
    ["rule", plain(calendar.description)],
    ["timezone", rules.timezone ?? "each schedule's own"],
    ["days", rules.days && `only ${rules.days.join(", ")}`],
    ["dates", list(rules.dates)],
    ["windows", list(rules.windows.map(windowText))],
    ["events", eventsText(rules.events.map(({ summary }) => summary))],
    ["used by", list(schedules) ?? "no schedule"],
    ["version", `${version}, changed ${shortTime(updatedAt)}${by}`],
  ];
  return factLines(facts, colours).join("\n");
}

function eventsText(summaries: readonly string[]): string | null {
  if (summaries.length === 0) return null;
  const shown = plain(summaries.slice(0, EVENTS_SHOWN_MAX).join(", "));
  const restCount = summaries.length - EVENTS_SHOWN_MAX;
  return restCount > 0 ? `${shown} and ${restCount} more` : shown;
}

// `holdfast calendars set`: creates a calendar, or replaces its rules.

type Flags = CommonFlags & CalendarFlags & ActorFlags;

function calendarsSetCommand(call: Call): Command {
  const command = newCommand({
    name: "set",
    summary: "Create a calendar or replace its rules; schedules follow at once.",
    examples: [
      "calendars set business-days --days mon-fri --dates 2026-12-24..2026-12-26,01-01",
      "calendars set quiet --window 22:00..06:00 --window 'sat 12:00..24:00' --tz Europe/Paris",
      "calendars set holidays --ics holidays.ics",
    ],
  }).argument("<name>", "name of the calendar", readName);
  withByOption(withCalendarOptions(command));
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    const options = calendarOptions(flags);
    return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
      const calendar = await underFlagNames("calendars.upsert()", () =>
        holdfast.calendars.upsert(name, options, { by: actorName(flags) }),
      );
      const { description, schedules } = calendar;
      const users = schedules.length === 0 ? "" : `\nUsed by ${plain(schedules.join(", "))}.`;
      await shell.say(`Calendar ${quoteShort(name)}: ${plain(description)}.${users}`);
      await shell.printJson(calendar);
      return EXIT.done;
    });
  });
}

// `holdfast calendars delete`: removes a calendar that no schedule uses.

function calendarsDeleteCommand(call: Call): Command {
  const command = newCommand({
    name: "delete",
    summary: "Delete a calendar; refused while schedules use it.",
    examples: ["calendars delete business-days"],
  }).argument("<name>", "name of the calendar", readName);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      await requireCalendar(holdfast, name);
      await holdfast.calendars.delete(name);
      await shell.say(`Calendar ${quoteShort(name)} deleted.`);
      await shell.printJson({ name, answer: "deleted" });
      return EXIT.done;
    });
  });
}

type Window = NonNullable<CalendarOptions["windows"]>[number];

type CalendarFlags = {
  readonly days?: readonly string[];
  readonly dates?: readonly string[];
  readonly window?: readonly Window[];
  readonly ics?: string;
  readonly timezone?: string;
};

function withCalendarOptions(command: Command): Command {
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

/** "mon-fri,sun" as a list; the library refuses any other word. */
export function readDays(text: string): readonly string[] {
  return text.split(",").flatMap((part) => {
    const [first = "", last, ...more] = part.trim().toLowerCase().split("-");
    const start = WEEKDAYS.indexOf(first);
    const end = WEEKDAYS.indexOf(last ?? first);
    if (start < 0 || end < 0 || more.length > 0) return [part.trim()];
    // The range passes the end of the week, as in fri-mon.
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

function calendarOptions(flags: CalendarFlags): CalendarOptions {
  const { days, dates, window, ics, timezone } = flags;
  if ([days, dates, window, ics].every((each) => each === undefined)) {
    throw new UsageError(
      "Name what it excludes: --days mon-fri, --dates 12-25, --window 22:00..06:00 or --ics FILE.",
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
    const why = textProp(error, "code") === "ENOENT" ? "The file does not exist" : String(error);
    throw new UsageError(`--ics: ${file} could not be read. ${why}.`);
  }
}
