// Keeps alerts and their deliveries, and lets one instance at a time observe. At most one alert of a kind and subject is
// open, on any number of instances. Deliveries are rows that an instance claims, so that one instance sends each, and
// another sends it again if that instance dies.

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
} from "../../alerts/rules/alert.js";
import type { Culprit, ObservationParams, ObservedApart } from "../../alerts/rules/observation.js";
import { idsFrom } from "../../shared/id.js";
import { type Audited, addAudit } from "../audit.js";
import { flag, numberOrNull, type Row, textOrNull } from "../rows.js";
import { row, rows, run, type Statements, type StoreSession } from "../session.js";
import { idsWithDigits } from "../sql/list-page.js";
import {
  type ApartParams,
  type ObservedRest,
  type ObservedSchedules,
  observeApart,
  observeRest,
  observeSchedules,
} from "./observations.js";

const OPEN = /* sql */ `
select a.id, a.kind, a.subject_type, a.subject, a.message, a.evidence, a.last_at from {alert} a
where a.resolved_at is null order by a.id`;

/**
 * Locks alerts on PostgreSQL in the order of their ids, so that instances that write the same alerts cannot deadlock.
 */
const LOCK = "select a.id from {alert} a where a.id {any :ids::uuid[]} order by a.id {for update}";

/** A mute also holds for the next alert of the same kind and subject. */
const OPEN_NEW = /* sql */ `
with now as materialized (select {now} as at)
insert into {alert} (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at, told_at, muted_until)
select x.id, x.kind, x.subject_type, x.subject, x.severity, x.message, x.evidence, x.at, x.at,
  case when x.muted_until is null then x.at end, x.muted_until
from (
  select y.*, now.at, (select max(m.muted_until) from {alert} m
    where m.kind = y.kind and m.subject_type = y.subject_type and m.subject = y.subject and m.muted_until > now.at) as muted_until
  from now, {rows :given as y (id uuid, kind text, subject_type text, subject text, severity text, message text, evidence text)}
) x
where true
on conflict (kind, subject_type, subject) where resolved_at is null do nothing
returning id, told_at is not null as is_told`;

/** An alert that was muted is delivered by the first pass after the mute. */
const HOLD = /* sql */ `
with now as materialized (select {now} as at)
update {alert} as a set last_at = now.at, message = x.message, evidence = x.evidence,
  told_at = case when a.told_at is null and coalesce(a.muted_until, 0) <= now.at then now.at else a.told_at end
from now, {rows :given as x (alert uuid, message text, evidence text)}
where a.id = x.alert and a.resolved_at is null
returning id, told_at = last_at as is_told`;

/**
 * No "opened" delivery is made after this. TELL_RESOLVED makes the "resolved" deliveries, for destinations that had an
 * "opened" one.
 */
const RESOLVE = /* sql */ `
with now as materialized (select {now} as at)
update {alert} as a set resolved_at = now.at, message = x.message
from now, {rows :given as x (alert uuid, message text)}
where a.id = x.alert and a.resolved_at is null
returning id, told_at is not null and coalesce(muted_until, 0) <= resolved_at as is_told`;

/**
 * Makes "resolved" deliveries for destinations that had an "opened" one, also for one that was made while LOCK waited
 * for the alert.
 */
const TELL_RESOLVED = /* sql */ `
insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
select d.alert, 'resolved', d.destination, 'pending', 0, now.at, now.at
from (select {now} as at) now, {alert_delivery} d where d.alert {any :ids::uuid[]} and d.event = 'opened'
on conflict (alert, event, destination) do nothing`;

const END_DELIVERY = /* sql */ `
update {alert_delivery} set state = :state, next_at = {now} + :delayMs::bigint, tried_at = {now}, error = :error::text
where alert = :alert::uuid and event = :event and destination = :destination and attempts = :attempt::int
  and state = 'pending'`;

