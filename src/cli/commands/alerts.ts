// `holdfast alerts`: the group of commands for alerts.

import type { Command } from "commander";
import type { AlertListOptions } from "../../alerts/alerts.js";
import { ALERT_KINDS, type AlertKind } from "../../alerts/rules/alert.js";
import { AlertNotFoundError } from "../../shared/errors.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { underFlagNames } from "../flags/errors.js";
import { oneOf, readAlertId, readDurationFlag, wholeNumber } from "../flags/usage.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../instance.js";
import { alertListPage, alertPage, alertTestPage } from "../output/alerts.js";
import { filterOf, runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { EXIT, plain } from "../shell.js";

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

// `holdfast alerts list`: what is wrong now, or what was.

type ListFlags = CommonFlags & WatchFlags & AlertListOptions & { readonly kind?: AlertKind };

const STATES = ["open", "resolved", "all"] as const;
const FILTERS = ["state", "kind", "subject", "limit", "cursor"] as const;

function alertsListCommand(call: Call): Command {
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
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: AlertListOptions = filterOf(flags, FILTERS);
    return runReadCommand({ flags, shell }, async ({ alerts }) => {
      const page = await alerts.list(filter);
      return { text: alertListPage(page, shell.colours), document: page };
    });
  });
}

// `holdfast alerts show`: everything about one alert, with what was delivered to whom.

type ShowFlags = CommonFlags & WatchFlags;

function alertsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one alert, with what was delivered to whom.",
    examples: ["alerts show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<ShowFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, id = "") => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async ({ alerts }) => {
        const alert = await alerts.get(id);
        if (!alert) throw new AlertNotFoundError(id);
        return { text: alertPage(alert, shell.colours), document: alert };
      });
    },
  );
}

// `holdfast alerts acknowledge`: somebody has seen it.

type AcknowledgeFlags = CommonFlags & ActorFlags;

function alertsAcknowledgeCommand(call: Call): Command {
  const command = newCommand({
    name: "acknowledge",
    summary: "Note who has seen an alert; it ends when its condition does.",
    examples: ["alerts acknowledge 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --by anna"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<AcknowledgeFlags>(
    withConfigOption(withByOption(command)),
    call,
    async (flags, id = "") => {
      const { shell } = call;
      return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
        const alert = await holdfast.alerts.acknowledge(id, { by: actorName(flags) });
        const { acknowledgedAt, acknowledgedBy } = alert;
        await shell.say(
          acknowledgedAt === null
            ? "It is resolved already."
            : `Acknowledged by ${plain(acknowledgedBy ?? "somebody")}.`,
        );
        await shell.printJson(alert);
        return EXIT.done;
      });
    },
  );
}

// `holdfast alerts mute`: nothing is delivered about it for a while.

type MuteFlags = CommonFlags & { readonly for: number };

function alertsMuteCommand(call: Call): Command {
  const command = newCommand({
    name: "mute",
    summary: "Deliver nothing about its kind and subject for a while; then, if it still holds.",
    examples: ["alerts mute 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --for 2h"],
  })
    .argument("<alert>", "id of the alert", readAlertId)
    .requiredOption("--for <duration>", "how long, for example 2h; 0s ends it", readDurationFlag);
  return act<MuteFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const alert = await holdfast.alerts.mute(id, flags.for);
      await shell.say(`Muted until ${alert.mutedUntil?.toISOString()}.`);
      await shell.printJson(alert);
      return EXIT.done;
    });
  });
}

// `holdfast alerts resolve`: ends an alert by hand.

type ResolveFlags = CommonFlags & ActorFlags;

function alertsResolveCommand(call: Call): Command {
  const command = newCommand({
    name: "resolve",
    summary: "End an alert by hand; if its condition still holds, the next look opens another.",
    examples: ["alerts resolve 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --by anna"],
  }).argument("<alert>", "id of the alert", readAlertId);
  return act<ResolveFlags>(
    withConfigOption(withByOption(command)),
    call,
    async (flags, id = "") => {
      const { shell } = call;
      return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
        const alert = await holdfast.alerts.resolve(id, { by: actorName(flags) });
        await shell.say(`Resolved by ${plain(alert.resolvedBy ?? "itself")}.`);
        await shell.printJson(alert);
        return EXIT.done;
      });
    },
  );
}

// `holdfast alerts test`: shows whether alerts arrive, before one has to.

type TestFlags = CommonFlags & { readonly destination?: string };

function alertsTestCommand(call: Call): Command {
  const command = newCommand({
    name: "test",
    summary: "Send a test alert to every destination of the configuration file, or to one.",
    examples: ["alerts test", "alerts test --destination slack"],
  }).option("--destination <name>", "only this one (default: all)");
  return act<TestFlags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const { destination } = flags;
    return withInstance(
      { flags, purpose: "existing", needsCode: true, shell },
      async (holdfast) => {
        const options = destination === undefined ? {} : { destination };
        const tested = await underFlagNames("alerts.test()", () => holdfast.alerts.test(options));
        await shell.say(alertTestPage(tested, shell.colours));
        await shell.printJson(tested);
        return tested.ok ? EXIT.done : EXIT.no;
      },
    );
  });
}
