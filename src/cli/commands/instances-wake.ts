// `holdfast instances wake`: a quiet instance goes on.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags;

export function instancesWakeCommand(call: Call): Command {
  const command = newCommand({
    name: "wake",
    summary: "Wake a quiet instance: it claims and fires again.",
    examples: ["instances wake web-1:4711:0199c1f2"],
  }).argument("<id>", "id of the instance, as `instances list` shows it");
  return act<Flags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      await holdfast.instances.wake(id);
      await shell.say(`Instance ${plain(id)} claims and fires again within its next poll.`);
      await shell.answer({ id, quiet: false });
      return EXIT.done;
    });
  });
}
