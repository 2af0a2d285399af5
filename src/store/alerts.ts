// Declares the store's verbs for alerts, and maps their rows: which instance observes next, what it observes, and the
// alerts themselves. At most one alert of a kind and subject is open, on any number of instances. Deliveries are rows
// that an instance claims, so that one instance sends each, and another sends it again if that instance dies.

import {
  type AlertEvent,
  type AlertEvidence,
  type AlertKind,
  type AlertSubject,
  type DeliveryState,
  type Finding,
  type OpenAlert,
  SEVERITY_OF,
  type Severity,
} from "../alerts/rules/alert.js";
import type {
  AlertObservation,
  Culprit,
  ObservationParams,
  ObservedApart,
  ObservedEnd,
  ObservedRate,
  ObservedRun,
  ObservedSchedule,
  ObservedSkip,
  ObservedTick,
  SightJob,
} from "../alerts/rules/observation.js";
import type { ScheduleAlertRules } from "../alerts/rules/rules.js";
import { REASONS } from "../schedules/rules/tick.js";
import type { Audited } from "./audit.js";
import { numberOrNull, type Row, statusOf, textOrNull } from "./rows.js";

export type AlertDelivery = {
  readonly destination: string;
  readonly event: AlertEvent;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** Of the last try. */
  readonly at: number;
  readonly error: string | null;
};

export type AlertRecord = OpenAlert & {
  readonly severity: Severity;
  readonly firstAt: number;
  readonly resolvedAt: number | null;
  /** Who, where somebody did. */
  readonly resolvedBy: string | null;
  readonly mutedUntil: number | null;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly deliveries: readonly AlertDelivery[];
};

export type NewAlert = Finding & { readonly id: string };

export type AlertWrites = {
  readonly opens: readonly NewAlert[];
  readonly holds: readonly { readonly id: string; readonly finding: Finding }[];
  readonly resolves: readonly { readonly id: string; readonly message: string }[];
};

export type AlertFilter = {
  readonly state?: "open" | "resolved";
  readonly kind?: AlertKind;
  readonly subject?: Pick<AlertSubject, "name">;
  readonly id?: string;
  /** Newest first; continues after this id. */
  readonly before?: string;
  readonly limit: number;
};

/** A delivery that this caller is to send now, under the number of its try. */
export type ClaimedDelivery = {
  readonly alert: AlertRecord;
  readonly event: AlertEvent;
  readonly destination: string;
  readonly attempt: number;
};

export type DeliveryEnd = {
  readonly alert: string;
  readonly event: AlertEvent;
  readonly destination: string;
  /** Counts only for the try that it is the end of. */
  readonly attempt: number;
  readonly state: DeliveryState;
  /** Of one that is to be tried again: how long from now. */
  readonly delayMs: number;
  readonly error: string | null;
};

export type AlertMark =
  | { readonly mark: "mute"; readonly forMs: number }
  | { readonly mark: "acknowledge"; readonly by: string | null }
  | { readonly mark: "resolve"; readonly by: string | null };

/** What a look finds: schedules first, since their own rules say what else to read. */
export type ObservedSchedules = Pick<
  AlertObservation,
  "now" | "schedulerPolledAt" | "recordedUntil" | "ticks"
> & {
  readonly schedules: readonly ObservedSchedule[];
};

export type ObservedRest = Omit<AlertObservation, "jobRates" | keyof ObservedSchedules> & {
  /** The newest tick at which each schedule was paused by its rule, as its newest alert says. */
  readonly pausedTicks: Readonly<Record<string, number>>;
};

export interface AlertStore {
  /**
   * Takes the turn if the last one was taken so long ago: of many callers one gets it. Also keeps how
   * far the caller's clock is off, as it found when it last asked.
   */
  takeAlertTurn(params: {
    readonly holder: number;
    readonly skewMs: number | null;
    readonly everyMs: number;
  }): Promise<{ readonly now: number; readonly isMine: boolean }>;

  sightOfSchedules(): Promise<ObservedSchedules>;
  sightOfRest(params: ObservationParams): Promise<ObservedRest>;
  /** How the newest scheduled runs of each of these ended, up to `limit` of each, with a day more than asked for. */
  sightOfApart(params: {
    readonly schedules: readonly string[];
    readonly overMs: number;
    readonly limit: number;
  }): Promise<readonly ObservedApart[]>;

  openAlerts(): Promise<readonly OpenAlert[]>;
  /**
   * Opens, keeps and resolves. Answers those that are to be told of: opened by this call, or open when
   * their mute was over; and those that this call resolved. What another wrote before is in neither.
   */
  writeAlerts(writes: AlertWrites): Promise<{
    readonly told: readonly AlertRecord[];
    readonly resolved: readonly AlertRecord[];
  }>;

  /**
   * Due deliveries to these destinations; nobody else gets them before `leaseMs` is over. Of an open alert
   * that is not muted the first claim for a destination makes its delivery; its end is told to those that
   * had its beginning.
   */
  claimDeliveries(params: {
    readonly destinations: readonly string[];
    readonly leaseMs: number;
    readonly limit: number;
  }): Promise<readonly ClaimedDelivery[]>;
  endDelivery(end: DeliveryEnd): Promise<void>;

  alerts(filter: AlertFilter): Promise<readonly AlertRecord[]>;
  /** Muting also holds for the next one of its kind and subject; the other marks need one that is open. */
  markAlert(params: { readonly id: string } & AlertMark & Audited): Promise<boolean>;
}

// Row mappers, the same for both databases.

type DeliveryRow = readonly [string, AlertEvent, DeliveryState, number, number, string | null];

