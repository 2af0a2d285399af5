// `holdfast tick`: makes one bounded pass, for a crontab or a container that an outside cron starts.

import type { Command } from "commander";
import type { Ticked } from "../../instance/tick-once.js";
import { act, type Call, newCommand } from "../command.js";
import { readDurationFlag, wholeNumber } from "../flags/read.js";
import { type CommonFlags, loadInstance } from "../instance.js";
import { shortTime } from "../output/format.js";
import { EXIT } from "../shell.js";
import { withConfig } from "./start.js";

type Flags = CommonFlags & { readonly limit?: number; readonly budget?: number };

export function tickCommand(call: Call): Command {
  const command = newCommand({
    name: "tick",
    summary: "Make one bounded pass: fire due ticks, execute a few runs, and exit.",
    examples: ["tick", "tick jobs/holdfast.config.mjs --limit 20 --budget 5m --json"],
  })
    .argument("[config]", "configuration file (default: the one in this folder)")
    .option(
      "--limit <count>",
      "execute at most this many runs; 0 only fires (default: 5)",
      wholeNumber({ min: 0, max: 1_000 }),
    )
    .option("--budget <duration>", "end within this time (default: 50s)", readDurationFlag);
  return act<Flags>(command, call, async (flags, config) => {
    const { shell } = call;
    const holdfast = await loadInstance({ flags: withConfig(flags, config), shell });
    try {
      const { limit, budget } = flags;
      const report = await holdfast.tick({
        ...(limit === undefined ? {} : { limit }),
        ...(budget === undefined ? {} : { budget }),
      });
      await shell.say(reportText(report));
      await shell.printJson(report);
      return EXIT.done;
    } finally {
      await holdfast.stop();
    }
  });
}

function reportText({
  fired,
  skipped,
  executed,
  dispatched,
  reclaimed,
  nextWakeAt,
}: Ticked): string {
  const counts = [
    `${fired.length} fired`,
    `${skipped.length} not fired`,
    `${executed} executed`,
    ...(dispatched > 0 ? [`${dispatched} dispatched`] : []),
    ...(reclaimed > 0 ? [`${reclaimed} reclaimed from silent holders`] : []),
  ].join(", ");
  const next = nextWakeAt === null ? "nothing is scheduled" : `next at ${shortTime(nextWakeAt)}`;
  return `${counts}; ${next}`;
}
