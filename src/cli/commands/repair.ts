// `holdfast repair`: mends what `holdfast check` finds, where a rule can.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { repairPage } from "../output/check.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & { readonly apply?: boolean };

export function repairCommand(call: Call): Command {
  const command = newCommand({
    name: "repair",
    summary:
      "Mend what check finds: prints its plan, and acts with --apply. Exit code 1 while anything is broken.",
    examples: ["repair", "repair --apply"],
  }).option("--apply", "do it");
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
      const report = await holdfast.repair({ apply: flags.apply ?? false });
      await shell.say(repairPage(report, shell.colours));
      await shell.answer(report);
      return report.ok ? EXIT.done : EXIT.no;
    });
  });
}
