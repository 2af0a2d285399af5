// `holdfast locks`: the group of commands for named locks.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { locksHistoryCommand } from "./locks-history.js";
import { locksListCommand } from "./locks-list.js";
import { locksReleaseCommand } from "./locks-release.js";
import { locksStatsCommand } from "./locks-stats.js";

const COMMANDS = [locksListCommand, locksStatsCommand, locksHistoryCommand, locksReleaseCommand];

export function locksCommand(call: Call): Command {
  const command = newCommand({
    name: "locks",
    summary: "Look at named locks, and take one from its holder.",
    examples: ["locks list"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}
