// `holdfast queues resume`: the runs of the queue are claimed again.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";

export function queuesResumeCommand(call: Call): Command {
  const command = newCommand({
    name: "resume",
    summary: "Resume a queue.",
    examples: ["queues resume mail"],
  }).argument("<name>", "name of the queue", readName);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const queue = await holdfast.queues.resume(name);
      await shell.say(`Queue ${quoteShort(name)} is claimed from again: ${queue.ready} ready.`);
      await shell.answer(queue);
      return EXIT.done;
    });
  });
}
