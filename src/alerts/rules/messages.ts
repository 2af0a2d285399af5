// Writes the messages of alerts: one or two sentences with the evidence. Pure.

import { formatDuration } from "../../shared/duration.js";
import { storableText } from "../../shared/json.js";
import type { AlertKind } from "./alert.js";
import type {
  Culprit,
  ObservedEnd,
  ObservedReclaim,
  ObservedRun,
  ObservedTick,
  ObservedWait,
} from "./observation.js";

/** How many are named. */
export const SHOWN_MAX = 5;
const ERROR_LENGTH_MAX = 300;

export function stale(runs: readonly ObservedRun[]): string {
  const longest = Math.max(...runs.map(({ silentMs }) => silentMs));
  const shown = runs.map(({ id, holder, silentMs }) => {
    return `${id} held by ${holder}, silent for ${formatDuration(silentMs)}`;
  });
  return `${many(runs.length, "run")} had no heartbeat for up to ${formatDuration(longest)} and ${runs.length === 1 ? "was" : "were"} not reclaimed: ${list(shown)}.`;
}

export function reclaimed(runs: readonly ObservedReclaim[]): string {
  const shown = runs.map(
    ({ id, holder, agoMs }) => `${id} from ${holder}, ${formatDuration(agoMs)} ago`,
  );
  return `${many(runs.length, "time")} a run was taken from its silent holder and given another attempt: ${list(shown)}.`;
}

export function slow(runs: readonly ObservedRun[]): string {
  const shown = runs.map(({ id, ranMs, items }) => {
    return `${id} for ${formatDuration(ranMs)}, ${many(items, "item")} done`;
  });
  return `${many(runs.length, "run")} ${runs.length === 1 ? "takes" : "take"} longer than expected: ${list(shown)}.`;
}

export function waitingTooLong(runs: readonly ObservedWait[]): string {
  const shown = runs.map(({ id, kind, name, waitedMs }) => {
    const what = kind === "signal" ? "the signal" : "a run of";
    return `${id} for ${formatDuration(waitedMs)}, for ${what} ${JSON.stringify(name)}`;
  });
  return `${many(runs.length, "run")} ${runs.length === 1 ? "waits" : "wait"} for longer than expected: ${list(shown)}.`;
}

export function running(count: number, above: number): string {
  return `${many(count, "run")} at the same time; the limit is ${above}.`;
}

export function failureRate(params: {
  readonly failed: number;
  readonly ended: number;
  readonly above: number;
  readonly overMs: number;
}): string {
  const { failed, ended, above, overMs } = params;
  return `${failed} of ${many(ended, "run")} failed within ${formatDuration(overMs)}: ${percent(failed / ended)}, above ${percent(above)}.`;
}

export function broken(brokenAt: number, error: string | null): string {
  return `Has been broken since ${iso(brokenAt)} and does not fire: ${cut(error ?? "unknown")}.`;
}

export function stuck(nextAt: number | null, now: number): string {
  return nextAt === null
    ? "Has ticks left but no next tick is set, although instances poll."
    : `The tick of ${iso(nextAt)} was not recorded for ${formatDuration(now - nextAt)}, although instances poll.`;
}

export function silent(params: {
  readonly nextAt: number;
  readonly now: number;
  readonly schedulerPolledAt: number | null;
}): string {
  const { nextAt, now, schedulerPolledAt } = params;
  const who =
    schedulerPolledAt === null
      ? "no instance with the scheduler on has ever polled"
      : `an instance with the scheduler on last polled ${formatDuration(now - schedulerPolledAt)} ago`;
  return `The tick of ${iso(nextAt)} is not recorded ${formatDuration(now - nextAt)} after its time; ${who}.`;
}

export function tick({ reason, firstAt, lastAt, count, recordedAt }: ObservedTick): string {
  if (reason === "stuck_reset")
    return `Was stuck at the tick of ${iso(firstAt)} and was reset at ${iso(recordedAt)}; a tick that fires in time resolves this.`;
  return count === 1
    ? `No check-in arrived for the tick of ${iso(firstAt)}.`
    : `No check-in arrived for ${count} ticks from ${iso(firstAt)} to ${iso(lastAt)}.`;
}

