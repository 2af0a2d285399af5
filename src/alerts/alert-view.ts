// Converts stored alerts for callers, destinations and the HTTP API.

import type { AlertRecord } from "../store/alerts/alerts.js";
import {
  type AlertEvent,
  type AlertEvidence,
  type AlertKind,
  type AlertSubject,
  type DeliveryState,
  type Severity,
  subjectText,
} from "./rules/alert.js";

export type AlertDeliveryView = {
  readonly destination: string;
  readonly event: AlertEvent;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly at: Date;
  /** Why the last try failed; never a secret. */
  readonly error: string | null;
};

export type Alert = {
  readonly id: string;
  readonly kind: AlertKind;
  readonly severity: Severity;
  readonly subject: AlertSubject;
  /** In plain words, with the evidence. */
  readonly message: string;
  readonly evidence: AlertEvidence;
  readonly firstAt: Date;
  /** When it was last found to hold. */
  readonly lastAt: Date;
  readonly resolvedAt: Date | null;
  /** The person or program that resolved it; null if it ended by itself. */
  readonly resolvedBy: string | null;
  readonly mutedUntil: Date | null;
  readonly acknowledgedAt: Date | null;
  readonly acknowledgedBy: string | null;
  readonly deliveries: readonly AlertDeliveryView[];
};

/** The message to a destination: an alert was opened or resolved, or a test. */
export type AlertNotice = { readonly event: AlertEvent | "test" } & Omit<Alert, "deliveries">;

export function toAlert(record: AlertRecord): Alert {
  const { firstAt, lastAt, resolvedAt, mutedUntil, acknowledgedAt, deliveries, ...rest } = record;
  return {
    ...rest,
    firstAt: new Date(firstAt),
    lastAt: new Date(lastAt),
    resolvedAt: dateOrNull(resolvedAt),
    mutedUntil: dateOrNull(mutedUntil),
    acknowledgedAt: dateOrNull(acknowledgedAt),
    deliveries: deliveries.map(({ at, ...delivery }) => ({ ...delivery, at: new Date(at) })),
  };
}

export function toNotice(record: AlertRecord, event: AlertEvent): AlertNotice {
  const { deliveries: _, ...alert } = toAlert(record);
  return { event, ...alert };
}

/** One line: `CRITICAL silent: schedule "nightly"`. */
export function headline({ event, kind, severity, subject }: AlertNotice): string {
  const word = event === "resolved" ? "RESOLVED" : severity.toUpperCase();
  return `${event === "test" ? "TEST" : word} ${kind}: ${subjectText(subject)}`;
}

function dateOrNull(at: number | null): Date | null {
  return at === null ? null : new Date(at);
}
