// `holdfast alerts mute`: nothing is delivered about it for a while.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readAlertId, readDurationFlag } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & { readonly for: number };

export function alertsMuteCommand(call: Call): Command {
  const command = newCommand({
    name: "mute",
    summary: "Deliver nothing about its kind and subject for a while; then, if it still holds.",
    examples: ["alerts mute 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --for 2h"],
  })
    .argument("<alert>", "id of the alert", readAlertId)
    .requiredOption("--for <duration>", "how long, for example 2h; 0s ends it", readDurationFlag);
  return act<Flags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const alert = await holdfast.alerts.mute(id, flags.for);
      await shell.say(`Muted until ${alert.mutedUntil?.toISOString()}.`);
      await shell.answer(alert);
      return EXIT.done;
    });
  });
}
