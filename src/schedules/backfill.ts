// Makes runs for the past ticks of a schedule: decides how a backfill begins and ends, and makes its next run when the
// previous one has ended.

import type { RunId } from "../runs/rules/run.js";
import { BackfillRunningError } from "../shared/errors.js";
import type { Ids } from "../shared/ports.js";
import { refuse } from "../shared/problems.js";
import type { BackfillChange, ScheduleChange } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { Store } from "../store/store.js";
import { liveOf, progressOf, requestedRun } from "./advance.js";
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
  // Future ticks belong to the cadence.
  const toAt = Math.min(params.toAt, read.now);
  const { definition, when } = compile(state);
  if (definition.when.kind === "range")
    refuse("schedules.backfill()", "a random interval has no past ticks to fill");
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
    result: undefined,
    change: { ...change, ...audited(author, { verb: "backfill", name, change: words }) },
  };
}

/** True if a backfill was running. */
export function cancelBackfillDecision(
  read: Read,
  { name, author }: { readonly name: string; readonly author: ChangeAuthor },
): Decision<boolean> {
  const state = existing(read, name);
  if (!state.backfill) return { result: false };
  const over = { isNew: false, by: null, isEnded: true, isCancelled: true, run: null };
  const change = withBackfill(state, { ...over, state: state.backfill });
  return {
    result: true,
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

// ── one step: the next tick of the range without a completed run gets a run, once the run before it has ended ──

/** Ticks with a completed run are passed over in chunks of this many. */
const CHUNK = 500;

/** The change to write; null while an earlier backfill run is live. */
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
  // It queues behind live runs: otherwise a busy schedule would never let it begin.
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
    : new Set(await store.schedules.completedTicks({ schedule: state.id, ticks }));
  const at = ticks.find((tick) => !completed.has(tick));
  const checked = at === undefined ? ticks : ticks.slice(0, ticks.indexOf(at) + 1);
  const isEnded = at === undefined && ticks.length < CHUNK;
  const id: RunId | null = at === undefined ? null : ids.run();
  const change: BackfillChange = {
    state: {
      ...backfill,
      cursorAt: checked.at(-1) ?? backfill.toAt,
      made: backfill.made + (id === null ? 0 : 1),
      passed: backfill.passed + checked.length - (id === null ? 0 : 1),
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
      : requestedRun({ id, mode: "backfill", isGated, nominalAt: at });
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
