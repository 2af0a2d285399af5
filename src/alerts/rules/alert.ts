// Defines an alert: one condition about one subject, open for as long as the condition lasts. find.ts finds conditions.

export const ALERT_KINDS = [
  "stale",
  "reclaimed",
  "failureRate",
  "running",
  "slow",
  "silent",
  "stuck",
  "broken",
  "noWorker",
  "consecutiveFailures",
  "skipped",
  "clockSkew",
  "slowClaims",
  "waiting_too_long",
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

export const SEVERITIES = ["warning", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** Critical alerts should wake people up; warnings can wait until the morning. */
export const SEVERITY_OF: { readonly [K in AlertKind]: Severity } = {
  stale: "critical",
  reclaimed: "warning",
  failureRate: "critical",
  running: "warning",
  slow: "warning",
  silent: "critical",
  stuck: "warning",
  broken: "critical",
  noWorker: "critical",
  consecutiveFailures: "critical",
  skipped: "warning",
  clockSkew: "warning",
  slowClaims: "warning",
  waiting_too_long: "warning",
};

export const SUBJECT_TYPES = ["job", "schedule", "instance", "database"] as const;
/** The subject of an alert. For a problem of the database, the name is the affected part. */
export type AlertSubject = {
  readonly type: (typeof SUBJECT_TYPES)[number];
  readonly name: string;
};

/** Plain values that the message is made of, for programs. */
export type AlertEvidence = Readonly<Record<string, unknown>>;

/** A condition that holds now. */
export type Finding = {
  readonly kind: AlertKind;
  readonly subject: AlertSubject;
  /** In plain words, with the evidence. */
  readonly message: string;
  readonly evidence: AlertEvidence;
};

/** An alert that was not resolved yet, as far as decisions need it. */
export type OpenAlert = {
  readonly id: string;
  readonly kind: AlertKind;
  readonly subject: AlertSubject;
  readonly message: string;
  readonly evidence: AlertEvidence;
  /** When it was last found. */
  readonly lastAt: number;
};

/** Identifies one condition of one subject: at most one alert of it is open. */
export function alertKey({ kind, subject }: Pick<Finding, "kind" | "subject">): string {
  return `${kind} ${subject.type} ${subject.name}`;
}

/** The subject in words: `schedule "nightly"`. */
export function subjectText({ type, name }: AlertSubject): string {
  return type === "database" ? name : `${type} ${JSON.stringify(name)}`;
}

/** The events that destinations get. */
export const ALERT_EVENTS = ["opened", "resolved"] as const;
export type AlertEvent = (typeof ALERT_EVENTS)[number];

export const DELIVERY_STATES = ["pending", "sent", "failed"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];
