// `holdfast alerts show`: everything about one alert, with what was delivered to whom.

import type { Command } from "commander";
import { alertPage } from "../alert-page.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";
import { readAlertId } from "../usage.js";

export function alertsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one alert, with what was delivered to whom.",
    examples: ["alerts show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const alert = await holdfast.alerts.get(id);
      if (!alert) {
        shell.complain(`There is no alert ${id}: it never existed, or it was pruned.`);
        await shell.answer(null);
        return EXIT.no;
      }
      await shell.say(alertPage(alert, shell.colours));
      await shell.answer(alert);
      return EXIT.done;
    });
  });
}
