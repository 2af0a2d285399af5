// `holdfast audit`: the group of commands about who changed what.

import type { Command } from "commander";
import { type Call, listedByName, newCommand } from "../command.js";
import { auditListCommand } from "./audit-list.js";

export function auditCommand(call: Call): Command {
  const command = newCommand({
    name: "audit",
    summary: "Who changed what, from where, when and why.",
    examples: ["audit", "audit --since 24h"],
  });
  return listedByName(command, auditListCommand(call));
}
