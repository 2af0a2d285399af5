// `holdfast alerts list`: what is wrong now, or what was.

import type { Command } from "commander";
import type { AlertListOptions } from "../../alerts/alerts.js";
import { ALERT_KINDS, type AlertKind } from "../../alerts/rules/alert.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { oneOf, readAlertId, wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { alertListPage } from "../output/alerts.js";
import { filterOf, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & WatchFlags & AlertListOptions & { readonly kind?: AlertKind };

const STATES = ["open", "resolved", "all"] as const;
const FILTERS = ["state", "kind", "subject", "limit", "cursor"] as const;

export function alertsListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List alerts, the newest first: the open ones, unless told otherwise.",
    examples: ["alerts list", "alerts list --state all --kind silent", "alerts list --watch 5s"],
  })
    .option("--state <state>", "open (default), resolved or all", oneOf(STATES))
    .option("--kind <kind>", ALERT_KINDS.join(", "), oneOf(ALERT_KINDS))
    .option("--subject <name>", "about the job, schedule or instance of this name")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <id>", "go on where an earlier list ended", readAlertId);
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: AlertListOptions = filterOf(flags, FILTERS);
    return showLook({ flags, shell }, async ({ alerts }) => {
      const page = await alerts.list(filter);
      return { text: alertListPage(page, shell.colours), document: page };
    });
  });
}
