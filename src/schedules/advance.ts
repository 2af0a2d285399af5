// Computes the next change of a schedule for the ticker and for every edit: due ticks by `evaluate`, the gate to open, the
// runs that a newer one replaces. Pure except for new ids; never writes.

import type { RunId } from "../runs/rules/run.js";
import type { ScheduleChange, ScheduleProgress, ScheduleRun } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import { evaluate } from "./rules/evaluate.js";
import { judgeMonitor } from "./rules/monitor.js";
import { gateToOpen, type LiveRun } from "./rules/overlap.js";
import { oneTick, type TickEntry } from "./rules/tick.js";
import { type CachedSchedule, tzdataOf } from "./schedule-cache.js";

/** A schedule is stuck if its tick is this much overdue although an instance has polled. */
export const STUCK_MS = 300_000;
/** An instance counts as present if it has the scheduler on and has polled within this time. */
export const POLLED_WITHIN_MS = 60_000;

export type TickContext = {
  readonly now: number;
  /** The last poll of an instance with the scheduler on, before the present poll. */
  readonly lastPolledAt: number | null;
  /**
   * Whether this instance itself has polled for a while. An instance that comes back from an absence may see a recent
   * poll of another one, which does not prove that any instance was present while ticks were due. @default false
   */
  readonly wasHere?: boolean;
  readonly newId: () => RunId;
  /** The replaced runs have been cancelled. */
  readonly hasCancelled?: boolean;
  /** False if the scheduler is off: gates open, and no tick is recorded or fired. @default true */
  readonly fires?: boolean;
};

export type Advance = {
  readonly change: ScheduleChange;
  /** False: more ticks are due than one pass records. */
  readonly isComplete: boolean;
  readonly isStuck: boolean;
  /** The change would write nothing new. */
  readonly isIdle: boolean;
};

/** Records and fires ticks up to now, and opens a gate that is free. */
export function advance(
  state: ScheduleState,
  { definition, when }: CachedSchedule,
  seenBy: TickContext,
): Advance {
  const { now, lastPolledAt, wasHere = false, newId, hasCancelled = false, fires = true } = seenBy;
  const isStuck = fires && isStuckAt(state, now, wasHere ? lastPolledAt : null);
  const hold = state.holdUntil === null ? null : { until: state.holdUntil, run: state.holdRun };
  const isDue = fires && isActive(state) && (state.nextAt === null || state.nextAt <= now);
  const { cursorAt, live: liveBefore, pauses } = state;
  const seen = { now, definition, when, lastPolledAt, cursorAt, live: liveBefore, pauses };
  const evaluation = !isDue
    ? null
    : definition.monitor
      ? judgeMonitor({ ...seen, beganAt: state.beganAt })
      : evaluate({
          ...seen,
          hold,
          isStuck,
          newId,
          nextAt: state.nextAt ?? (definition.when.kind === "range" ? now : null),
        });
  // Only gates of earlier runs can be opened: a run of this pass is stored in its final state.
  const opens = gateToOpen(definition.overlap, state.live);
  const live = evaluation?.live ?? state.live;
  const newest = evaluation?.runs.at(-1);
  const isReplacing = (state.isReplacing && !hasCancelled) || (evaluation?.cancels.length ?? 0) > 0;
  const change: ScheduleChange = {
    id: state.id,
    revision: state.revision,
    ticks: evaluation?.ticks ?? [],
    runs: (evaluation?.runs ?? []).map((run) => ({ ...run, mode: "scheduled", input: null })),
    ...(opens === null ? {} : { opens }),
    ...(state.beganAt !== null && (evaluation?.ticks.length ?? 0) > 0 ? { beganAt: null } : {}),
    progress: {
      cursorAt: evaluation ? evaluation.cursorAt : state.cursorAt,
      nextAt: evaluation ? evaluation.nextAt : state.nextAt,
      isEnded: evaluation ? evaluation.isEnded : state.isEnded,
      holdUntil: state.holdUntil,
      holdRun: state.holdRun,
      lastRun: newest ? newest.id : state.lastRun,
      lastTickAt: newest ? newest.nominalAt : state.lastTickAt,
      live: live.map(({ id }) => id),
      isGated: live.some(({ id, isGated }) => isGated && id !== opens),
      isReplacing,
      tzdata: evaluation ? tzdataOf(definition) : state.tzdata,
    },
  };
  const isIdle =
    !evaluation &&
    opens === null &&
    !state.isReplacing &&
    state.isGated === change.progress.isGated;
  return { change, isComplete: evaluation?.isComplete ?? true, isStuck, isIdle };
}

