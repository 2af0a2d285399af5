// Decides about a check-in at a monitor: the watched job began, succeeded or failed. An end becomes a run that has
// ended and a fired tick, so alerts and lists need no special case for monitors. Why:
// docs/decisions/0008-a-check-in-is-a-run-that-has-ended.md

import type { RunId } from "../runs/rules/run.js";
import { ConfigurationError, NotAMonitorError, RunsElsewhereError } from "../shared/errors.js";
import { type StoredError, storedError } from "../shared/failure.js";
import { hideSecrets } from "../shared/known-secrets.js";
import { requireKey } from "../shared/names.js";
import { requireOptions } from "../shared/options.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { RunRecord } from "../store/runs/runs.js";
import type { CheckIn, ScheduleChange } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { Store } from "../store/store.js";
import { advance, progressOf } from "./advance.js";
import { type ChangeAuthor, existing } from "./edit.js";
import { beganFor, judgedAt, PING_STATES, type PingState, tickFor } from "./rules/monitor.js";
import { oneTick } from "./rules/tick.js";
import { type CachedSchedule, compile } from "./schedule-cache.js";
import type { Decision, Read } from "./updater.js";

export type PingOptions = {
  /** The job began, succeeded or failed. @default "ok" */
  readonly state?: PingState | undefined;
  /** Why it failed, in a sentence or two; for "fail" alone. */
  readonly reason?: string | undefined;
  /** The same delivery twice is the same check-in. Not for "start", which is the same twice anyway. */
  readonly deliveryId?: string | undefined;
};

export type Pinged = {
  readonly state: PingState;
  /** The tick that it counts for; null: the last one had been judged already, or nothing is expected. */
  readonly tick: Date | null;
  /** The run that records it; null for a start, and while the monitor is paused. */
  readonly runId: RunId | null;
  /** The same check-in had already arrived: nothing changed. */
  readonly repeated: boolean;
  /** A paused monitor expects no check-in, and ignores those that arrive. */
  readonly paused: boolean;
  /** The deadline of the next check-in. */
  readonly nextDeadlineAt: Date | null;
};

/** Longer ones are cut: it is a reason, not a log. */
export const REASON_LENGTH_MAX = 2_000;
const NO_REASON = "it checked in as failed, without a reason";

export type CheckInParams = {
  readonly name: string;
  readonly state: PingState;
  readonly error: StoredError | null;
  readonly deliveryId: string | null;
  readonly author: ChangeAuthor;
};

