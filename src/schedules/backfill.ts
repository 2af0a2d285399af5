// Beginning and ending a backfill, as decisions; its steps are in backfill-step.ts.

import { BackfillRunningError } from "../shared/errors.js";
import { refuse } from "../shared/options.js";
import type { BackfillChange, ScheduleChange, ScheduleState } from "../store/schedule-store.js";
import { progressOf } from "./advance.js";
import { refuseMonitor } from "./check-in.js";
import { type Asker, audited, existing } from "./edit.js";
import { stretchOf } from "./rules/tick.js";
import type { When } from "./rules/when.js";
import { compile } from "./schedule-cache.js";
import type { Decision, Read } from "./updater.js";

const BACKFILL_MAX = 100_000;

export function backfillDecision(
  read: Read,
  params: {
    readonly name: string;
    readonly id: string;
    readonly fromAt: number;
    readonly toAt: number;
    readonly isAll: boolean;
    readonly asker: Asker;
  },
): Decision<void> {
  const { name, id, fromAt, isAll, asker } = params;
  const state = existing(read, name);
  refuseMonitor(state);
  if (state.backfill) throw new BackfillRunningError(name, state.backfill.id);
  // What is to come is for the cadence.
  const toAt = Math.min(params.toAt, read.now);
  const { definition, when } = compile(state);
  if (definition.when.kind === "range")
    refuse("schedules.backfill()", "an interval that is drawn has no ticks to go back to");
  const total = ticksIn(when, fromAt, toAt);
  const progress = { cursorAt: fromAt - 1, total, made: 0, passed: 0 };
  const change = withBackfill(state, {
    state: { id, fromAt, toAt, isAll, ...progress },
    isNew: true,
    by: asker.by,
    isEnded: total === 0,
    isCancelled: false,
    run: null,
  });
  const [from, to] = [fromAt, toAt].map((at) => new Date(at).toISOString());
  const words = `${total} ticks from ${from} to ${to}`;
  return {
    answer: undefined,
    change: { ...change, ...audited(asker, { verb: "backfill", name, change: words }) },
  };
}

/** True if there was one to end. */
export function cancelBackfillDecision(
  read: Read,
  { name, asker }: { readonly name: string; readonly asker: Asker },
): Decision<boolean> {
  const state = existing(read, name);
  if (!state.backfill) return { answer: false };
  const over = { isNew: false, by: null, isEnded: true, isCancelled: true, run: null };
  const change = withBackfill(state, { ...over, state: state.backfill });
  return {
    answer: true,
    change: { ...change, ...audited(asker, { verb: "cancel_backfill", name }) },
  };
}

function withBackfill(state: ScheduleState, backfill: BackfillChange): ScheduleChange {
  const { id, revision } = state;
  return { id, revision, ticks: [], runs: [], progress: progressOf(state), backfill };
}

function ticksIn(when: When, fromAt: number, toAt: number): number {
  const count = stretchOf(when, { afterMs: fromAt - 1, untilMs: toAt })?.count ?? 0;
  if (count > BACKFILL_MAX)
    refuse("schedules.backfill()", `covers ${count} ticks; at most ${BACKFILL_MAX} at a time`);
  return count;
}
