// `holdfast queues pause`: nothing of the queue is claimed until it is resumed.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & { readonly note?: string };

export function queuesPauseCommand(call: Call): Command {
  const command = newCommand({
    name: "pause",
    summary: "Pause a queue: its runs wait, those that run go on.",
    examples: ['queues pause mail --note "the relay is down"'],
  })
    .argument("<name>", "name of the queue", readName)
    .option("--note <text>", "why, for whoever looks at it");
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const queue = await holdfast.queues.pause(name, flags.note);
      const note = queue.pauseNote === null ? "" : ` (${plain(queue.pauseNote)})`;
      const { ready, running } = queue;
      await shell.say(
        `Queue ${quoteShort(name)} is paused${note}: ${ready} ready, ${running} running go on.`,
      );
      await shell.answer(queue);
      return EXIT.done;
    });
  });
}
