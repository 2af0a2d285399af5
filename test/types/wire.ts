// Compares the wire schemas with the library's own types, by the compiler alone. The handler sends what the library returns, so a
// field that is added to one and not to the other must not compile. Each constant below fails with the names of such fields.

import type { z } from "zod";
import type { Alert } from "../../src/alerts/alert-view.js";
import type { AlertTested } from "../../src/alerts/alerts.js";
import type { ROUTES } from "../../src/http/wire/contract.js";
import type { Ticked } from "../../src/instance/tick-once.js";
import type { Lock, LockGrantView } from "../../src/locks/locks.js";
import type { LockStats } from "../../src/locks/rules/lock.js";
import type { AuditRecord } from "../../src/operations/audit.js";
import type { CheckReport, CheckResult } from "../../src/operations/check.js";
import type { CleanedUp } from "../../src/operations/cleanup.js";
import type { Instance } from "../../src/operations/instances.js";
import type { AccessKey, CreatedKey } from "../../src/operations/keys.js";
import type { Pause } from "../../src/operations/pause.js";
import type { Queue } from "../../src/operations/queues.js";
import type { ErrorGroup, Stats } from "../../src/operations/statistics.js";
import type { RemoteRun } from "../../src/remote/claims.js";
import type { RunExchange } from "../../src/runs/dispatch-log.js";
import type { AnnouncedJob } from "../../src/runs/job.js";
import type { Batch } from "../../src/runs/runs.js";
import type { RunStep } from "../../src/runs/step-view.js";
import type { RunAttempt, RunDetails, RunItem, RunLogEntry } from "../../src/runs/view.js";
import type { Pinged } from "../../src/schedules/check-in.js";
import type { Explanation } from "../../src/schedules/explainer.js";
import type { Preview } from "../../src/schedules/preview.js";
import type { Timeline, TimelineRow, TimelineTicks } from "../../src/schedules/timeline.js";
import type { Backfill, Schedule, ScheduleVersion, Tick } from "../../src/schedules/view.js";

type Routes = typeof ROUTES;
/** The body of a response with the status 200, or 201 where that is the only one. */
type Sent<K extends keyof Routes> = Routes[K]["responses"] extends { readonly 200: infer Body }
  ? z.output<Body>
  : Routes[K]["responses"] extends { readonly 201: infer Body }
    ? z.output<Body>
    : never;

/** A value after JSON: dates are texts. */
type Serialized<T> = unknown extends T
  ? unknown
  : T extends Date
    ? string
    : T extends readonly (infer Element)[]
      ? Serialized<Element>[]
      : T extends object
        ? { [Key in keyof T]: Serialized<T[Key]> }
        : T;

/** The declared members, without the index signature of a loose object. */
type Declared<T> = { [Key in keyof T as string extends Key ? never : Key]: T[Key] };

/** Members whose values do not fit what the schema says. */
type Misfit<Wire, View> = {
  [Key in keyof Wire & keyof View]: View[Key] extends Wire[Key] ? never : Key;
}[keyof Wire & keyof View];

type Compared<Wire, View> = [
  Exclude<keyof Wire, keyof View>,
  Exclude<keyof View, keyof Wire>,
  Misfit<Wire, View>,
] extends [never, never, never]
  ? true
  : {
      onlyOnTheWire: Exclude<keyof Wire, keyof View>;
      onlyInTheLibrary: Exclude<keyof View, keyof Wire>;
      differs: Misfit<Wire, View>;
    };

type Agrees<Wire, View> = Compared<Declared<Wire>, Serialized<View>>;

export const run: Agrees<Sent<"getRun">, RunDetails> = true;
export const attempt: Agrees<Sent<"listAttempts">["attempts"][number], RunAttempt> = true;
export const exchange: Agrees<Sent<"listExchanges">["exchanges"][number], RunExchange> = true;
export const item: Agrees<Sent<"listItems">["items"][number], RunItem> = true;
export const step: Agrees<Sent<"listSteps">["steps"][number], RunStep> = true;
export const line: Agrees<Sent<"listLogs">["lines"][number], RunLogEntry> = true;
export const batch: Agrees<Sent<"listBatches">["batches"][number], Batch> = true;
export const claimed: Agrees<Sent<"claimRuns">["runs"][number], RemoteRun> = true;

export const schedule: Agrees<Sent<"getSchedule">, Schedule> = true;
export const tick: Agrees<Sent<"listTicks">["ticks"][number], Tick> = true;
export const version: Agrees<Sent<"versions">["versions"][number], ScheduleVersion> = true;
export const backfill: Agrees<Sent<"backfill">, Backfill> = true;
export const explanation: Agrees<Sent<"explain">, Explanation> = true;
export const preview: Agrees<Sent<"preview">, Preview> = true;
export const timeline: Agrees<Sent<"timeline">, Timeline> = true;
export const timelineRow: Agrees<Sent<"timeline">["schedules"][number], TimelineRow> = true;
export const timelineTicks: Agrees<
  Sent<"timeline">["schedules"][number]["ticks"][number],
  TimelineTicks
> = true;
export const pinged: Agrees<Omit<Sent<"ping">, "ok">, Pinged> = true;
export const ticked: Agrees<Sent<"tick">, Ticked> = true;

export const lock: Agrees<Sent<"listLocks">["locks"][number], Lock> = true;
export const grant: Agrees<Sent<"lockHistory">["grants"][number], LockGrantView> = true;
export const lockStats: Agrees<Sent<"lockStats">, LockStats> = true;
export const queue: Agrees<Sent<"listQueues">["queues"][number], Queue> = true;
export const instance: Agrees<Sent<"listInstances">["instances"][number], Instance> = true;
export const key: Agrees<Sent<"listKeys">["keys"][number], AccessKey> = true;
export const createdKey: Agrees<Sent<"createKey">, CreatedKey> = true;
export const alert: Agrees<Sent<"getAlert">, Alert> = true;
export const alertTest: Agrees<Sent<"testAlerts">, AlertTested> = true;
export const audit: Agrees<Sent<"listAudit">["entries"][number], AuditRecord> = true;
export const check: Agrees<Sent<"check">, CheckReport> = true;
export const checkResult: Agrees<Sent<"check">["checks"][number], CheckResult> = true;
export const cleanup: Agrees<Omit<Sent<"cleanup">, "ok">, CleanedUp> = true;
export const job: Agrees<Sent<"listJobs">["jobs"][number], AnnouncedJob> = true;
export const stats: Agrees<Sent<"stats">, Stats> = true;
export const error: Agrees<Sent<"listErrors">["errors"][number], ErrorGroup> = true;
export const pause: Agrees<NonNullable<Sent<"getPause">["paused"]>, Pause> = true;