export function toOpenAlert(row: Row): OpenAlert {
  return {
    id: String(row.id),
    kind: row.kind as AlertKind,
    subject: { type: row.subject_type as AlertSubject["type"], name: String(row.subject) },
    message: String(row.message),
    evidence: JSON.parse(String(row.evidence)) as AlertEvidence,
    lastAt: Number(row.last_at),
  };
}

export function toAlertRecord(row: Row): AlertRecord {
  const deliveries = JSON.parse(String(row.deliveries ?? "[]")) as readonly DeliveryRow[];
  return {
    ...toOpenAlert(row),
    severity: row.severity as Severity,
    firstAt: Number(row.first_at),
    resolvedAt: numberOrNull(row.resolved_at),
    resolvedBy: textOrNull(row.resolved_by),
    mutedUntil: numberOrNull(row.muted_until),
    acknowledgedAt: numberOrNull(row.acknowledged_at),
    acknowledgedBy: textOrNull(row.acknowledged_by),
    deliveries: deliveries.map(([destination, event, state, attempts, at, error]) => ({
      ...{ destination, event, state, attempts, at, error },
    })),
  };
}

export function newAlertRow({ id, kind, subject, message, evidence }: NewAlert) {
  return {
    id,
    kind,
    severity: SEVERITY_OF[kind],
    subject: subject.name,
    message,
    evidence: JSON.stringify(evidence),
    subjectType: subject.type,
  };
}

export function heldRow({ id, finding }: { readonly id: string; readonly finding: Finding }) {
  return { id, message: finding.message, evidence: JSON.stringify(finding.evidence) };
}

export function toObservedSchedule(row: Row): ObservedSchedule {
  return {
    name: String(row.name),
    job: String(row.job),
    nextAt: numberOrNull(row.next_at),
    isEnded: Boolean(row.is_ended),
    isPaused: row.paused_at !== null,
    brokenAt: numberOrNull(row.broken_at),
    brokenError: textOrNull(row.broken_error),
    rules: rulesOf(row.definition),
  };
}

/** What a newer version of the library has written there, or nobody, counts as nothing. */
function rulesOf(definition: unknown): Partial<ScheduleAlertRules> | null {
  if (typeof definition !== "string") return null;
  try {
    const { alerts } = JSON.parse(definition) as { alerts?: Partial<ScheduleAlertRules> };
    return alerts ?? null;
  } catch {
    return null;
  }
}

export function toObservedTick(row: Row): ObservedTick {
  return {
    schedule: String(row.name),
    reason: REASONS[Number(row.reason)] as ObservedTick["reason"],
    firstAt: Number(row.at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    recordedAt: Number(row.recorded_at),
  };
}

export function toObservedRun(row: Row): ObservedRun {
  return {
    id: String(row.id),
    job: String(row.job),
    schedule: textOrNull(row.schedule),
    holder: String(row.holder),
    silentMs: Number(row.silent_ms),
    ranMs: Number(row.ran_ms),
    items: Number(row.items),
  };
}

/** The row without a schedule is of all. */
export function toRunning(rows: readonly Row[]) {
  const total = rows.find(({ schedule }) => schedule === null);
  const others = rows.filter(({ schedule }) => schedule !== null);
  return {
    total: Number(total?.runs ?? 0),
    bySchedule: Object.fromEntries(others.map((row) => [String(row.schedule), Number(row.runs)])),
  };
}

export function toSightJob(row: Row): SightJob {
  return {
    job: String(row.job),
    queue: String(row.queue),
    oldestDueAt: Number(row.due_at),
    runs: Number(row.runs),
  };
}

export function toSightRate(row: Row): ObservedRate {
  return {
    name: String(row.name),
    completed: Number(row.completed),
    failed: Number(row.failed),
  };
}

export function toSightApart(row: Row): ObservedApart {
  return {
    schedule: String(row.name),
    job: String(row.job),
    hourAt: numberOrNull(row.hour_at),
    ticks: Number(row.ticks),
    oldestAt: Number(row.oldest_at),
    completed: Number(row.completed),
    failed: Number(row.failed),
  };
}

export function toSightEnd(row: Row): ObservedEnd {
  return {
    schedule: String(row.name),
    at: Number(row.at),
    run: String(row.run),
    status: row.status === null ? null : (statusOf(Number(row.status)) as ObservedEnd["status"]),
    error: textOrNull(row.error),
  };
}

export function toObservedSkip(row: Row): ObservedSkip {
  return {
    schedule: String(row.name),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    isSkip: Boolean(row.is_skip),
    isWaiting: Boolean(row.is_waiting),
  };
}

export function toSkew(row: Row): { readonly instance: string; readonly skewMs: number } {
  return { instance: String(row.id), skewMs: Number(row.skew_ms) };
}

/** At which tick a schedule was paused, as the evidence of an alert says. */
export function pausedTickOf(row: Row): readonly (readonly [string, number])[] {
  const { pausedTickAt } = JSON.parse(String(row.evidence)) as { pausedTickAt?: unknown };
  return typeof pausedTickAt === "number" ? [[String(row.subject), pausedTickAt]] : [];
}

export function toCulprit(row: Row): Culprit {
  const [name, ageMs] = [String(row.name), Number(row.age_ms)];
  switch (row.what) {
    case "transaction": {
      const [pid, user, state] = [Number(row.pid), String(row.by), String(row.state)];
      return { what: "transaction", pid, application: name, user, state, ageMs };
    }
    case "prepared":
      return { what: "prepared", name, ageMs };
    case "replication":
      return { what: "replication", name };
    default:
      return {
        what: "bloat",
        table: name,
        deadRows: Number(row.dead),
        liveRows: Number(row.live),
      };
  }
}
