// `holdfast alerts acknowledge`: somebody has seen it.

import type { Command } from "commander";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readAlertId } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & AskerFlags;

export function alertsAcknowledgeCommand(call: Call): Command {
  const command = newCommand({
    name: "acknowledge",
    summary: "Note who has seen an alert; it ends when its condition does.",
    examples: ["alerts acknowledge 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --by anna"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const alert = await holdfast.alerts.acknowledge(id, { by: askedBy(flags) });
      const { acknowledgedAt, acknowledgedBy } = alert;
      await shell.say(
        acknowledgedAt === null
          ? "It is resolved already."
          : `Acknowledged by ${plain(acknowledgedBy ?? "somebody")}.`,
      );
      await shell.answer(alert);
      return EXIT.done;
    });
  });
}
