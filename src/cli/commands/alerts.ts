// `holdfast alerts`: the group of commands for alerts.

import type { Command } from "commander";
import type { Alert } from "../../alerts/alert-view.js";
import type { AlertListOptions, AlertPage, AlertTested } from "../../alerts/alerts.js";
import { ALERT_KINDS, type AlertKind, subjectText } from "../../alerts/rules/alert.js";
import { AlertNotFoundError } from "../../shared/errors.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { underFlagNames } from "../flags/errors.js";
import { oneOf, readAlertId, readCursor, readDurationFlag, wholeNumber } from "../flags/read.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../instance.js";
import { factLines, newTable, shortTime } from "../output/format.js";
import { filterOf, runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";

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
    summary: "List alerts, mute or acknowledge one, and test their destinations.",
    examples: ["alerts list"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}

// `holdfast alerts list`: open alerts, or past ones.

type ListFlags = CommonFlags & WatchFlags & AlertListOptions & { readonly kind?: AlertKind };

const STATES = ["open", "resolved", "all"] as const;
const FILTERS = ["state", "kind", "subject", "limit", "cursor"] as const;

function alertsListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List alerts, newest first; only open ones by default.",
    examples: ["alerts list", "alerts list --state all --kind silent", "alerts list --watch 5s"],
  })
    .option("--state <state>", "open (default), resolved or all", oneOf(STATES))
    .option("--kind <kind>", ALERT_KINDS.join(", "), oneOf(ALERT_KINDS))
    .option("--subject <name>", "about the job, schedule or instance of this name")
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <id>", "continue where an earlier list ended", readCursor);
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: AlertListOptions = filterOf(flags, FILTERS);
    return runReadCommand({ flags, shell }, async ({ alerts }) => {
      const page = await alerts.list(filter);
      return { text: alertListPage(page, shell.colours), document: page };
    });
  });
}

// `holdfast alerts show`: one alert with its deliveries.

type ShowFlags = CommonFlags & WatchFlags;

function alertsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one alert with its deliveries.",
    examples: ["alerts show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<alert>", "id of the alert, or 6 characters of its beginning or end", readAlertId);
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

// `holdfast alerts acknowledge`: marks an alert as seen.

type AcknowledgeFlags = CommonFlags & ActorFlags;

function alertsAcknowledgeCommand(call: Call): Command {
  const command = newCommand({
    name: "acknowledge",
    summary: "Record who has seen an alert; it ends when its condition does.",
    examples: ["alerts acknowledge 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --by anna"],
  }).argument("<alert>", "id of the alert, or 6 characters of its beginning or end", readAlertId);
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
            ? "The alert is already resolved."
            : `Acknowledged by ${plain(acknowledgedBy ?? "somebody")}.`,
        );
        await shell.printJson(alert);
        return EXIT.done;
      });
    },
  );
}

// `holdfast alerts mute`: delivers nothing about its condition for a while.

type MuteFlags = CommonFlags & { readonly for: number };

function alertsMuteCommand(call: Call): Command {
  const command = newCommand({
    name: "mute",
    summary: "Mute deliveries about its kind and subject for a while.",
    examples: ["alerts mute 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --for 2h"],
  })
    .argument("<alert>", "id of the alert, or 6 characters of its beginning or end", readAlertId)
    .requiredOption(
      "--for <duration>",
      "how long, for example 2h; 0s ends the mute",
      readDurationFlag,
    );
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
    summary: "End an alert by hand; if its condition still holds, the next check opens a new one.",
    examples: ["alerts resolve 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --by anna"],
  }).argument("<alert>", "id of the alert, or 6 characters of its beginning or end", readAlertId);
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

// `holdfast alerts test`: sends a test alert, to show that alerts arrive.

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

const MESSAGE_LENGTH_MAX = 60;

function alertListPage({ alerts, nextCursor }: AlertPage, colours: Colours): string {
  if (alerts.length === 0) return "No alerts.";
  const table = newTable(["id", "state", "kind", "about", "since", "message"], colours);
  for (const alert of alerts) {
    table.push([
      alert.id,
      stateText(alert, colours),
      alert.kind,
      plain(subjectText(alert.subject)),
      shortTime(alert.firstAt),
      cut(plain(alert.message), MESSAGE_LENGTH_MAX),
    ]);
  }
  const more = nextCursor === null ? "" : `\nMore: add --cursor ${nextCursor}`;
  return `${table.toString().replace(/(?<! ) +$/gm, "")}${more}`;
}

function alertPage(alert: Alert, colours: Colours): string {
  const { resolvedAt, resolvedBy, mutedUntil, acknowledgedAt, acknowledgedBy } = alert;
  const facts = factLines(
    [
      ["alert", alert.id],
      ["state", stateText(alert, colours)],
      ["kind", alert.kind],
      ["about", plain(subjectText(alert.subject))],
      ["message", plain(alert.message)],
      ["since", shortTime(alert.firstAt)],
      ["last seen", shortTime(alert.lastAt)],
      ["resolved", when(resolvedAt, resolvedBy)],
      ["acknowledged", when(acknowledgedAt, acknowledgedBy)],
      ["muted until", when(mutedUntil, null)],
    ],
    colours,
  );
  const { deliveries } = alert;
  if (deliveries.length === 0)
    return [...facts, "", "No deliveries; the alert was only logged."].join("\n");
  const table = newTable(["to", "event", "state", "tries", "last", "error"], colours);
  for (const { destination, event, state, attempts, at, error } of deliveries)
    table.push([
      plain(destination),
      event,
      state === "failed" ? colours.red(state) : state,
      String(attempts),
      shortTime(at),
      plain(error ?? ""),
    ]);
  return [...facts, "", table.toString().replace(/(?<! ) +$/gm, "")].join("\n");
}

function alertTestPage({ deliveries }: AlertTested, colours: Colours): string {
  return deliveries
    .map(({ destination, ok, error }) =>
      ok
        ? `${plain(destination)}: ${colours.green("sent")}`
        : `${plain(destination)}: ${colours.red("failed")}, ${plain(error ?? "unknown")}`,
    )
    .join("\n");
}

function stateText({ resolvedAt, severity, acknowledgedAt }: Alert, colours: Colours): string {
  if (resolvedAt !== null) return colours.green("resolved");
  const word = severity === "critical" ? colours.red(severity) : colours.yellow(severity);
  return acknowledgedAt === null ? word : `${word}, seen`;
}

function when(at: Date | null, by: string | null): string | null {
  if (at === null) return null;
  return by === null ? shortTime(at) : `${shortTime(at)} by ${plain(by)}`;
}
