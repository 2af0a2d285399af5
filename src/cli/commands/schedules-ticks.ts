// `holdfast schedules ticks`: the ledger, newest first; of one schedule or of all.

import type { Command } from "commander";
import type { TickListOptions } from "../../schedules/filter.js";
import { OUTCOMES } from "../../schedules/rules/tick.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, unknownSchedule } from "../flags/names.js";
import { oneOf, readInstantFlag, wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { tickListPage } from "../output/ticks.js";
import { filterOf, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & TickListOptions & WatchFlags;

const FILTERS = ["outcome", "from", "to", "limit", "cursor"] as const;

export function schedulesTicksCommand(call: Call): Command {
  const command = newCommand({
    name: "ticks",
    summary: "List ticks with their outcome and reason, the newest first.",
    examples: [
      "schedules ticks nightly-report --limit 20",
      "schedules ticks --outcome missed --from 2026-03-01T00:00:00Z",
    ],
  })
    .argument("[name]", "name of the schedule (default: all of them)", readName)
    .option("--outcome <outcome>", OUTCOMES.join(", "), oneOf(OUTCOMES))
    .option("--from <time>", "ticks at or after this time", readInstantFlag)
    .option("--to <time>", "ticks at or before this time", readInstantFlag)
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <cursor>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, name) => {
    const { shell } = call;
    const filter: TickListOptions = filterOf(flags, FILTERS);
    return showLook({ flags, shell }, async (holdfast) => {
      const { schedules } = holdfast;
      const page = await schedules.ticks(name ?? null, filter);
      // A deleted schedule keeps its ledger; only a name without history is a mistake.
      const isUnknown = name !== undefined && page.ticks.length === 0;
      if (isUnknown && (await schedules.versions(name)).length === 0)
        throw await unknownSchedule({ holdfast, name });
      const params = { colours: shell.colours, isOfOne: name !== undefined };
      return { text: tickListPage(page, params), document: page };
    });
  });
}
