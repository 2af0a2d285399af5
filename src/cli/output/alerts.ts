// Alerts as pages of text for people: one table of many, or everything about one.

import type { Alert } from "../../alerts/alert-view.js";
import type { AlertPage, AlertTested } from "../../alerts/alerts.js";
import { subjectText } from "../../alerts/rules/alert.js";
import { type Colours, cut, plain } from "../shell.js";
import { factLines, newTable } from "./runs.js";
import { shortTime } from "./times.js";

const MESSAGE_LENGTH_MAX = 60;

export function alertListPage({ alerts, nextCursor }: AlertPage, colours: Colours): string {
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

export function alertPage(alert: Alert, colours: Colours): string {
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
  if (deliveries.length === 0) return [...facts, "", "Delivered to nobody but the log."].join("\n");
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

export function alertTestPage({ deliveries }: AlertTested, colours: Colours): string {
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
