// `holdfast instances quiet`: one instance stands still while the others go on.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & { readonly note?: string };

export function instancesQuietCommand(call: Call): Command {
  const command = newCommand({
    name: "quiet",
    summary: "Make an instance quiet: it claims and fires nothing new until it is woken.",
    examples: ['instances quiet web-1:4711:0199c1f2 --note "looking at its memory"'],
  })
    .argument("<id>", "id of the instance, as `instances list` shows it")
    .option("--note <text>", "why, for whoever looks at it");
  return act<Flags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      await holdfast.instances.quiet(id, flags.note);
      await shell.say(`Instance ${plain(id)} is quiet within its next poll; what it runs goes on.`);
      await shell.answer({ id, quiet: true });
      return EXIT.done;
    });
  });
}
