// `holdfast alerts`: the group of commands for alerts.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { alertsAcknowledgeCommand } from "./alerts-acknowledge.js";
import { alertsListCommand } from "./alerts-list.js";
import { alertsMuteCommand } from "./alerts-mute.js";
import { alertsResolveCommand } from "./alerts-resolve.js";
import { alertsShowCommand } from "./alerts-show.js";
import { alertsTestCommand } from "./alerts-test.js";

const COMMANDS = [
  alertsListCommand,
  alertsShowCommand,
  alertsMuteCommand,
  alertsAcknowledgeCommand,
  alertsResolveCommand,
  alertsTestCommand,
];

export function alertsCommand(call: Call): Command {
  const command = newCommand({
    name: "alerts",
    summary: "Look at alerts, mute or acknowledge one, and try where they go.",
    examples: ["alerts list"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}
