// Explains why a pending run has not begun: as values for programs, and in words for people.

import { formatDuration } from "../shared/duration.js";
import type { PendingReason } from "../store/runs/pending-reason.js";
import { shownLimitKey } from "../worker/rules/limits.js";
import type { RunId } from "./rules/run.js";

/** The reason why a run is pending. A `key` of null is the whole job. */
export type WaitingFor =
  /** It sleeps: the wait that ends first. `until` is null where no time ends it. */
  | {
      readonly reason: "sleep" | "signal" | "run";
      readonly since: Date;
      readonly until: Date | null;
      readonly signal: string | null;
      readonly key: string | null;
      /** The run that it has called. */
      readonly run: RunId | null;
    }
  | { readonly reason: "time"; readonly until: Date }
  | { readonly reason: "schedule" }
  /** Everything is paused. */
  | { readonly reason: "paused"; readonly since: Date; readonly note: string | null }
  | {
      readonly reason: "paused_queue";
      readonly queue: string;
      readonly since: Date;
      readonly note: string | null;
    }
  | {
      readonly reason: "concurrency";
      readonly key: unknown;
      readonly limit: number;
      /** Runs that are held under the limit now. */
      readonly held: number;
      /** Runs of the same key that go first; counted up to 1,001. */
      readonly ahead: number;
    }
  | {
      readonly reason: "rate";
      readonly key: unknown;
      readonly limit: number;
      readonly perMs: number;
      /** When the next run of the key may begin. */
      readonly until: Date;
      readonly ahead: number;
    }
  /**
   * Not blocked; runs when a worker for this job has a free slot. `instances`: how many live instances execute the job.
   */
  | { readonly reason: "worker"; readonly instances: number };

export function toWaitingFor(waiting: PendingReason | null): WaitingFor | null {
  switch (waiting?.reason) {
    case undefined:
      return null;
    case "sleep":
    case "signal":
    case "run": {
      const until = waiting.until === null ? null : new Date(waiting.until);
      return { ...waiting, since: new Date(waiting.since), until };
    }
    case "time":
      return { ...waiting, until: new Date(waiting.until) };
    case "paused":
    case "paused_queue":
      return { ...waiting, since: new Date(waiting.since) };
    case "concurrency":
      return { ...waiting, key: shownLimitKey(waiting.key) };
    case "rate":
      return { ...waiting, key: shownLimitKey(waiting.key), until: new Date(waiting.until) };
    default:
      return waiting;
  }
}

/** One line, to follow "waits". */
export function waitingText(waiting: WaitingFor): string {
  switch (waiting.reason) {
    case "time":
      return `for its due time, ${waiting.until.toISOString()}`;
    case "sleep":
      return `in a sleep${untilText(waiting)}`;
    case "signal":
      return `for the signal ${waiting.signal} with the key ${waiting.key}${untilText(waiting)}`;
    case "run":
      return `for the run ${waiting.run} that it called${untilText(waiting)}`;
    case "schedule":
      return "for an earlier run of its schedule to end";
    case "paused": {
      const note = waiting.note === null ? "" : ` (${waiting.note})`;
      return `for everything to be resumed, paused since ${waiting.since.toISOString()}${note}`;
    }
    case "paused_queue": {
      const note = waiting.note === null ? "" : ` (${waiting.note})`;
      return `for the queue ${waiting.queue}, paused since ${waiting.since.toISOString()}${note}`;
    }
    case "concurrency":
      return `for the limit of ${waiting.limit} at once ${keyText(waiting.key)}: ${waiting.held} held${aheadText(waiting.ahead)}`;
    case "rate":
      return `for the limit of ${waiting.limit} in ${formatDuration(waiting.perMs)} ${keyText(waiting.key)}, the next at ${waiting.until.toISOString()}${aheadText(waiting.ahead)}`;
    case "worker":
      return waiting.instances === 0
        ? "for a worker: no live instance executes this job"
        : `for a free slot in one of ${waiting.instances} instances that execute this job`;
  }
}

function untilText({
  since,
  until,
}: {
  readonly since: Date;
  readonly until: Date | null;
}): string {
  const end = until === null ? "" : `, until ${until.toISOString()}`;
  return `, since ${since.toISOString()}${end}`;
}

function keyText(key: unknown): string {
  return key === null ? "of the job" : `of key ${JSON.stringify(key)}`;
}

function aheadText(ahead: number): string {
  if (ahead === 0) return ", it is next";
  return ahead > 1_000 ? ", more than 1,000 before it" : `, ${ahead} before it`;
}