export function streak(
  { count, isAtLeast }: { readonly count: number; readonly isAtLeast: boolean },
  { run, at, error }: ObservedEnd,
): string {
  return `${isAtLeast ? "At least " : ""}${many(count, "run")} failed in a row, the last one for the tick of ${iso(at)} (run ${run}): ${cut(errorOf(error) ?? "no error was kept")}.`;
}

export function skipped(params: {
  readonly ticks: number;
  readonly isAtLeast: boolean;
  readonly lastAt: number;
  readonly isWaiting: boolean;
}): string {
  const { ticks, isAtLeast, lastAt, isWaiting } = params;
  const why = isWaiting
    ? "the run of an earlier tick still waits for a worker"
    : "the run of an earlier tick is still live";
  return `${isAtLeast ? "At least " : ""}${many(ticks, "tick")} in a row ${ticks === 1 ? "was" : "were"} skipped, the last one that of ${iso(lastAt)}: ${why}.`;
}

export function paused(message: string): string {
  return `${message} The schedule was paused.`;
}

export function pauseNote(failures: number, error: unknown): string {
  const why = typeof error === "string" ? `: ${cut(error)}` : "";
  return `paused by its alert rule after ${many(failures, "failed run")} in a row${why}`;
}

export function noWorker(params: {
  readonly runs: number;
  readonly queues: readonly string[];
  readonly waitedMs: number;
}): string {
  const { runs, queues, waitedMs } = params;
  const count = runs >= 1_000 ? "1,000 or more runs" : many(runs, "run");
  const where = `${queues.length === 1 ? "queue" : "queues"} ${queues.map((each) => JSON.stringify(each)).join(", ")}`;
  return `${count} in ${where} wait for a worker, the oldest for ${formatDuration(waitedMs)}; no live instance executes this job.`;
}

export function clockSkew(skewMs: number, boundMs: number): string {
  const direction = skewMs > 0 ? "ahead of" : "behind";
  return `Its clock is ${formatDuration(Math.abs(skewMs))} ${direction} the database's; the limit is ${formatDuration(boundMs)}.`;
}

export function steppedBack(steppedMs: number, recordedUntil: number): string {
  return `The database's clock went back by ${formatDuration(steppedMs)} or more: ticks up to ${iso(recordedUntil)} are already recorded, so no schedule fires before then.`;
}

export function slowClaims(culprits: readonly Culprit[]): string {
  return `Claims become slow, as dead rows cannot be removed: ${list(culprits.map(culprit))}.`;
}

function culprit(each: Culprit): string {
  switch (each.what) {
    case "transaction": {
      const name = each.application === "" ? "without application_name" : each.application;
      return `a transaction of pid ${each.pid} (${name}, user ${each.user}, ${each.state}) is open for ${formatDuration(each.ageMs)}`;
    }
    case "prepared":
      return `the prepared transaction ${JSON.stringify(each.name)} is open for ${formatDuration(each.ageMs)}`;
    case "replication":
      return `the replication slot ${JSON.stringify(each.name)} keeps old rows`;
    case "bloat":
      return `the table ${each.table} has ${each.deadRows} dead rows beside ${each.liveRows} live ones`;
    case "reader":
      return `a reader keeps an old snapshot, and ${each.pages} pages of the write-ahead log wait for it (SQLite does not say which process)`;
  }
}

/** The message of one alert for many subjects. */
export function grouped(kind: AlertKind, names: readonly string[], first: string): string {
  return `${names.length} subjects at once (${kind}): ${list(names)}. The first: ${first}`;
}

export function unwatched(): string {
  return "No instance has a rule for this any more.";
}

/** The message of a stored error, without its stack. */
export function errorOf(error: string | null): string | null {
  if (error === null) return null;
  try {
    const { message, code } = JSON.parse(error) as { message?: unknown; code?: unknown };
    return cut(typeof message === "string" && message !== "" ? message : String(code ?? error));
  } catch {
    return cut(error);
  }
}

function cut(text: string): string {
  const line = storableText(text.replace(/\s+/g, " "), ERROR_LENGTH_MAX).trim();
  return line.replace(/[.:]$/, "");
}

function list(shown: readonly string[]): string {
  const rest = shown.length - SHOWN_MAX;
  return `${shown.slice(0, SHOWN_MAX).join("; ")}${rest > 0 ? `; and ${rest} more` : ""}`;
}

function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function percent(part: number): string {
  return `${Math.round(part * 1_000) / 10} %`;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
