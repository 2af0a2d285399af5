// `holdfast resume --all`: lifts the pause of everything, and it alone.

import type { Command } from "commander";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { requireAll } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { pauseText } from "../output/pause.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & AskerFlags & { readonly all?: boolean };

export function resumeCommand(call: Call): Command {
  const command = newCommand({
    name: "resume",
    summary:
      "Lift the pause of everything; schedules and queues that are paused by themselves stay so.",
    examples: ["resume --all"],
  }).option("--all", "everything on this database (must be said)");
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags) => {
    const { shell } = call;
    requireAll(flags.all, "schedules resume <name>, queues resume <name>");
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const lifted = await holdfast.resume({ by: askedBy(flags) });
      await shell.say(
        lifted
          ? `Everything goes on; it was paused ${pauseText(lifted)}. Ticks of that time are not caught up.`
          : "Nothing to lift: everything was not paused.",
      );
      await shell.answer({ lifted });
      return EXIT.done;
    });
  });
}
