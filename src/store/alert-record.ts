// Rows of alerts as the store's records, the same for both databases.

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
  Culprit,
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
import type { AlertRecord, NewAlert } from "./alert-store.js";
import { statusOf } from "./record.js";

type Row = Record<string, unknown>;
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

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}
