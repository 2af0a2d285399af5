// `holdfast runs`: the group of commands that look at runs and act on them.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { runsCancelCommand } from "./runs-cancel.js";
import { runsChildrenCommand } from "./runs-children.js";
import { runsItemsCommand } from "./runs-items.js";
import { runsListCommand } from "./runs-list.js";
import { runsLogsCommand } from "./runs-logs.js";
import { runsRetryCommand } from "./runs-retry.js";
import { runsShowCommand } from "./runs-show.js";

export function runsCommand(call: Call): Command {
  const command = newCommand({
    name: "runs",
    summary: "Look at runs and their logs, cancel them, retry them.",
    examples: ["runs list --status failed"],
  });
  for (const add of [
    runsListCommand,
    runsShowCommand,
    runsChildrenCommand,
    runsItemsCommand,
    runsLogsCommand,
    runsCancelCommand,
    runsRetryCommand,
  ]) {
    command.addCommand(add(call));
  }
  return command;
}
