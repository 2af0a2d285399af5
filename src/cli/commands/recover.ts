// `holdfast recover`: going on after a restored backup.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { ImpossibleError } from "../failure.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { recoverPage } from "../output/check.js";
import { EXIT } from "../shell.js";
import { underPause } from "./pause.js";

type Flags = CommonFlags & {
  readonly yes?: boolean;
  readonly apply?: boolean;
  readonly force?: boolean;
};

export function recoverCommand(call: Call): Command {
  const command = newCommand({
    name: "recover",
    summary:
      "After a restored backup: raise all fences, free what holders that are gone had, and list what would fire and run.",
    examples: ["recover", "recover --yes"],
  })
    .option("--yes", "do it; without it, it is only told")
    .option("--apply", "the same as --yes")
    .option("--force", "also while instances are on this database");
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const isApplied = flags.yes === true || flags.apply === true;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      if (isApplied && flags.force !== true) {
        const { liveInstances } = await holdfast.recover();
        if (liveInstances > 0)
          throw new ImpossibleError(
            `${liveInstances} instances were seen on this database within the last minute. Stop them, or add --force.`,
          );
      }
      const report = await holdfast.recover({ apply: isApplied });
      const page = { text: recoverPage(report, shell.colours), document: report };
      const { text, document } = await underPause(holdfast, page, shell.colours);
      await shell.say(text);
      await shell.answer(document);
      return EXIT.done;
    });
  });
}
