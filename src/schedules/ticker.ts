// Fires due schedules, one pass per call. Any instance may do it, and none leads: a decision is written only at the
// revision that it was made from, so of two instances that decide the same tick only one writes it. A failed batch is
// retried one by one, so that one schedule never stops the others.
// The whole story: docs/internals/tick.md.

import { describeFailure } from "../shared/failure.js";
import type { Ports } from "../shared/ports.js";
import { isUnavailable } from "../shared/retry-while-unavailable.js";
import type { ScheduleChange } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { Store } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { TraceSpan, Tracing } from "../telemetry/tracing.js";
import {
  type Advance,
  advance,
  breakUp,
  openGate,
  replacedBy,
  type TickContext,
} from "./advance.js";
import { backfillStep } from "./backfill.js";
import { OUTCOME_OF } from "./rules/tick.js";
import type { ScheduleCache } from "./schedule-cache.js";

/** Nothing is written while it reads, so few large reads: 10,000 due at once fired in 0.6 s, by 2,000 in 0.8 s. */
const READ_MAX = 10_000;
/** Schedules in one write; while a chunk is written, the next one is decided. */
const CHUNK = 500;
/** Bounds a pass; the next poll follows at once and finds the rest. */
const ROUNDS_MAX = 20;

/** A schedule is broken after this many failed writes in a row. */
const REFUSALS_MAX = 3;

export type TickerParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number | null;
  readonly cache: ScheduleCache;
  /** How often the change of a schedule was refused in a row, by its number. */
  readonly refusals: Map<number, number>;
  readonly emit: Emit;
  readonly listens: (name: EventName) => boolean;
  readonly meter: Meter;
  readonly tracing: Tracing | null;
};

export type TickReport = {
  readonly fired: readonly { schedule: string; tick: number; runId: string }[];
  readonly skipped: readonly { schedule: string; tick: number; reason: string }[];
  /** Time until the earliest next tick of the schedules in this pass. */
  readonly nextInMs: number;
  /** Work was left for the next pass. */
  readonly hasMore: boolean;
  /** Runs became ready to be claimed. */
  readonly hasReadied: boolean;
  /** The pass made runs that wait for others to end. */
  readonly hasGated: boolean;
};

type Decided = { readonly state: ScheduleState } & Partial<Advance> & {
    readonly change: ScheduleChange;
    readonly broken?: string;
  };

/** The polls before this pass, and whether this pass fires. */
export type PollContext = Pick<TickContext, "lastPolledAt" | "wasHere" | "fires">;

/**
 * Opens free gates, cancels replaced runs and continues backfills. An instance whose scheduler is off does it too: the
 * runs exist already, and no tick is recorded or fired.
 */
export function releaseOnce(params: TickerParams): Promise<TickReport> {
  return tickOnce(params, { lastPolledAt: null, fires: false });
}

/** Records and fires what is due. */
export async function tickOnce(params: TickerParams, poll: PollContext): Promise<TickReport> {
  const fired: TickReport["fired"][number][] = [];
  const skipped: TickReport["skipped"][number][] = [];
  let hasMore = false;
  let hasGated = false;
  let hasReadied = false;
  let nextInMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const only = poll.fires === false ? ({ only: "gates" } as const) : {};
    const due = await params.store.schedules.due({ limit: READ_MAX, ...only });
    const applied = await decideAndWrite(params, due, poll);
    for (const each of applied) {
      emitDecided(params, each, due.now);
      const { nextAt } = each.change.progress;
      if (nextAt !== null) nextInMs = Math.min(nextInMs, Math.max(1, nextAt - due.now));
      hasReadied ||= each.change.runs.length > 0 || each.change.opens !== undefined;
      hasGated ||= each.change.progress.isGated || each.change.backfill !== undefined;
      const { name: schedule } = each.state;
      for (const { firstAt: tick, reason, run } of each.change.ticks) {
        if (run !== null) fired.push({ schedule, tick, runId: run });
        else skipped.push({ schedule, tick, reason });
      }
    }
    // A schedule whose runs a newer one replaces, or that has more to record, is read again at once.
    const isUnfinished = applied.some(
      ({ state, change, isComplete }) =>
        isComplete === false ||
        state.isReplacing ||
        change.progress.isReplacing ||
        isBackfillGoingOn(change),
    );
    hasMore = due.hasMore || isUnfinished;
    // If nothing was applied, another instance is working on the same schedules.
    if (!hasMore || applied.length === 0) break;
  }
  return { fired, skipped, nextInMs, hasMore, hasReadied, hasGated };
}

type Due = { readonly now: number; readonly schedules: readonly ScheduleState[] };

/** Returns the written decisions. One chunk is written while the next one is decided. */
async function decideAndWrite(
  params: TickerParams,
  { now, schedules }: Due,
  poll: PollContext,
): Promise<readonly Decided[]> {
  const written: Promise<readonly Decided[]>[] = [];
  for (let from = 0; from < schedules.length; from += CHUNK) {
    const chunk = { now, schedules: schedules.slice(from, from + CHUNK) };
    const decided = await decideAll(params, chunk, poll);
    written.push(writeAll(params, decided));
    written.at(-1)?.catch(() => undefined);
    await written.at(-2);
  }
  return (await Promise.all(written)).flat();
}

