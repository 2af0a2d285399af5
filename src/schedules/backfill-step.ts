// One step of a backfill: the next tick of its range that has no completed run gets one. The runs go
// one after the other, so the next is made when the one before it has ended.

import type { RunId } from "../runs/rules/run.js";
import type { Ids } from "../shared/ports.js";
import type { BackfillChange, ScheduleChange, ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";
import { askedRun, liveOf, progressOf } from "./advance.js";
import type { CompiledSchedules } from "./schedule-cache.js";

/** Ticks with a completed run are passed over in chunks of this many. */
const CHUNK = 500;

/** What to write, or null while a run is in the way. */
export async function backfillStep(params: {
  readonly store: Store;
  readonly state: ScheduleState;
  readonly compiled: CompiledSchedules;
  readonly ids: Ids;
}): Promise<ScheduleChange | null> {
  const { store, state, compiled, ids } = params;
  const { backfill } = state;
  if (!backfill) return null;
  const { definition, when } = compiled.of(state);
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
