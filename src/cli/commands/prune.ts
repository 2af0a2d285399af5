// `holdfast prune`: removes what is past its time, now and all of it.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { ProgressBar } from "../output/progress-bar.js";
import { EXIT } from "../shell.js";

export function pruneCommand(call: Call): Command {
  const command = newCommand({
    name: "prune",
    summary:
      "Remove history, ticks, log lines and lock history that are past their time, now; instances do it each hour.",
    examples: ["prune", "prune --json"],
  });
  return act<CommonFlags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
      const bar = new ProgressBar({ shell });
      const pruned = await holdfast.prune({
        onProgress: ({ removed }) =>
          bar.show({ done: removed, total: null, text: `${removed.toLocaleString("en")} removed` }),
      });
      bar.end();
      await shell.say(
        pruned.removed === 0
          ? "Nothing is past its time."
          : `Removed ${pruned.removed.toLocaleString("en")} rows and days that were past their time.`,
      );
      await shell.answer(pruned);
      return EXIT.done;
    });
  });
}
