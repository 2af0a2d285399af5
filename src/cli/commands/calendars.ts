// `holdfast calendars`: the group of commands for named sets of times at which schedules do not tick.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { calendarsDeleteCommand } from "./calendars-delete.js";
import { calendarsListCommand } from "./calendars-list.js";
import { calendarsSetCommand } from "./calendars-set.js";
import { calendarsShowCommand } from "./calendars-show.js";

const COMMANDS = [
  calendarsListCommand,
  calendarsShowCommand,
  calendarsSetCommand,
  calendarsDeleteCommand,
];

export function calendarsCommand(call: Call): Command {
  const command = newCommand({
    name: "calendars",
    summary: "Look at calendars and change them: times at which schedules do not tick.",
    examples: ["calendars set business-days --days mon-fri --dates 12-25,01-01"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}
