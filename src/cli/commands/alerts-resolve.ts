// `holdfast alerts resolve`: ends an alert by hand.

import type { Command } from "commander";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readAlertId } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & AskerFlags;

export function alertsResolveCommand(call: Call): Command {
  const command = newCommand({
    name: "resolve",
    summary: "End an alert by hand; if its condition still holds, the next look opens another.",
    examples: ["alerts resolve 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --by anna"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const alert = await holdfast.alerts.resolve(id, { by: askedBy(flags) });
      await shell.say(`Resolved by ${plain(alert.resolvedBy ?? "itself")}.`);
      await shell.answer(alert);
      return EXIT.done;
    });
  });
}
