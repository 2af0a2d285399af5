// Declares an operation of the plan: a call that a person or a program makes during a simulation.

import type { Behaviour } from "./jobs.js";
import type { CalendarPlan, SchedulePlan } from "./schedule-plan.js";

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
  | "order"
  | "signal"
  | "signalRun"
  | "retryFrom"
  | "pass"
  | "stop"
  | "crash";

export type Operation = {
  readonly id: number;
  readonly afterMs: number;
  readonly kind: OperationKind;
  readonly place: number;
  /** Chooses among the existing runs and schedules when it happens. */
  readonly luck: number;
  readonly job: Behaviour;
  readonly schedule: string;
  readonly options: SchedulePlan;
  readonly calendar: CalendarPlan;
};
