// What the engine asks of a database about alerts: whose turn it is to look, what there is to see, and
// the alerts themselves. At most one alert of a kind and subject is open, whoever writes; deliveries
// are rows that are claimed, so that each is sent by one instance, and again if that one dies.

import type {
  AlertEvent,
  AlertKind,
  AlertSubject,
  DeliveryState,
  Finding,
  OpenAlert,
  Severity,
} from "../alerts/rules/alert.js";
import type {
  AlertObservation,
  ObservationParams,
  ObservedApart,
  ObservedSchedule,
} from "../alerts/rules/observation.js";
import type { Audited } from "./audit-store.js";

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
