// Describes a run for `explain`: its status, its holder, and how each attempt ended. Pure.

import type { AttemptEnd, Mode, RunId, RunStatus, TerminalStatus } from "../../runs/rules/run.js";
import { formatDuration } from "../../shared/duration.js";

export type AttemptFacts = {
  readonly attempt: number;
  readonly holder: string;
  readonly end: AttemptEnd | TerminalStatus;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly error: string | null;
};

export type RunFacts = {
  readonly id: RunId;
  readonly mode: Mode;
  readonly status: RunStatus;
  readonly nominalAt: number | null;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly holder: string | null;
  readonly leaseUntil: number | null;
  readonly cancelRequestedAt: number | null;
  readonly error: string | null;
  readonly attempts: readonly AttemptFacts[];
  /** The runs that must end before it begins. */
  readonly waitsFor: readonly RunId[];
};

/** Writes an instant on the clock of the schedule. */
export type WriteTime = (atMs: number) => string;

const ATTEMPTS_SHOWN = 5;
const MESSAGE_MAX = 300;

const ENDED: { readonly [E in AttemptEnd | TerminalStatus]: string } = {
  completed: "completed",
  failed: "failed",
  cancelled: "was cancelled",
  lost: "was lost, as its holder stopped responding,",
  timeout: "timed out",
  later: "asked for a later retry",
  handed_back: "was handed back, as its holder stopped,",
  suspended: "was suspended until a wait of it ended",
};

/** The status of the run, to end a sentence: "its run failed at attempt 3 of 3: boom". */
export function runOutcome(run: RunFacts | null): string {
  if (!run) return "its run is no longer kept";
  switch (run.status) {
    case "completed":
      return "its run completed";
    case "failed":
      return `its run failed${after(run)}${why(run.error)}`;
    case "cancelled":
      return "its run was cancelled";
    case "running":
      return `its run is running${after(run)}`;
    case "pending":
      return run.attempt > 0
        ? `its run waits for a retry after attempt ${run.attempt} of ${run.attemptsMax}${why(run.error)}`
        : "its run has not begun yet";
  }
}

/** The run and its attempts, line by line. */
export function runLines(run: RunFacts, time: WriteTime): string[] {
  return [`Run ${run.id}: ${standing(run, time)}.`, ...attemptLines(run, time)];
}

/** A run that blocked a tick, as it was at that instant. */
export function obstacleLines(run: RunFacts, momentMs: number, time: WriteTime): string[] {
  const name = `run ${run.id} (${whose(run, time)})`;
  const { createdAt, finishedAt } = run;
  if (finishedAt === null)
    return [
      `Blocked by: ${name}, live since ${time(createdAt)}.`,
      `At the time: ${holding(run, momentMs, time)}.`,
      ...attemptLines(run, time),
    ];
  // A failure holds ticks back after its run has ended; any other obstacle was live.
  if (finishedAt <= momentMs)
    return [`Held back by: ${name}, ${standing(run, time)}.`, ...attemptLines(run, time)];
  return [
    `Blocked by: ${name}, live from ${time(createdAt)} to ${time(finishedAt)}, when it ${terminal(run.status)}.`,
    `At the time: ${holding(run, momentMs, time)}.`,
    ...attemptLines(run, time),
  ];
}

/** A live run and its holder. */
export function liveLine(run: RunFacts, time: WriteTime): string {
  return `Live now: run ${run.id} (${whose(run, time)}), ${standing(run, time)}.`;
}

function whose({ mode, nominalAt }: RunFacts, time: WriteTime): string {
  return nominalAt === null ? mode : `${mode}, of the tick at ${time(nominalAt)}`;
}

function standing(run: RunFacts, time: WriteTime): string {
  const { status, holder, leaseUntil, startedAt, finishedAt } = run;
  if (status === "running") {
    const cancelled =
      run.cancelRequestedAt === null
        ? ""
        : `; its cancel was requested at ${time(run.cancelRequestedAt)}`;
    const lease = leaseUntil === null ? "" : `, whose lease lasts until ${time(leaseUntil)}`;
    const since = startedAt === null ? "" : ` since ${time(startedAt)}`;
    return `running${after(run)}, held${since} by ${holder ?? "an unknown instance"}${lease}${cancelled}`;
  }
  if (status === "pending") {
    if (run.waitsFor.length > 0) return `waits for the end of ${runs(run.waitsFor)}`;
    if (run.attempt > 0)
      return `waits for attempt ${run.attempt + 1} of ${run.attemptsMax}, due ${time(run.dueAt)}`;
    return `pending since ${time(run.createdAt)}, not claimed yet`;
  }
  const end = finishedAt === null ? "" : ` at ${time(finishedAt)}`;
  const took =
    startedAt === null || finishedAt === null
      ? ""
      : ` after ${formatDuration(finishedAt - startedAt)}`;
  const by = holder === null ? "" : `, held by ${holder}`;
  return `${status}${after(run)}${end}${took}${by}${status === "failed" ? why(run.error) : ""}`;
}

/** The holder of the run at that instant. */
function holding(run: RunFacts, momentMs: number, time: WriteTime): string {
  const then = run.attempts.find(
    ({ startedAt, endedAt }) => startedAt <= momentMs && momentMs < endedAt,
  );
  if (then)
    return `attempt ${then.attempt} held by ${then.holder} from ${time(then.startedAt)} to ${time(then.endedAt)}`;
  const isHeldNow = run.status === "running" && run.startedAt !== null && run.startedAt <= momentMs;
  if (isHeldNow) return standing(run, time);
  const earlier = run.attempts.findLast(({ endedAt }) => endedAt <= momentMs);
  if (earlier)
    return `between two attempts: attempt ${earlier.attempt} ${ENDED[earlier.end]} at ${time(earlier.endedAt)}, and it waited for a retry`;
  return "it had not begun yet";
}

function attemptLines({ id, status, attempts }: RunFacts, time: WriteTime): string[] {
  // A single attempt that ended as the run did would repeat the run's line.
  const listed = attempts.length === 1 && attempts[0]?.end === status ? [] : attempts;
  const shown = listed.slice(-ATTEMPTS_SHOWN);
  const hidden = listed.length - shown.length;
  const lines = shown.map(
    ({ attempt, holder, end, startedAt, endedAt, error }) =>
      `Attempt ${attempt} of run ${id}: ${ENDED[end]} at ${time(endedAt)} after ${formatDuration(endedAt - startedAt)}, held by ${holder}${why(error)}.`,
  );
  return hidden > 0
    ? [`Attempts of run ${id}: ${hidden} earlier ones are not shown.`, ...lines]
    : lines;
}

function after({ attempt, attemptsMax }: RunFacts): string {
  return attempt === 0 ? "" : ` at attempt ${attempt} of ${attemptsMax}`;
}

function terminal(status: RunStatus): string {
  return status === "cancelled" ? "was cancelled" : status;
}

function runs(ids: readonly RunId[]): string {
  return `${ids.length === 1 ? "run" : "runs"} ${ids.join(", ")}`;
}

/** ": message" without a full stop at its end, or nothing. */
function why(error: string | null): string {
  return error === null || error === "" ? "" : `: ${shortText(error)}`;
}

/** Foreign text for use inside a sentence: one line, shortened, without a final full stop. */
export function shortText(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  const cut = line.length > MESSAGE_MAX ? `${line.slice(0, MESSAGE_MAX)}…` : line;
  return cut.replace(/\.$/, "");
}
