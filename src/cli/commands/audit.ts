// `holdfast audit`: the group of commands about who changed what.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { auditListCommand } from "./audit-list.js";

export function auditCommand(call: Call): Command {
  const command = newCommand({
    name: "audit",
    summary: "Who changed what, from where, when and why.",
    examples: ["audit list"],
  });
  return command.addCommand(auditListCommand(call));
}
