// `holdfast instances`: the group of commands that look at instances, and make one quiet or wake it;
// by itself it lists them.

import type { Command } from "commander";
import { type Call, listedByName, newCommand } from "../command.js";
import { instancesListCommand } from "./instances-list.js";
import { instancesQuietCommand } from "./instances-quiet.js";
import { instancesWakeCommand } from "./instances-wake.js";

export function instancesCommand(call: Call): Command {
  const command = newCommand({
    name: "instances",
    summary: "Look at instances, make one quiet, wake it.",
    examples: ["instances", "instances --limit 5 --json"],
  });
  listedByName(command, instancesListCommand(call));
  for (const add of [instancesQuietCommand, instancesWakeCommand]) command.addCommand(add(call));
  return command;
}
