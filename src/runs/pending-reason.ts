// Why a pending run does not begin, in values for programs and in words for whoever is on call.

import { formatDuration } from "../shared/duration-text.js";
import type { Waiting } from "../store/limits.js";
import { shownFlowKey } from "../worker/rules/limits.js";

/** What keeps a pending run. A `key` of null is the whole job. */
export type WaitingFor =
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
  /** Nothing but a live instance that knows the job and has room; so many instances know it. */
  | { readonly reason: "worker"; readonly instances: number };

export function toWaitingFor(waiting: Waiting | null): WaitingFor | null {
  switch (waiting?.reason) {
    case undefined:
      return null;
    case "time":
      return { ...waiting, until: new Date(waiting.until) };
    case "paused":
    case "paused_queue":
      return { ...waiting, since: new Date(waiting.since) };
    case "concurrency":
      return { ...waiting, key: shownFlowKey(waiting.key) };
    case "rate":
      return { ...waiting, key: shownFlowKey(waiting.key), until: new Date(waiting.until) };
    default:
      return waiting;
  }
}

/** One line that answers "why does it not start?". */
export function waitingText(waiting: WaitingFor): string {
  switch (waiting.reason) {
    case "time":
      return `for its time, ${waiting.until.toISOString()}`;
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
        ? "for an instance that knows its job: none is live"
        : `for a free place in one of ${waiting.instances} instances that know its job`;
  }
}

function keyText(key: unknown): string {
  return key === null ? "of the job" : `of key ${JSON.stringify(key)}`;
}

function aheadText(ahead: number): string {
  if (ahead === 0) return ", it is next";
  return ahead > 1_000 ? ", more than 1,000 before it" : `, ${ahead} before it`;
}
