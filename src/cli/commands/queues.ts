// `holdfast queues`: the group of commands that look at queues, pause them and resume them;
// by itself it lists them.

import type { Command } from "commander";
import { type Call, listedByName, newCommand } from "../command.js";
import { queuesListCommand } from "./queues-list.js";
import { queuesPauseCommand } from "./queues-pause.js";
import { queuesResumeCommand } from "./queues-resume.js";

export function queuesCommand(call: Call): Command {
  const command = newCommand({
    name: "queues",
    summary: "Look at queues, pause them, resume them.",
    examples: ["queues", 'queues pause mail --note "the relay is down"'],
  });
  listedByName(command, queuesListCommand(call));
  for (const add of [queuesPauseCommand, queuesResumeCommand]) command.addCommand(add(call));
  return command;
}
