// What somebody asks of an instance in the course of a simulation, as the plan has it.

import type { CalendarPlan } from "./calendar-plan.js";
import type { Behaviour } from "./jobs.js";
import type { SchedulePlan } from "./schedule-plan.js";

export type OperationKind =
  | "enqueue"
  | "enqueueMany"
  | "trigger"
  | "cancel"
  | "retry"
  | "retryChildren"
  | "remove"
  | "upsert"
  | "pause"
  | "resume"
  | "delete"
  | "backfill"
  | "cancelBackfill"
  | "putCalendar"
  | "pauseQueue"
  | "resumeQueue"
  | "putMonitor"
  | "ping"
  | "pauseAll"
  | "resumeAll"
  | "garble"
  | "look"
  | "lock"
  | "remote"
  | "pass"
  | "stop"
  | "crash";

export type Operation = {
  readonly id: number;
  readonly afterMs: number;
  readonly kind: OperationKind;
  readonly place: number;
  /** Chooses among what is there when it happens. */
  readonly luck: number;
  readonly job: Behaviour;
  readonly schedule: string;
  readonly options: SchedulePlan;
  readonly calendar: CalendarPlan;
};
