// Beginning and ending a backfill, as decisions; its steps are in backfill-step.ts.

import type { RunId } from "../runs/rules/run.js";
import { BackfillRunningError } from "../shared/errors.js";
import { refuse } from "../shared/options.js";
import type { Ids } from "../shared/ports.js";
import type { BackfillChange, ScheduleChange, ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";
import { askedRun, liveOf, progressOf } from "./advance.js";
import { refuseMonitor } from "./check-in.js";
import { audited, type ChangeAuthor, existing } from "./edit.js";
import { stretchOf } from "./rules/tick.js";
import type { When } from "./rules/when.js";
import { compile, type ScheduleCache } from "./schedule-cache.js";
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
    readonly author: ChangeAuthor;
  },
): Decision<void> {
  const { name, id, fromAt, isAll, author } = params;
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
    by: author.by,
    isEnded: total === 0,
    isCancelled: false,
    run: null,
  });
  const [from, to] = [fromAt, toAt].map((at) => new Date(at).toISOString());
  const words = `${total} ticks from ${from} to ${to}`;
  return {
    answer: undefined,
    change: { ...change, ...audited(author, { verb: "backfill", name, change: words }) },
  };
}

/** True if there was one to end. */
export function cancelBackfillDecision(
  read: Read,
  { name, author }: { readonly name: string; readonly author: ChangeAuthor },
): Decision<boolean> {
  const state = existing(read, name);
  if (!state.backfill) return { answer: false };
  const over = { isNew: false, by: null, isEnded: true, isCancelled: true, run: null };
  const change = withBackfill(state, { ...over, state: state.backfill });
  return {
    answer: true,
    change: { ...change, ...audited(author, { verb: "cancel_backfill", name }) },
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

// One step of a backfill: the next tick of its range that has no completed run gets one. The runs go
// one after the other, so the next is made when the one before it has ended.

/** Ticks with a completed run are passed over in chunks of this many. */
const CHUNK = 500;

/** What to write, or null while a run is in the way. */
export async function backfillStep(params: {
  readonly store: Store;
  readonly state: ScheduleState;
  readonly cache: ScheduleCache;
  readonly ids: Ids;
}): Promise<ScheduleChange | null> {
  const { store, state, cache, ids } = params;
  const { backfill } = state;
  if (!backfill) return null;
  const { definition, when } = cache.of(state);
  if (state.live.some(({ mode }) => mode === "backfill")) return null;
  // It takes its place behind what is live, or a busy schedule would never let it begin.
  const isGated = definition.overlap !== "allow" && state.live.length > 0;
  const ticks: number[] = [];
  for (
    let at = when.next(backfill.cursorAt);
    at !== null && at <= backfill.toAt && ticks.length < CHUNK;
    at = when.next(at)
  ) {
    ticks.push(at);
  }
  const completed = backfill.isAll
    ? new Set<number>()
    : new Set(await store.completedTicks({ schedule: state.id, ticks }));
  const at = ticks.find((tick) => !completed.has(tick));
  const lookedAt = at === undefined ? ticks : ticks.slice(0, ticks.indexOf(at) + 1);
  const isEnded = at === undefined && ticks.length < CHUNK;
  const id: RunId | null = at === undefined ? null : ids.run();
  const change: BackfillChange = {
    state: {
      ...backfill,
      cursorAt: lookedAt.at(-1) ?? backfill.toAt,
      made: backfill.made + (id === null ? 0 : 1),
      passed: backfill.passed + lookedAt.length - (id === null ? 0 : 1),
    },
    isNew: false,
    by: null,
    isEnded,
    isCancelled: false,
    run: id === null || at === undefined ? null : { id, at },
  };
  const asked =
    id === null || at === undefined
      ? null
      : askedRun({ id, mode: "backfill", isGated, nominalAt: at });
  return {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: asked ? [asked.run] : [],
    progress: {
      ...progressOf(state),
      ...liveOf(asked ? [...state.live, asked.live] : state.live),
    },
    backfill: change,
  };
}
