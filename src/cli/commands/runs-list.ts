// `holdfast runs list`: runs that fit, newest first.

import type { Command } from "commander";
import { MODES, RUN_STATUSES } from "../../runs/rules/run.js";
import type { RunListOptions } from "../../runs/run-filter.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { oneOf, readCursor, wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { runListPage } from "../output/runs.js";
import { filterOf, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & RunListOptions & WatchFlags;

const FILTERS = ["status", "job", "schedule", "mode", "tag", "text", "limit", "cursor"] as const;

export function runsListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List runs, the newest first.",
    examples: [
      "runs list --status failed --job send-mail",
      "runs list --schedule nightly-report --mode scheduled",
      "runs list --limit 20 --watch 5s",
    ],
  })
    .option("--status <status>", RUN_STATUSES.join(", "), oneOf(RUN_STATUSES))
    .option("--job <name>", "runs of this job")
    .option("--schedule <name>", "runs that this schedule made")
    .option("--mode <mode>", MODES.join(", "), oneOf(MODES))
    .option("--tag <tag>", "runs with this tag")
    .option("--text <text>", "part of the input, or a whole key or id")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <id>", "go on where an earlier list ended", readCursor);
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: RunListOptions = filterOf(flags, FILTERS);
    return showLook({ flags, shell }, async ({ runs }) => {
      const page = await runs.list(filter);
      return { text: runListPage(page, shell.colours), document: page };
    });
  });
}
