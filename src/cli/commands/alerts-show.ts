// `holdfast alerts show`: everything about one alert, with what was delivered to whom.

import type { Command } from "commander";
import { AlertNotFoundError } from "../../shared/errors.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readAlertId } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { alertPage } from "../output/alerts.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & WatchFlags;

export function alertsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one alert, with what was delivered to whom.",
    examples: ["alerts show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, id = "") => {
    const { shell } = call;
    return showLook({ flags, shell }, async ({ alerts }) => {
      const alert = await alerts.get(id);
      if (!alert) throw new AlertNotFoundError(id);
      return { text: alertPage(alert, shell.colours), document: alert };
    });
  });
}