const LIST = /* sql */ `
select a.id, a.kind, a.subject_type, a.subject, a.severity, a.message, a.evidence, a.first_at, a.last_at, a.resolved_at,
  a.resolved_by, a.muted_until, a.acknowledged_at, a.acknowledged_by,
  (select {json_agg}({json_array}(d.destination, d.event, d.state, d.attempts, d.tried_at, d.error)
    order by d.tried_at, d.event, d.destination) from {alert_delivery} d where d.alert = a.id)::text as deliveries
from {alert} a
where (:ids::uuid[] is null or a.id {any :ids::uuid[]})
  and (:isOpen::boolean is null or (a.resolved_at is null) = :isOpen::boolean)
  and (:kind::text is null or a.kind = :kind::text)
  and (:subject::text is null or a.subject = :subject::text)
  and (:before::uuid is null or a.id < :before::uuid)
order by a.id desc limit :limit`;

const WITH_DIGITS = idsWithDigits("alert");

const MARKS = {
  mute: /* sql */ `
update {alert} set muted_until = {now} + :forMs::bigint where id = :id::uuid returning id`,
  /** A second acknowledgement changes nothing: the first one stays. */
  acknowledge: /* sql */ `
update {alert} set acknowledged_at = coalesce(acknowledged_at, {now}),
  acknowledged_by = case when acknowledged_at is null then :by::text else acknowledged_by end
where id = :id::uuid and resolved_at is null returning id`,
  resolve: /* sql */ `
update {alert} set resolved_at = {now}, resolved_by = coalesce(:by::text, 'somebody')
where id = :id::uuid and resolved_at is null returning id`,
} as const;

/** Locked on PostgreSQL: another instance may prune at the same time. */
const OLD = /* sql */ `
select a.id from {alert} a where a.resolved_at <= {now} - :keepMs::bigint order by a.id limit :limit {for update}`;
const PRUNE_DELIVERIES = "delete from {alert_delivery} where alert {any :ids::uuid[]}";
const PRUNE = "delete from {alert} where id {any :ids::uuid[]}";

type AlertDelivery = {
  readonly destination: string;
  readonly event: AlertEvent;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** The last try: its time, and its error if it failed. */
  readonly at: number;
  readonly error: string | null;
};

export type AlertRecord = OpenAlert & {
  readonly severity: Severity;
  readonly firstAt: number;
  readonly resolvedAt: number | null;
  /** Null if it ended by itself. */
  readonly resolvedBy: string | null;
  readonly mutedUntil: number | null;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly deliveries: readonly AlertDelivery[];
};

type NewAlert = Finding & { readonly id: string };

export type AlertWrites = {
  readonly opens: readonly NewAlert[];
  readonly holds: readonly { readonly id: string; readonly finding: Finding }[];
  readonly resolves: readonly { readonly id: string; readonly message: string }[];
};

type AlertFilter = {
  readonly state?: "open" | "resolved";
  readonly kind?: AlertKind;
  readonly subject?: Pick<AlertSubject, "name">;
  readonly id?: string;
  /** Newest first; continues after this id. */
  readonly before?: string;
  readonly limit: number;
};

/** A delivery that this caller has to send now, with the number of its try. */
export type ClaimedDelivery = {
  readonly alert: AlertRecord;
  readonly event: AlertEvent;
  readonly destination: string;
  readonly attempt: number;
};

type DeliveryEnd = {
  readonly alert: string;
  readonly event: AlertEvent;
  readonly destination: string;
  /** Takes effect only for the try that it reports. */
  readonly attempt: number;
  readonly state: DeliveryState;
  /** If the delivery is tried again: the delay from now. */
  readonly delayMs: number;
  readonly error: string | null;
};

export type TurnParams = {
  readonly holder: number;
  readonly skewMs: number | null;
  readonly everyMs: number;
};

export type ClaimDeliveriesParams = {
  readonly destinations: readonly string[];
  readonly leaseMs: number;
  readonly limit: number;
};

