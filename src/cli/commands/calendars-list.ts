// `holdfast calendars list`: every calendar, with what it excludes and who uses it.

import type { Command } from "commander";
import type { Calendar } from "../../schedules/calendars.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import type { CommonFlags } from "../instance.js";
import { newTable } from "../output/runs.js";
import { shortTime } from "../output/times.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import { type Colours, cut, plain } from "../shell.js";

const DESCRIPTION_LENGTH_MAX = 60;
const USERS_LENGTH_MAX = 40;

export function calendarsListCommand(call: Call): Command {
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
      return showLook({ flags, shell }, async (holdfast) => {
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
