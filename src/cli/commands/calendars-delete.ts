// `holdfast calendars delete`: removes a calendar that no schedule uses.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, requireCalendar } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";

export function calendarsDeleteCommand(call: Call): Command {
  const command = newCommand({
    name: "delete",
    summary: "Delete a calendar; refused while schedules use it.",
    examples: ["calendars delete business-days"],
  }).argument("<name>", "name of the calendar", readName);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      await requireCalendar(holdfast, name);
      await holdfast.calendars.delete(name);
      await shell.say(`Calendar ${quoteShort(name)} deleted.`);
      await shell.answer({ name, answer: "deleted" });
      return EXIT.done;
    });
  });
}
