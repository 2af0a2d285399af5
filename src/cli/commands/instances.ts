// `holdfast instances`: the group of commands that look at instances, and make one quiet or wake it.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { instancesListCommand } from "./instances-list.js";
import { instancesQuietCommand } from "./instances-quiet.js";
import { instancesWakeCommand } from "./instances-wake.js";

export function instancesCommand(call: Call): Command {
  const command = newCommand({
    name: "instances",
    summary: "Look at instances, make one quiet, wake it.",
    examples: ["instances list"],
  });
  for (const add of [instancesListCommand, instancesQuietCommand, instancesWakeCommand])
    command.addCommand(add(call));
  return command;
}
