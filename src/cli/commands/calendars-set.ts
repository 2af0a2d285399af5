// `holdfast calendars set`: makes a calendar, or puts other rules in its place.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CalendarFlags, calendarOptions, withCalendarOptions } from "../flags/calendars.js";
import { readName } from "../flags/names.js";
import { underFlagNames } from "../flags/refused.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & CalendarFlags & AskerFlags;

export function calendarsSetCommand(call: Call): Command {
  const command = newCommand({
    name: "set",
    summary: "Make a calendar, or put other rules in its place; schedules follow at once.",
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
        holdfast.calendars.upsert(name, options, { by: askedBy(flags) }),
      );
      const { description, schedules } = calendar;
      const users = schedules.length === 0 ? "" : `\nUsed by ${plain(schedules.join(", "))}.`;
      await shell.say(`Calendar ${quoteShort(name)}: ${plain(description)}.${users}`);
      await shell.answer(calendar);
      return EXIT.done;
    });
  });
}