export type AlertMark =
  | { readonly mark: "mute"; readonly forMs: number }
  | { readonly mark: "acknowledge"; readonly by: string | null }
  | { readonly mark: "resolve"; readonly by: string | null };

export abstract class Alerts {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * Takes the turn if the last one is old enough: of many callers one gets it. Also stores the clock skew that the
   * caller measured at its last turn.
   */
  abstract takeTurn(
    params: TurnParams,
  ): Promise<{ readonly now: number; readonly isMine: boolean }>;

  observeSchedules(): Promise<ObservedSchedules> {
    return this.#session.reads("alerts.observeSchedules", observeSchedules);
  }

  async observeRest(params: ObservationParams): Promise<ObservedRest> {
    const { transactionMs } = params;
    const rest = await this.#session.reads("alerts.observeRest", () => observeRest(params));
    return { ...rest, culprits: transactionMs === null ? [] : await this.culprits(transactionMs) };
  }

  /** How the newest scheduled runs of each schedule ended, up to `limit` of each. Reads a day more than requested. */
  observeApart(params: ApartParams): Promise<readonly ObservedApart[]> {
    return this.#session.reads("alerts.observeApart", () => observeApart(params));
  }

  /** The causes that keep the database from removing dead rows. */
  protected abstract culprits(transactionMs: number): Promise<readonly Culprit[]>;

  async listOpen(): Promise<readonly OpenAlert[]> {
    return (await this.#session.read({ verb: "alerts.listOpen", sql: OPEN })).map(toOpenAlert);
  }

  /**
   * Opens, keeps and resolves alerts. Returns the alerts to report: those that this call opened or resolved, and open
   * ones whose mute has ended. An alert that another call wrote before is in neither list.
   */
  write({ opens, holds, resolves }: AlertWrites): Promise<{
    readonly told: readonly AlertRecord[];
    readonly resolved: readonly AlertRecord[];
  }> {
    const known = [...holds, ...resolves].map(({ id }) => id);
    return this.#session.transaction("alerts.write", { lost: "repeat" }, function* () {
      if (known.length > 0) yield* run(LOCK, { ids: known });
      const fresh = yield* changed(OPEN_NEW, opens.map(newAlertRow));
      const late = yield* changed(HOLD, holds.map(heldRow));
      const over = yield* changed(RESOLVE, resolves.map(resolvedRow));
      const ended = idsOf(over.filter((each) => flag(each.is_told)));
      if (ended.length > 0) yield* run(TELL_RESOLVED, { ids: ended });
      const told = idsOf([...fresh, ...late].filter((each) => flag(each.is_told)));
      return { told: yield* byIds(told), resolved: yield* byIds(idsOf(over)) };
    });
  }

  /**
   * Claims due deliveries to these destinations; no other caller gets them before `leaseMs` is over. For an open alert
   * that is not muted, the first claim for a destination creates its delivery. The "resolved" delivery goes to
   * destinations that had the "opened" one.
   */
  abstract claimDeliveries(params: ClaimDeliveriesParams): Promise<readonly ClaimedDelivery[]>;

  /** Repeatable: it counts for one try, and only while that try is pending. */
  async endDelivery(params: DeliveryEnd): Promise<void> {
    const verb = "alerts.endDelivery";
    await this.#session.write({ verb, sql: END_DELIVERY, params, lost: "repeat" });
  }

  /** Newest first. */
  async list({ state, kind, subject, id, before, limit }: AlertFilter) {
    return this.#list({
      ids: id === undefined ? null : [id],
      isOpen: state === undefined ? null : state === "open",
      kind: kind ?? null,
      subject: subject?.name ?? null,
      before: before ?? null,
      limit,
    });
  }

  /** Ids that begin with these digits, and ids among the newest 20,000 alerts that end with them; newest first. */
  async withDigits({
    digits,
    limit,
  }: {
    readonly digits: string;
    readonly limit: number;
  }): Promise<readonly string[]> {
    const params = { ...idsFrom(digits), digits, limit };
    return idsOf(await this.#session.read({ verb: "alerts.withDigits", sql: WITH_DIGITS, params }));
  }

  /** Muting also holds for the next alert of its kind and subject; the other marks need an open alert. */
  async mark({
    audit,
    ...params
  }: { readonly id: string } & AlertMark & Audited): Promise<boolean> {
    return this.#session.transaction("alerts.mark", { lost: "repeat" }, function* () {
      const marked = yield* row(MARKS[params.mark], params);
      if (marked) yield* addAudit(audit);
      return marked !== undefined;
    });
  }

  /** The deliveries of claimed rows, each with its alert. */
  protected async claimed(found: readonly Row[]): Promise<readonly ClaimedDelivery[]> {
    const ids = [...new Set(found.map(({ alert }) => String(alert)))];
    const records = ids.length === 0 ? [] : await this.#list(withIds(ids));
    const alerts = new Map(records.map((alert) => [alert.id, alert]));
    return found.flatMap((row): ClaimedDelivery[] => {
      const alert = alerts.get(String(row.alert));
      if (!alert) return [];
      const [destination, attempt] = [String(row.destination), Number(row.attempts)];
      return [{ alert, event: row.event as AlertEvent, destination, attempt }];
    });
  }

  async #list(params: Row): Promise<readonly AlertRecord[]> {
    const found = await this.#session.read({ verb: "alerts.list", sql: LIST, params });
    return found.map(toAlertRecord);
  }
}