export function readCheckIn(
  options: PingOptions,
): Pick<CheckInParams, "state" | "error" | "deliveryId"> {
  const field = "schedules.ping()";
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options, ["state", "reason", "deliveryId"], field);
  const { state = "ok", reason, deliveryId } = options;
  if (!PING_STATES.includes(state))
    problems.push({
      field: "state",
      message: `must be one of ${PING_STATES.map((each) => `"${each}"`).join(", ")}`,
    });
  if (reason !== undefined && typeof reason !== "string")
    problems.push({ field: "reason", message: 'must be a text such as "the disk is full"' });
  else if (reason !== undefined && state !== "fail")
    problems.push({ field: "reason", message: 'goes with the state "fail" alone' });
  if (deliveryId !== undefined && state === "start")
    problems.push({
      field: "deliveryId",
      message: "goes without a start: a second start changes nothing",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const error =
    state === "fail"
      ? storedError({ code: "REPORTED", name: "Reported", message: cut(reason ?? NO_REASON) })
      : null;
  const checked = deliveryId === undefined ? null : requireKey(deliveryId, "deliveryId");
  return { state, error, deliveryId: checked };
}

/** Hides secrets first: a cut could leave half of one visible. */
function cut(given: string): string {
  const reason = hideSecrets(given);
  return reason.length <= REASON_LENGTH_MAX ? reason : `${reason.slice(0, REASON_LENGTH_MAX)}…`;
}

export async function checkInDecision(
  read: Read,
  params: CheckInParams,
  store: Store,
): Promise<Decision<Pinged>> {
  const state = existing(read, params.name);
  if (!state.isMonitor) throw new NotAMonitorError(params.name);
  const said = { state: params.state, repeated: false, paused: false };
  if (params.deliveryId !== null) {
    const made = await store.schedules.delivery({ schedule: state.id, id: params.deliveryId });
    const run = made && (await store.runs.get(made.run));
    if (made)
      return {
        result: {
          ...said,
          tick:
            run?.mode === "scheduled" && run.nominalAt !== null ? new Date(run.nominalAt) : null,
          runId: made.run,
          repeated: true,
          nextDeadlineAt: dateOrNull(state.nextAt),
        },
      };
  }
  const isPaused = state.pausedAt !== null || state.pauses.some(({ until }) => until === null);
  if (isPaused)
    return { result: { ...said, tick: null, runId: null, paused: true, nextDeadlineAt: null } };
  const compiled = compile(state);
  const { now } = read;
  // Ticks whose grace is over are settled first: this check-in came too late for them.
  const judged = advance(state, compiled, { ...params.author, now, lastPolledAt: null });
  if (judged.change.ticks.length > 0) return { first: judged.change };
  const at: Place = {
    now,
    compiled,
    tick: tickFor({ ...compiled, cursorAt: state.cursorAt, now }),
  };
  return params.state === "start"
    ? begin(state, at, said)
    : end(state, at, { params, said, store });
}

type Place = {
  readonly now: number;
  readonly compiled: CachedSchedule;
  /** Null: the check-in is about the last recorded tick. */
  readonly tick: number | null;
};

type Said = Pick<Pinged, "state" | "repeated" | "paused">;

/** The first start of a tick counts: repeated starts must not postpone the deadline for ever. */
function begin(state: ScheduleState, at: Place, said: Said): Decision<Pinged> {
  const known = beganOf(state, at.tick);
  const beganAt = known ?? at.now;
  const nextAt = judgedAt({ ...at.compiled, cursorAt: state.cursorAt, beganAt });
  const result = {
    ...said,
    tick: dateOrNull(at.tick),
    runId: null,
    repeated: known !== null,
    nextDeadlineAt: dateOrNull(nextAt),
  };
  if (known !== null) return { result };
  const change = { ...unchanged(state), beganAt };
  return { result, change: { ...change, progress: { ...change.progress, nextAt } } };
}

/** Records the end, done or failed, as a run that has ended. */
async function end(
  state: ScheduleState,
  at: Place,
  {
    params,
    said,
    store,
  }: { readonly params: CheckInParams; readonly said: Said; readonly store: Store },
): Promise<Decision<Pinged>> {
  const { tick, now, compiled } = at;
  const status = params.state === "fail" ? ("failed" as const) : ("completed" as const);
  const before = tick === null ? await lastCheckIn(store, state) : null;
  const cursorAt = tick ?? state.cursorAt;
  const nextAt = judgedAt({ ...compiled, cursorAt, beganAt: null });
  const result = (runId: RunId): Pinged => ({
    ...said,
    tick: dateOrNull(tick ?? (before?.mode === "scheduled" ? before.nominalAt : null)),
    runId,
    nextDeadlineAt: dateOrNull(nextAt),
  });
  const id = before?.id ?? params.author.newId();
  const delivered =
    params.deliveryId === null
      ? {}
      : { delivery: { id: params.deliveryId, inputHash: "", run: id } };
  // A repeated check-in changes nothing; its delivery id is kept, so that it does not count for the next tick either.
  if (before?.status === status)
    return {
      result: { ...result(id), repeated: true },
      ...(params.deliveryId === null ? {} : { change: { ...unchanged(state), ...delivered } }),
    };
  const beganAt = beganOf(state, tick);
  const checkIn: CheckIn = {
    id,
    mode: before?.mode === "scheduled" || tick !== null ? "scheduled" : "manual",
    nominalAt: before ? before.nominalAt : tick,
    status,
    ranMs: beganAt === null ? null : Math.max(0, now - beganAt),
    error: params.error && JSON.stringify(params.error),
    isAgain: before !== null,
  };
  const { progress, ...change } = unchanged(state);
  return {
    result: result(id),
    change: {
      ...change,
      checkIn,
      ticks: tick === null ? [] : [oneTick(tick, "on_time", { run: id })],
      progress: {
        ...progress,
        cursorAt,
        nextAt,
        isEnded: nextAt === null,
        lastRun: id,
        lastTickAt: tick ?? progress.lastTickAt,
      },
      ...(state.beganAt === null ? {} : { beganAt: null }),
      ...delivered,
    },
  };
}

/** The check-in for the last recorded tick, on time or late; null if there was none. */
async function lastCheckIn(store: Store, state: ScheduleState): Promise<RunRecord | null> {
  const run = state.lastRun === null ? null : await store.runs.get(state.lastRun);
  if (!run) return null;
  const isOfIt =
    run.nominalAt === null ? run.createdAt >= state.cursorAt : run.nominalAt === state.cursorAt;
  return isOfIt ? run : null;
}

function beganOf({ beganAt, cursorAt }: ScheduleState, tick: number | null): number | null {
  if (tick !== null) return beganFor(beganAt, { cursorAt, tick });
  return beganAt !== null && beganAt >= cursorAt ? beganAt : null;
}

function unchanged(state: ScheduleState): ScheduleChange {
  const { id, revision } = state;
  return { id, revision, ticks: [], runs: [], progress: progressOf(state) };
}

/** Refuses triggers, backfills and retries of a monitor, which executes nothing itself. */
export function refuseMonitor({
  name,
  isMonitor,
}: Pick<ScheduleState, "name" | "isMonitor">): void {
  if (isMonitor) throw new RunsElsewhereError(name);
}

function dateOrNull(at: number | null): Date | null {
  return at === null ? null : new Date(at);
}
