// Changes one schedule for every verb: reads it, decides, and writes the decision at the revision that it read. If the
// revision has changed, it starts over.

import type { RunId } from "../runs/rules/run.js";
import { OutcomeUnknownError, ScheduleBusyError } from "../shared/errors.js";
import { delay, type Ports } from "../shared/ports.js";
import type { NewSchedule, ScheduleChange } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { Store } from "../store/store.js";
import { advance, progressOf, type TickContext } from "./advance.js";
import { evaluateAt } from "./rules/monitor.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { type Reason, stretchOf, type TickEntry } from "./rules/tick.js";
import { type CachedSchedule, compile } from "./schedule-cache.js";

/** The change that a decision wants written, and the result for its caller. */
export type Decision<T> =
  | { readonly result: T; readonly change?: ScheduleChange; readonly create?: NewSchedule }
  /** Write this, then decide again. */
  | { readonly first: ScheduleChange };

export type Read = { readonly state: ScheduleState | null; readonly now: number };

/** More conflicts in a row mean that something is wrong. */
const TRIES_MAX = 200;

type Decide<T> = (read: Read) => Decision<T> | Promise<Decision<T>>;

export class ScheduleUpdater {
  readonly #ports: Ports;
  readonly #queues = new Map<string, Promise<void>>();

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** One change at a time in this process: racing calls would mostly repeat their work. */
  async change<T>(store: Store, name: string, decide: Decide<T>): Promise<T> {
    const before = this.#queues.get(name);
    const mine = (before ?? Promise.resolve()).then(() => this.#change(store, name, decide));
    const over = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#queues.set(name, over);
    void over.then(() => {
      if (this.#queues.get(name) === over) this.#queues.delete(name);
    });
    return mine;
  }

  async #change<T>(store: Store, name: string, decide: Decide<T>): Promise<T> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const { now, schedules } = await store.schedules.states({ names: [name] });
      const decision = await decide({ state: schedules[0] ?? null, now });
      if ("first" in decision) {
        await this.#write(store, decision.first);
        continue;
      }
      const { result, change, create } = decision;
      if (create) {
        if (await this.#create(store, create)) return result;
      } else if (!change || (await this.#write(store, change))) return result;
      const { clock, random } = this.#ports;
      await delay(clock, random.next() * Math.min(50, 2 ** tries));
    }
    throw new ScheduleBusyError(name);
  }

  /** If the response is lost, the next read finds the created schedule. */
  async #create(store: Store, schedule: NewSchedule): Promise<boolean> {
    try {
      return (await store.schedules.create(schedule)) !== null;
    } catch (error) {
      if (error instanceof OutcomeUnknownError) return false;
      throw error;
    }
  }

  /** If the response is lost, the run of the change shows whether it was written. */
  async #write(store: Store, change: ScheduleChange): Promise<boolean> {
    try {
      return (await store.schedules.write({ holder: null, changes: [change] })).length > 0;
    } catch (error) {
      if (!(error instanceof OutcomeUnknownError)) throw error;
      const run = madeBy(change);
      return run !== null && (await store.runs.get(run)) !== null;
    }
  }
}

/** A run that exists only if the change was written. */
function madeBy({ runs: [run], checkIn }: ScheduleChange): RunId | null {
  if (run) return run.id;
  return checkIn && !checkIn.isAgain ? checkIn.id : null;
}

// ── settling ticks before a change: the definition that was valid until now fires or records each of them ──

export type SettledTicks = {
  readonly change: ScheduleChange;
  /** False: write this change, and settle again. */
  readonly isSettled: boolean;
};

export function settleTicks(state: ScheduleState, around: TickContext): SettledTicks {
  const nothing: ScheduleChange = {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: [],
    progress: progressOf(state),
  };
  const compiled = compiledOrNull(state);
  if (state.deletedAt !== null || !compiled) return { change: nothing, isSettled: true };
  if (state.pausedAt === null && state.brokenAt === null && state.isJobKnown) {
    const { change, isComplete } = advance(state, compiled, around);
    return {
      change: state.isMonitor ? cutShort(change, state, compiled, around.now) : change,
      isSettled: isComplete,
    };
  }
  const ticks = stretchSince(state, compiled, around.now);
  const cursorAt = ticks.at(-1)?.lastAt ?? state.cursorAt;
  return {
    change: { ...nothing, ticks, progress: { ...nothing.progress, cursorAt } },
    isSettled: true,
  };
}

/**
 * Records ticks of a monitor that still waited for a check-in when the monitor was changed: no check-in is expected for
 * them any more, so the ledger has them as skipped, by a pause of no length.
 */
function cutShort(
  change: ScheduleChange,
  state: ScheduleState,
  { when }: CachedSchedule,
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

/** The first tick after now; a random interval is drawn anew. */
export function nextAfter(
  { definition, when }: CachedSchedule,
  { cursorAt, now, random }: { readonly cursorAt: number; readonly now: number; random: number },
): { readonly nextAt: number | null; readonly isEnded: boolean } {
  const nextAt =
    definition.when.kind === "range"
      ? when.firstAllowed(now + draw(definition, random))
      : evaluateAt(definition, when.next(Math.max(cursorAt, now)));
  return { nextAt, isEnded: nextAt === null };
}

function draw({ when: { everyMs, everyMaxMs } }: ScheduleDefinition, random: number): number {
  const minMs = everyMs ?? 0;
  return minMs + Math.floor(random * ((everyMaxMs ?? minMs) - minMs + 1));
}

/** One row for the ticks of a pause, or for ticks that could not be evaluated. */
function stretchSince(
  state: ScheduleState,
  { definition, when }: CachedSchedule,
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

function compiledOrNull(state: ScheduleState): CachedSchedule | null {
  try {
    return compile(state);
  } catch {
    return null; // An unreadable definition has no ticks to record.
  }
}