/** Repeatable: a second execution opens no second alert, and writes the same text again. */
function* changed(sql: string, given: readonly Row[]): Statements<readonly Row[]> {
  return given.length === 0 ? [] : yield* rows(sql, { given: JSON.stringify(given) });
}

/** Removes alerts that were resolved before that time, with their deliveries; returns how many. */
export function* pruneAlerts(params: {
  readonly keepMs: number;
  readonly limit: number;
}): Statements<number> {
  const ids = idsOf(yield* rows(OLD, params));
  if (ids.length === 0) return 0;
  yield* run(PRUNE_DELIVERIES, { ids });
  yield* run(PRUNE, { ids });
  return ids.length;
}

type DeliveryRow = readonly [string, AlertEvent, DeliveryState, number, number, string | null];

function toOpenAlert(row: Row): OpenAlert {
  return {
    id: String(row.id),
    kind: row.kind as AlertKind,
    subject: { type: row.subject_type as AlertSubject["type"], name: String(row.subject) },
    message: String(row.message),
    evidence: JSON.parse(String(row.evidence)) as AlertEvidence,
    lastAt: Number(row.last_at),
  };
}

function toAlertRecord(row: Row): AlertRecord {
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

function newAlertRow({ id, kind, subject, message, evidence }: NewAlert): Row {
  return {
    id,
    kind,
    subject_type: subject.type,
    subject: subject.name,
    severity: SEVERITY_OF[kind],
    message,
    evidence: JSON.stringify(evidence),
  };
}

function* byIds(ids: readonly string[]): Statements<readonly AlertRecord[]> {
  return ids.length === 0 ? [] : (yield* rows(LIST, withIds(ids))).map(toAlertRecord);
}

function withIds(ids: readonly string[]): Row {
  return { ids, isOpen: null, kind: null, subject: null, before: null, limit: ids.length };
}

function heldRow({ id, finding }: AlertWrites["holds"][number]): Row {
  return { alert: id, message: finding.message, evidence: JSON.stringify(finding.evidence) };
}

function resolvedRow({ id, message }: AlertWrites["resolves"][number]): Row {
  return { alert: id, message };
}

function idsOf(found: readonly Row[]): readonly string[] {
  return found.map(({ id }) => String(id));
}
