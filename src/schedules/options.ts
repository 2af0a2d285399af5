// What callers of `holdfast.schedules` give it, and how that is checked.

import { inputHash, type Job } from "../runs/job.js";
import type { InputOption } from "../runs/job-options.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { readInstant } from "../shared/instant.js";
import { storableText } from "../shared/json.js";
import { requireKey, requireName } from "../shared/names.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import type { CalendarRules } from "./calendars/calendar.js";
import { monitorJob } from "./rules/monitor.js";
import { readSchedule, type ScheduleDefinition, type ScheduleOptions } from "./rules/schedule.js";
import type { Schedule } from "./view.js";

/** Who did it: kept with versions, pauses and backfills. */
export type By = { readonly by?: string | undefined };

export type UpsertOptions<Input = unknown> = ScheduleOptions &
  (
    | {
        /** A job, or its name; a monitor has none. */
        readonly job: string;
      }
    | ({ readonly job: Job<Input, unknown> } & InputOption<Input>)
    | { readonly monitor: true }
  );

export type UpsertAsked = By & {
  /**
   * The version that this change goes by; 0: there is none yet. If it is another by now, nothing is
   * changed, and the call is refused with SCHEDULE_CHANGED.
   * @default whatever is there
   */
  readonly ifVersion?: number | undefined;
};

export type Upserted = { readonly schedule: Schedule; readonly warnings: readonly string[] };

export type TriggerOptions = By & {
  /** Why: a test is a run like any other, but it says so. @default "manual" */
  readonly mode?: "manual" | "test" | undefined;
  /** Instead of the schedule's own. */
  readonly input?: unknown | undefined;
  /**
   * Only if a tick is due and no run is live; then the run is of mode "scheduled". It is stored only: a worker or `tick()`
   * executes it.
   */
  readonly ifDue?: boolean | undefined;
  /** The same delivery twice is the same run. */
  readonly deliveryId?: string | undefined;
};

export type BackfillOptions = By & {
  readonly from: Date | string;
  readonly to: Date | string;
  /** Also ticks that have a completed run. @default false */
  readonly all?: boolean | undefined;
};

export async function calendarsOf(
  store: Store,
  { calendars }: { readonly calendars?: unknown },
): Promise<ReadonlyMap<string, CalendarRules>> {
  if (calendars === undefined) return new Map();
  return new Map((await store.calendars()).map(({ name, rules }) => [name, rules]));
}

export function definitionOf(
  options: ScheduleOptions,
  params: { readonly calendars: ReadonlyMap<string, CalendarRules>; readonly nowMs: number | null },
): ScheduleDefinition {
  return readSchedule(options, {
    field: "schedules.upsert()",
    nowMs: params.nowMs,
    calendar: (name) => params.calendars.get(name),
    calendarNames: [...params.calendars.keys()],
  });
}

/** The job of a schedule; a monitor has a name in its place. */
export function jobOf(
  name: string,
  { job, monitor }: { readonly job?: unknown; readonly monitor?: unknown },
  field: string,
): string {
  if (monitor !== true) return jobName(job, field);
  if (job === undefined) return monitorJob(name);
  return refuse(field, "goes without `monitor: true`: a monitor runs nothing here");
}

export function jobName(job: unknown, field: string): string {
  const isJob = typeof job === "object" && job !== null && "name" in job;
  return requireName(isJob ? job.name : job, field);
}

/** Options that are none at all are the commonest mistake. */
export function requireOptions(value: unknown, field: string): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  const kind = value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
  refuse(field, `must be an object such as { cron: "0 2 * * *" }, but is ${kind}.`);
}

const NOTE_LENGTH_MAX = 2_000;

/** A sentence for people: kept with a pause. */
export function readNote(note: unknown, field: string): string | null {
  if (note === undefined || note === null) return null;
  if (typeof note !== "string")
    return refuse(field, `must be a text such as "the API is down", but is ${typeof note}.`);
  if (note.length > NOTE_LENGTH_MAX)
    return refuse(
      field,
      `must have at most ${NOTE_LENGTH_MAX} characters, but has ${note.length}.`,
    );
  return storableText(note, NOTE_LENGTH_MAX);
}

/** Who asks: a name like any other. */
export function readBy(options: unknown, field: string): string | undefined {
  if (options === undefined) return undefined;
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options as object, ["by"], field);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { by } = options as By;
  return by === undefined ? undefined : requireName(by, `${field}.by`);
}

export function readUpsertAsked(options: UpsertAsked | undefined, field: string): UpsertAsked {
  if (options === undefined) return {};
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options, ["by", "ifVersion"], field);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { ifVersion, ...rest } = options;
  const by = readBy(rest, field);
  if (ifVersion !== undefined && !(Number.isSafeInteger(ifVersion) && ifVersion >= 0))
    refuse(
      `${field}.ifVersion`,
      "must be the version of a schedule, or 0 for one that is not there yet",
    );
  return { ...(by === undefined ? {} : { by }), ...(ifVersion === undefined ? {} : { ifVersion }) };
}

export function readTrigger(options: TriggerOptions) {
  requireOptions(options, "schedules.trigger()");
  const members = ["mode", "input", "ifDue", "deliveryId", "by"];
  const problems: Problem[] = refuseUnknownMembers(options, members, "schedules.trigger()");
  const { mode = "manual", ifDue = false, deliveryId } = options;
  if (mode !== "manual" && mode !== "test")
    problems.push({ field: "mode", message: 'must be "manual" or "test"' });
  if (typeof ifDue !== "boolean")
    problems.push({ field: "ifDue", message: "must be true or false" });
  if (ifDue && (options.mode !== undefined || options.input !== undefined))
    problems.push({
      field: "ifDue",
      message: "goes without mode and input: it fires the schedule's own tick",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const delivery =
    deliveryId === undefined
      ? null
      : { id: requireKey(deliveryId, "deliveryId"), hashOf: inputHash };
  return { mode, isIfDue: ifDue, delivery };
}

export function instantMs(value: Date | string, field: string): number {
  const instant = readInstant(value);
  return typeof instant === "string" ? refuse(field, instant) : instant;
}

export function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}
