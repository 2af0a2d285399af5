// `holdfast schedules list`: schedules by name, with their next tick and how the last one ended.

import type { Command } from "commander";
import type { ScheduleListOptions } from "../../schedules/filter.js";
import type { ScheduleStatus } from "../../schedules/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { oneOf, wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { underPause } from "../output/pause.js";
import { scheduleListPage } from "../output/schedules.js";
import { filterOf, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & ScheduleListOptions & WatchFlags;

const FILTERS = ["job", "app", "status", "limit", "cursor"] as const;
const STATUSES: readonly ScheduleStatus[] = ["active", "paused", "ended", "broken"];

export function schedulesListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List schedules by name.",
    examples: ["schedules list --status paused", "schedules list --job report --watch 5s"],
  })
    .option("--job <name>", "schedules of this job")
    .option("--app <name>", "schedules of this app")
    .option("--status <status>", STATUSES.join(", "), oneOf(STATUSES))
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <name>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: ScheduleListOptions = filterOf(flags, FILTERS);
    return showLook({ flags, shell }, async (holdfast) => {
      const page = await holdfast.schedules.list(filter);
      const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
      const shown = { text: scheduleListPage(page, setting), document: page };
      return underPause(holdfast, shown, shell.colours);
    });
  });
}