async function decideAll(
  params: TickerParams,
  due: Due,
  poll: PollContext,
): Promise<readonly Decided[]> {
  const { ports, store } = params;
  const { now } = due;
  const decided: Decided[] = [];
  for (const state of due.schedules) {
    if (state.isReplacing) {
      for (const id of replacedBy(state.live))
        await store.runs.cancel({ id, random: ports.random.next() });
    }
    const made = decide(params, state, { now, ...poll });
    if (made && !made.isIdle) decided.push(made);
    else if (state.backfill && state.brokenAt === null) {
      const change = await backfillStep({
        store,
        state,
        cache: params.cache,
        ids: ports.ids,
      });
      if (change) decided.push({ state, change });
    }
  }
  return decided;
}

function decide(
  { ports, cache }: TickerParams,
  state: ScheduleState,
  seen: PollContext & { readonly now: number },
): Decided | null {
  try {
    if (seen.fires !== false && !state.isJobKnown && state.nextAt !== null)
      throw new Error(`no instance has announced the job "${state.job}"`);
    const made = advance(state, cache.of(state), {
      ...seen,
      newId: () => ports.ids.run(),
      hasCancelled: true,
    });
    return { state, ...made };
  } catch (error) {
    if (state.brokenAt !== null || seen.fires === false) {
      // It does not fire here, but its existing runs go on.
      const change = openGate(state);
      return change && { state, change };
    }
    const broken = describeFailure(error).message;
    return { state, change: breakUp(state, seen.now, broken), broken };
  }
}

/** Returns the written decisions; a refused batch is written one by one. */
async function writeAll(
  params: TickerParams,
  decided: readonly Decided[],
): Promise<readonly Decided[]> {
  const { store, holder } = params;
  if (decided.length === 0) return [];
  try {
    const traced = params.tracing && tracedTicks(params.tracing, decided);
    const changes = traced?.changes ?? decided.map(({ change }) => change);
    const ids = new Set(await store.schedules.write({ holder, changes }));
    traced?.written(ids);
    if (params.refusals.size > 0) for (const id of ids) params.refusals.delete(id);
    countClaims(params, decided, ids);
    return decided.filter(({ change }) => ids.has(change.id));
  } catch (error) {
    if (isUnavailable(error)) throw error;
    const [only, ...others] = decided;
    if (only && others.length === 0) return writeRefused(params, only, error);
    const applied: Decided[] = [];
    for (const each of decided) applied.push(...(await writeAll(params, [each])));
    return applied;
  }
}

/**
 * The next pass retries a failed write, as the database may be the cause. After several failures the schedule is
 * broken; its due ticks stay due until it is repaired.
 */
async function writeRefused(
  { store, holder, refusals, emit }: TickerParams,
  { state, broken: isBroken }: Decided,
  error: unknown,
): Promise<readonly Decided[]> {
  const times = (refusals.get(state.id) ?? 0) + 1;
  refusals.set(state.id, times);
  const failure = describeFailure(error);
  if (times < REFUSALS_MAX || isBroken !== undefined) {
    const what = `schedule ${state.name}`;
    emit("store.failed", { what, error: failure, retryInMs: 0 }, error);
    return [];
  }
  const broken = failure.message;
  const { now } = await store.schedules.states({ names: [] });
  const { cursorAt } = state;
  const { progress, ...rest } = breakUp(state, now, broken);
  const change = { ...rest, progress: { ...progress, cursorAt }, ticks: [] };
  const applied = await store.schedules.write({ holder, changes: [change] });
  return applied.length > 0 ? [{ state, change, broken }] : [];
}

/** Gives each run of a tick the span of that tick; a span ends only if its tick is written. */
function tracedTicks(tracing: Tracing, decided: readonly Decided[]) {
  const spans: { readonly id: number; readonly span: TraceSpan }[] = [];
  const changes = decided.map(({ state, change }) => ({
    ...change,
    runs: change.runs.map((run) => {
      const span = tracing.tick(state.name, run.id);
      spans.push({ id: change.id, span });
      return { ...run, trace: span.traceparent };
    }),
  }));
  const written = (ids: ReadonlySet<number>) => {
    for (const { id, span } of spans) if (ids.has(id)) span.end("fired");
  };
  return { changes, written };
}

/** Counts ticks that this instance wrote, and ticks that another instance wrote first. */
function countClaims(
  { meter, emit, listens }: TickerParams,
  decided: readonly Decided[],
  written: ReadonlySet<number>,
): void {
  for (const { state, change } of decided) {
    if (change.ticks.length === 0) continue;
    const isWon = written.has(change.id);
    meter.tickClaimed(isWon);
    if (!isWon && listens("tick.lost")) emit("tick.lost", { schedule: state.name });
  }
}

function emitDecided({ emit, listens }: TickerParams, decided: Decided, now: number): void {
  const { state, change, broken, isStuck } = decided;
  const schedule = state.name;
  if (broken !== undefined) emit("schedule.broken", { schedule, error: broken });
  if (isStuck === true) {
    const { nextAt, cursorAt } = state;
    emit("schedule.stuck", { schedule, nextAt: isoOrNull(nextAt), cursorAt: isoOrNull(cursorAt) });
  }
  for (const { firstAt, lastAt, count, reason, run } of change.ticks) {
    const outcome = OUTCOME_OF[reason];
    const name = `tick.${outcome}` as const;
    if (!listens(name)) continue;
    const tick = new Date(firstAt).toISOString();
    if (run !== null) emit("tick.fired", { schedule, tick, reason, run, lateMs: now - firstAt });
    else if (outcome !== "fired")
      emit(name, { schedule, tick, reason, count, lastTick: new Date(lastAt).toISOString() });
  }
}

/** It skipped ticks that have a completed run, and has not found another one yet. */
function isBackfillGoingOn({ backfill, runs }: ScheduleChange): boolean {
  return backfill !== undefined && !backfill.isEnded && runs.length === 0;
}

function isoOrNull(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
