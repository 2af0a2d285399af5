// `holdfast calendars show`: everything that one calendar excludes.

import type { Command } from "commander";
import { windowText } from "../../schedules/calendars/windows.js";
import type { Calendar } from "../../schedules/calendars.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, requireCalendar } from "../flags/names.js";
import type { CommonFlags } from "../instance.js";
import { type Fact, factLines } from "../output/runs.js";
import { shortTime } from "../output/times.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import { type Colours, plain } from "../shell.js";

const EVENTS_SHOWN_MAX = 20;

export function calendarsShowCommand(call: Call): Command {
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
      return showLook({ flags, shell }, async (holdfast) => {
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
    ["timezone", rules.timezone ?? "that of each schedule"],
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