/** Opens a free gate of a schedule whose definition cannot be read, by the strictest overlap policy. */
export function openGate(state: ScheduleState): ScheduleChange | null {
  const opens = gateToOpen("skip", state.live);
  if (opens === null && state.isGated === state.live.some(({ isGated }) => isGated)) return null;
  const live = state.live.map((run) => (run.id === opens ? { ...run, isGated: false } : run));
  return {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: [],
    ...(opens === null ? {} : { opens }),
    progress: { ...progressOf(state), ...liveOf(live), isReplacing: false },
  };
}

/** Breaks a schedule that this instance cannot evaluate: its next tick is missed, and it stops firing. */
export function breakUp(state: ScheduleState, now: number, error: string): ScheduleChange {
  const { nextAt, cursorAt } = state;
  const isKnown = nextAt !== null && nextAt > cursorAt;
  const ticks: TickEntry[] = isKnown ? [oneTick(nextAt, "broken", { evidence: { error } })] : [];
  const { pausedAt, pausedBy, pauseNote } = state;
  return {
    id: state.id,
    revision: state.revision,
    ticks,
    runs: [],
    progress: {
      ...progressOf(state),
      nextAt: null,
      cursorAt: isKnown ? nextAt : cursorAt,
    },
    standing: { pausedAt, pausedBy, pauseNote, brokenAt: now, brokenError: error },
  };
}

export function isActive(state: ScheduleState): boolean {
  const { pausedAt, brokenAt, deletedAt, isEnded } = state;
  return pausedAt === null && brokenAt === null && deletedAt === null && !isEnded;
}

function isStuckAt(state: ScheduleState, now: number, lastPolledAt: number | null): boolean {
  if (!isActive(state)) return false;
  // While everything is paused, no instance evaluates schedules.
  if (state.pauses.some(({ until }) => until === null || until > now - STUCK_MS)) return false;
  if (state.nextAt === null) return true;
  const wasThere = lastPolledAt !== null && lastPolledAt >= now - POLLED_WITHIN_MS;
  return wasThere && state.nextAt <= now - STUCK_MS;
}

/** The runs that the newest waiting run replaces: scheduled ones; for a trigger also manual ones. */
export function replacedBy(live: readonly LiveRun[]): readonly RunId[] {
  const at = live.findLastIndex(({ isGated, mode }) => isGated && mode !== "backfill");
  const newest = live[at];
  if (!newest) return [];
  return live
    .slice(0, at)
    .filter(
      ({ mode }) => mode === "scheduled" || (mode === "manual" && newest.mode !== "scheduled"),
    )
    .map(({ id }) => id);
}

/** The present progress of a schedule, without its ended runs. */
export function progressOf(state: ScheduleState): ScheduleProgress {
  return {
    cursorAt: state.cursorAt,
    nextAt: state.nextAt,
    isEnded: state.isEnded,
    holdUntil: state.holdUntil,
    holdRun: state.holdRun,
    lastRun: state.lastRun,
    lastTickAt: state.lastTickAt,
    isReplacing: state.isReplacing,
    tzdata: state.tzdata,
    ...liveOf(state.live),
  };
}

export function liveOf(live: readonly LiveRun[]): Pick<ScheduleProgress, "live" | "isGated"> {
  return { live: live.map(({ id }) => id), isGated: live.some(({ isGated }) => isGated) };
}

/** A run that a caller requests, beside the cadence. */
export function requestedRun(params: {
  readonly id: RunId;
  readonly mode: ScheduleRun["mode"];
  readonly isGated: boolean;
  readonly nominalAt?: number | null;
  readonly input?: string | null;
}): { readonly run: ScheduleRun; readonly live: LiveRun } {
  const { id, mode, isGated, nominalAt = null, input = null } = params;
  return {
    run: { id, mode, isGated, nominalAt, input },
    live: { id, mode, isGated, nominalAt },
  };
}
