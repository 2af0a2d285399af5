// `holdfast tick`: one bounded pass, for a crontab or a container that an outside cron starts.

import type { Command } from "commander";
import type { Ticked } from "../../instance/tick-once.js";
import { act, type Call, newCommand } from "../command.js";
import { readDurationFlag, wholeNumber } from "../flags/usage.js";
import { type CommonFlags, loadInstance } from "../instance.js";
import { shortTime } from "../output/times.js";
import { EXIT } from "../shell.js";
import { withConfig } from "./start.js";

type Flags = CommonFlags & { readonly limit?: number; readonly budget?: number };

export function tickCommand(call: Call): Command {
  const command = newCommand({
    name: "tick",
    summary: "One bounded pass: fire what is due, execute a few runs, and end.",
    examples: ["tick", "tick jobs/holdfast.config.mjs --limit 20 --budget 5m --json"],
  })
    .argument("[config]", "configuration file (default: the one in this folder)")
    .option(
      "--limit <count>",
      "execute at most so many runs; 0 only fires (default: 5)",
      wholeNumber({ min: 0, max: 1_000 }),
    )
    .option("--budget <duration>", "be done by then (default: 50s)", readDurationFlag);
  return act<Flags>(command, call, async (flags, config) => {
    const { shell } = call;
    const holdfast = await loadInstance({ flags: withConfig(flags, config), shell });
    try {
      const { limit, budget } = flags;
      const answer = await holdfast.tick({
        ...(limit === undefined ? {} : { limit }),
        ...(budget === undefined ? {} : { budget }),
      });
      await shell.say(inWords(answer));
      await shell.printJson(answer);
      return EXIT.done;
    } finally {
      await holdfast.stop();
    }
  });
}

function inWords({ fired, skipped, executed, dispatched, reclaimed, nextWakeAt }: Ticked): string {
  const counts = [
    `${fired.length} fired`,
    `${skipped.length} not fired`,
    `${executed} executed`,
    ...(dispatched > 0 ? [`${dispatched} dispatched`] : []),
    ...(reclaimed > 0 ? [`${reclaimed} taken back from silent holders`] : []),
  ].join(", ");
  const next = nextWakeAt === null ? "nothing is planned" : `next at ${shortTime(nextWakeAt)}`;
  return `${counts}; ${next}`;
}
