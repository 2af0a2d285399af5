// Defines the exceptions about schedules, their triggers, backfills, monitors and calendars.

import { listShort, quoteShort, suggest } from "../suggest.js";
import { HoldfastError, nameErrors } from "./base.js";

/** There is no schedule of that name: it never existed, or it was deleted. */
export class ScheduleNotFoundError extends HoldfastError {
  readonly code = "SCHEDULE_NOT_FOUND";
  constructor(
    readonly schedule: string,
    known: readonly string[] = [],
  ) {
    const meant = suggest(schedule, known);
    const hint = meant === undefined ? "" : ` Did you mean ${quoteShort(meant)}?`;
    super(`There is no schedule ${quoteShort(schedule)}.${hint}`);
  }
}

/** A schedule of that name is already declared in this instance. */
export class DuplicateScheduleError extends HoldfastError {
  readonly code = "SCHEDULE_DUPLICATE";
  constructor(readonly schedule: string) {
    super(
      `A schedule named ${quoteShort(schedule)} is already declared; give this one another name.`,
    );
  }
}

/** Other callers changed the schedule at each try of this call. */
export class ScheduleBusyError extends HoldfastError {
  readonly code = "SCHEDULE_BUSY";
  constructor(readonly schedule: string) {
    super(
      `Schedule ${quoteShort(schedule)} is being changed by others all the time. Nothing was done; ` +
        "try again.",
    );
  }
}

/** The schedule is no longer at the version that the caller read. */
export class ScheduleChangedError extends HoldfastError {
  readonly code = "SCHEDULE_CHANGED";
  readonly schedule: string;
  /** The version that the caller expected; 0 if it expected no schedule. */
  readonly ifVersion: number;
  /** The version of the schedule; null if there is none. */
  readonly version: number | null;
  constructor(params: { schedule: string; ifVersion: number; version: number | null }) {
    const { schedule, ifVersion, version } = params;
    const shown = quoteShort(schedule);
    super(
      version === null
        ? `There is no schedule ${shown} any more. Nothing was done.`
        : ifVersion === 0
          ? `There is a schedule ${shown} already, at version ${version}. Nothing was changed; give this one another name.`
          : `Schedule ${shown} was changed meanwhile: it is at version ${version}, not ${ifVersion}. Nothing was done; ` +
            "look at it again, and repeat what is still wanted.",
    );
    this.schedule = schedule;
    this.ifVersion = ifVersion;
    this.version = version;
  }
}

/** The delivery already made a run with another input. */
export class DeliveryConflictError extends HoldfastError {
  readonly code = "DELIVERY_CONFLICT";
  constructor(
    readonly deliveryId: string,
    readonly runId: string,
  ) {
    super(
      `Delivery ${quoteShort(deliveryId)} already made run ${runId} with another input. ` +
        "Nothing was stored. Use another deliveryId for other work.",
    );
  }
}

/** A schedule has one backfill at a time. */
export class BackfillRunningError extends HoldfastError {
  readonly code = "BACKFILL_RUNNING";
  constructor(
    readonly schedule: string,
    readonly backfillId: string,
  ) {
    super(
      `Schedule ${quoteShort(schedule)} is being backfilled (${backfillId}). Wait for it, or end it ` +
        "with schedules.cancelBackfill().",
    );
  }
}

/** A caller requested a run of a monitor, which makes no runs. */
export class RunsElsewhereError extends HoldfastError {
  readonly code = "RUNS_ELSEWHERE";
  constructor(readonly schedule: string) {
    super(
      `Schedule ${quoteShort(schedule)} is a monitor: its job runs remotely, and checks in with ` +
        "schedules.ping() or POST /api/ping/:monitor. Nothing was done.",
    );
  }
}

/** A check-in arrived for a schedule that is not a monitor. */
export class NotAMonitorError extends HoldfastError {
  readonly code = "NOT_A_MONITOR";
  constructor(readonly schedule: string) {
    super(
      `Schedule ${quoteShort(schedule)} runs a job here; only one with \`monitor: true\` is checked in for. ` +
        "Nothing was stored.",
    );
  }
}

/** Schedules still use this calendar, so it cannot be removed. */
export class CalendarInUseError extends HoldfastError {
  readonly code = "CALENDAR_IN_USE";
  constructor(
    readonly calendar: string,
    readonly schedules: readonly string[],
  ) {
    super(
      `Calendar ${quoteShort(calendar)} is used by ${listShort(schedules)}. Nothing was removed. ` +
        "Take it out of these schedules first.",
    );
  }
}

nameErrors({
  ScheduleNotFoundError,
  DuplicateScheduleError,
  ScheduleBusyError,
  ScheduleChangedError,
  DeliveryConflictError,
  BackfillRunningError,
  RunsElsewhereError,
  NotAMonitorError,
  CalendarInUseError,
});
