// `holdfast pause --all`: nothing fires and nothing is claimed until `resume --all`.

import type { Command } from "commander";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { requireAll } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { pauseText } from "../output/pause.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & AskerFlags & { readonly all?: boolean; readonly note?: string };

export function pauseCommand(call: Call): Command {
  const command = newCommand({
    name: "pause",
    summary: "Pause everything: nothing fires and nothing is claimed; what runs goes on.",
    examples: ['pause --all --note "moving the database"'],
  })
    .option("--all", "everything on this database (must be said)")
    .option("--note <text>", "why, for whoever looks at it");
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags) => {
    const { shell } = call;
    requireAll(flags.all, "schedules pause <name>, queues pause <name>");
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const { note } = flags;
      const paused = await holdfast.pause({
        by: askedBy(flags),
        ...(note === undefined ? {} : { note }),
      });
      await shell.say(
        `Everything is paused ${pauseText(paused)}; runs that are running go on. To lift it: holdfast resume --all`,
      );
      await shell.answer({ paused });
      return EXIT.done;
    });
  });
}
