// One alert: its message, subject, time and evidence, and the buttons to act on it.

import { call } from "../api/call.js";
import type { Alert } from "../api/wire.js";
import { ActionButton } from "../shared/action.js";
import { spaced } from "../shared/format.js";
import { JsonView } from "../shared/json-view.js";
import { Sentence } from "../shared/sentence.js";
import { Badge } from "../shared/status.js";
import { Ago, Time } from "../shared/time.js";
import { useMay } from "../shell/me.js";
import { SubjectLink } from "./subject-link.js";

export function AlertRow({ alert }: { readonly alert: Alert }) {
  const mayChange = useMay("admin");
  const isOpen = alert.resolvedAt === null;
  const isMuted = alert.mutedUntil !== null && Date.parse(alert.mutedUntil) > Date.now();
  const params = { id: alert.id };
  return (
    <li className="border-t border-line px-4 py-3 first:border-t-0">
      <div className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
        <div className="min-w-0 flex-[1_1_18rem]">
          <p className="flex flex-wrap items-center gap-2">
            {isOpen ? (
              <Badge tone={alert.severity === "critical" ? "failed" : "late"} sign="!">
                {alert.severity}
              </Badge>
            ) : (
              <Badge tone="quiet">ended</Badge>
            )}
            <span className="font-medium">
              <Sentence text={alert.message} />
            </span>
          </p>
          <p className="mt-0.5 text-xs text-muted">
            {spaced(alert.kind)} · <SubjectLink subject={alert.subject} /> · opened{" "}
            <Ago at={alert.firstAt} />
            {isOpen ? null : (
              <>
                {" "}
                · ended <Ago at={alert.resolvedAt} />
                {alert.resolvedBy === null ? "" : ` by ${alert.resolvedBy}`}
              </>
            )}
            {alert.acknowledgedBy === null ? "" : ` · seen by ${alert.acknowledgedBy}`}
            {isMuted ? (
              <>
                {" "}
                · muted until <Time at={alert.mutedUntil} />
              </>
            ) : null}
          </p>
        </div>
        {mayChange && isOpen ? (
          <div className="flex flex-wrap gap-1.5">
            {alert.acknowledgedAt === null ? (
              <ActionButton
                label="Acknowledge"
                isSmall
                act={async () => {
                  await call("acknowledgeAlert", "POST /api/alerts/{id}/acknowledge", {
                    params,
                    body: {},
                  });
                  return "The alert is acknowledged.";
                }}
              />
            ) : null}
            <ActionButton
              label="Mute 1 h"
              isSmall
              act={async () => {
                await call("muteAlert", "POST /api/alerts/{id}/mute", {
                  params,
                  body: { for: "1h" },
                });
                return "No message about it is sent for an hour.";
              }}
            />
            <ActionButton
              label="Resolve"
              isSmall
              confirm={{
                title: "End this alert by hand?",
                summary: "If its condition still holds, the next check opens a new alert.",
                verb: "End it",
              }}
              act={async () => {
                await call("resolveAlert", "POST /api/alerts/{id}/resolve", { params, body: {} });
                return "Ended.";
              }}
            />
          </div>
        ) : null}
      </div>
      <details className="mt-1">
        <summary className="text-xs text-muted">
          Evidence
          {alert.deliveries.length > 0 ? ` and ${deliveriesText(alert.deliveries.length)}` : ""}
        </summary>
        <div className="mt-2 grid gap-2">
          <JsonView title="Evidence" value={alert.evidence} />
          {alert.deliveries.map((delivery) => (
            <p key={`${delivery.destination}${delivery.event}${delivery.at}`} className="text-xs">
              <Badge
                tone={
                  delivery.state === "sent"
                    ? "ok"
                    : delivery.state === "failed"
                      ? "failed"
                      : "quiet"
                }
              >
                {delivery.state}
              </Badge>{" "}
              {delivery.event} to {delivery.destination}, <Ago at={delivery.at} />
              {delivery.error === null ? "" : `: ${delivery.error}`}
            </p>
          ))}
        </div>
      </details>
    </li>
  );
}

function deliveriesText(count: number): string {
  return count === 1 ? "1 delivery" : `${count} deliveries`;
}
