// Closing the books of a schedule before something about it changes: every tick up to now is fired or
// recorded by the definition that stood until now. Pure but for new ids.

import type { ScheduleChange, ScheduleState } from "../store/schedule-store.js";
import { advance, progressOf, type Surroundings } from "./advance.js";
import { lookAt } from "./rules/monitor.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { type Reason, stretchOf, type TickEntry } from "./rules/tick.js";
import { type Compiled, compile } from "./schedule-cache.js";

export type Books = {
  readonly change: ScheduleChange;
  /** False: write this change, and close the books again. */
  readonly isClosed: boolean;
};

export function closeBooks(state: ScheduleState, around: Surroundings): Books {
  const nothing: ScheduleChange = {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: [],
    progress: progressOf(state),
  };
  const compiled = compiledOrNull(state);
  if (state.deletedAt !== null || !compiled) return { change: nothing, isClosed: true };
  if (state.pausedAt === null && state.brokenAt === null && state.isJobKnown) {
    const { change, isComplete } = advance(state, compiled, around);
    return {
      change: state.isMonitor ? cutShort(change, state, compiled, around.now) : change,
      isClosed: isComplete,
    };
  }
  const ticks = stretchSince(state, compiled, around.now);
  const cursorAt = ticks.at(-1)?.lastAt ?? state.cursorAt;
  return {
    change: { ...nothing, ticks, progress: { ...nothing.progress, cursorAt } },
    isClosed: true,
  };
}

/**
 * Ticks of a monitor that still waited for their check-in when it was changed are judged no more: from that
 * moment on nothing is expected for them, so they are in the ledger as what a pause of no length left out.
 */
function cutShort(
  change: ScheduleChange,
  state: ScheduleState,
  { when }: Compiled,
  now: number,
): ScheduleChange {
  const { progress } = change;
  const open = stretchOf(when, { afterMs: progress.cursorAt, untilMs: now });
  if (open === null) return change;
  const evidence = { since: now, until: now, by: null, note: CUT_SHORT };
  return {
    ...change,
    ticks: [...change.ticks, { ...open, reason: "paused", run: null, evidence }],
    ...(state.beganAt === null ? {} : { beganAt: null }),
    progress: { ...progress, cursorAt: open.lastAt },
  };
}

const CUT_SHORT = "the monitor was changed while it waited for this check-in";

/** The first tick after now; an interval that is drawn begins anew. */
export function nextAfter(
  { definition, when }: Compiled,
  { cursorAt, now, chance }: { readonly cursorAt: number; readonly now: number; chance: number },
): { readonly nextAt: number | null; readonly isEnded: boolean } {
  const nextAt =
    definition.when.kind === "range"
      ? when.firstAllowed(now + draw(definition, chance))
      : lookAt(definition, when.next(Math.max(cursorAt, now)));
  return { nextAt, isEnded: nextAt === null };
}

function draw({ when: { everyMs, everyMaxMs } }: ScheduleDefinition, chance: number): number {
  const minMs = everyMs ?? 0;
  return minMs + Math.floor(chance * ((everyMaxMs ?? minMs) - minMs + 1));
}

/** What a pause left out, or what could not be evaluated, as one row. */
function stretchSince(
  state: ScheduleState,
  { definition, when }: Compiled,
  now: number,
): TickEntry[] {
  if (definition.when.kind === "range" || state.isEnded) return [];
  const stretch = stretchOf(when, { afterMs: state.cursorAt, untilMs: now });
  if (stretch === null) return [];
  const isPaused = state.pausedAt !== null;
  const reason: Reason = isPaused ? "paused" : "broken";
  const evidence = isPaused
    ? { since: state.pausedAt, until: now, by: state.pausedBy, note: state.pauseNote }
    : { error: state.brokenError ?? `no instance has announced the job "${state.job}"` };
  return [{ ...stretch, reason, run: null, evidence: evidence as TickEntry["evidence"] }];
}

function compiledOrNull(state: ScheduleState): Compiled | null {
  try {
    return compile(state);
  } catch {
    return null; // What cannot be evaluated has no ticks that could be recorded.
  }
}
