// `holdfast queues`: the group of commands that look at queues, pause them and resume them.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { queuesListCommand } from "./queues-list.js";
import { queuesPauseCommand } from "./queues-pause.js";
import { queuesResumeCommand } from "./queues-resume.js";

export function queuesCommand(call: Call): Command {
  const command = newCommand({
    name: "queues",
    summary: "Look at queues, pause them, resume them.",
    examples: ["queues list"],
  });
  for (const add of [queuesListCommand, queuesPauseCommand, queuesResumeCommand])
    command.addCommand(add(call));
  return command;
}
