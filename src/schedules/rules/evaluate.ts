// What becomes of the ticks of one schedule that are due and not recorded yet: the heart of the
// scheduler, as one pure function of the schedule, its live runs and the database's now.
// The store applies the answer under the schedule's revision, in one transaction with its runs.

import {
  type Pause,
  pauseAgainst,
  pauseEvidence,
  type Span,
  spansOf,
} from "../../operations/rules/pause.js";
import type { RunId } from "../../runs/rules/run.js";
import { admitTick, type LiveRun } from "./overlap.js";
import type { ScheduleDefinition } from "./schedule.js";
import { type Evidence, oneTick, type Reason, type TickEntry } from "./tick.js";
import type { Survey, When } from "./when.js";

export type Situation = {
  readonly now: number;
  readonly definition: ScheduleDefinition;
  readonly when: When;
  /** Every tick up to here is in the ledger. */
  readonly cursorAt: number;
  /** The next tick as it is stored; it decides for intervals that are drawn, else it is a hint. */
  readonly nextAt: number | null;
  /** Ticks before this are held back, after this run failed. */
  readonly hold: { readonly until: number; readonly run: RunId | null } | null;
  readonly live: readonly LiveRun[];
  /** Pauses of everything that ticks may fall into; one that is on lets nothing fire. */
  readonly pauses?: readonly Pause[];
  /** Set if the schedule should have been evaluated long ago: somebody was there and did not. */
  readonly isStuck: boolean;
  readonly lastPolledAt: number | null;
  readonly newId: () => RunId;
};

export type NewTickRun = {
  readonly id: RunId;
  readonly nominalAt: number;
  readonly isGated: boolean;
};

export type Evaluation = {
  readonly ticks: readonly TickEntry[];
  readonly runs: readonly NewTickRun[];
  readonly cancels: readonly RunId[];
  readonly cursorAt: number;
  readonly nextAt: number | null;
  /** No tick is left. */
  readonly isEnded: boolean;
  /** False: there was more to record than one pass should; the next one goes on. */
  readonly isComplete: boolean;
  /** The live runs afterwards, the new ones last. */
  readonly live: readonly LiveRun[];
};

/** Ticks on time that one pass judges, one by one; what is left is for the next pass. */
const ON_TIME_MAX = 1_000;

export function evaluate(situation: Situation): Evaluation {
  const pass = new Pass(situation);
  if (situation.definition.when.kind === "range") return evaluateDrawn(situation, pass);
  const { now, when, definition, cursorAt } = situation;
  const graceAt = now - definition.graceMs;
  const older = recordOlder(situation, pass, graceAt - 1);
  if (!older.isComplete)
    return pass.end({ cursorAt: older.cursorAt, nextAt: now, isComplete: false });
  let cursor = Math.max(cursorAt, older.cursorAt);
  let tick = when.next(Math.max(cursor, graceAt - 1));
  for (let judged = 0; tick !== null && tick <= now && judged < ON_TIME_MAX; judged += 1) {
    pass.fire(tick, "on_time");
    cursor = tick;
    tick = when.next(tick);
  }
  const isComplete = tick === null || tick > now;
  return pass.end({ cursorAt: cursor, nextAt: tick, isComplete });
}

/** An interval that is drawn has one tick outstanding at most: the stored one. */
function evaluateDrawn(situation: Situation, pass: Pass): Evaluation {
  const { now, when, definition, cursorAt, nextAt } = situation;
  const tick = nextAt === null ? null : when.firstAllowed(Math.max(nextAt, cursorAt + 1));
  if (tick === null || tick > now) return pass.end({ cursorAt, nextAt: tick, isComplete: true });
  const { run, withinMs } = definition.missed;
  const lateMs = now - tick;
  if (pass.isPausedAt(tick)) pass.skipPaused(tick);
  else if (lateMs <= definition.graceMs) pass.fire(tick, "on_time");
  else if (run === "skip") pass.record(oneTick(tick, "nobody", { evidence: pass.absence }));
  else if (withinMs !== null && lateMs > withinMs)
    pass.record(oneTick(tick, "too_old", { evidence: { withinMs } }));
  else pass.fire(tick, run === "all" ? "catch_up" : "late");
  // A fallback, until the end of the run draws the next one: from an old tick it would be due at once.
  const fallbackAt = Math.max(now, tick) + (definition.when.everyMaxMs ?? 0);
  // Past the last allowed time it still stands: a draw before that time may take its place.
  const nextTick = when.firstAllowed(fallbackAt) ?? fallbackAt;
  return pass.end({ cursorAt: tick, nextAt: nextTick, isComplete: true });
}

/** Records the ticks that are past the grace, and fires those that the policy makes up for. */
function recordOlder(
  situation: Situation,
  pass: Pass,
  untilMs: number,
): { readonly cursorAt: number; readonly isComplete: boolean } {
  const { now, when, definition, cursorAt, pauses = [] } = situation;
  if (untilMs <= cursorAt) return { cursorAt, isComplete: true };
  const { run, limit } = definition.missed;
  const wanted = run === "skip" ? 0 : run === "latest" ? 1 : limit;
  const stretches: Stretch[] = [];
  for (const span of spansOf(pauses, { afterMs: cursorAt, untilMs })) {
    const budget = span.pause ? { budget: Number.POSITIVE_INFINITY } : {};
    const found = when.survey({ ...span, newest: span.pause ? 0 : wanted + 1, ...budget });
    stretches.push({ span, found });
    if (!found.isComplete) break;
  }
  // With one on time already there is nothing to make up for by the latest.
  const next = when.next(untilMs);
  const hasOnTime = run === "latest" && isDue(next, now) && !pass.isPausedAt(next);
  const isCut = stretches.at(-1)?.found.isComplete === false;
  let left = hasOnTime || isCut ? 0 : wanted;
  // The newest first: what is left of the limit is for the older ones.
  const made = stretches.toReversed().map(({ span, found }) => {
    const count = span.pause ? 0 : Math.min(left, found.count);
    left -= count;
    return count;
  });
  let reached = cursorAt;
  for (const [at, stretch] of stretches.entries()) {
    reached =
      recordStretch(situation, pass, stretch, made[stretches.length - 1 - at] ?? 0) ?? reached;
  }
  return { cursorAt: reached, isComplete: !isCut };
}

type Stretch = { readonly span: Span; readonly found: Survey };

/** Records one stretch of older ticks and makes up for its newest `madeUp`; answers how far it is done. */
function recordStretch(
  { now, definition }: Situation,
  pass: Pass,
  { span, found }: Stretch,
  madeUp: number,
): number | null {
  const { firstMs, lastMs, count, newest } = found;
  if (firstMs === null || lastMs === null) return found.isComplete ? null : found.reachedMs;
  const record = (lastAt: number, ticks: number, reason: Reason, evidence: Evidence) =>
    pass.record({ firstAt: firstMs, lastAt, count: ticks, reason, run: null, evidence });
  if (span.pause) {
    record(lastMs, count, "paused", pauseEvidence(span.pause));
    return lastMs;
  }
  const { run, limit, withinMs } = definition.missed;
  const restReason: Reason = run === "all" ? "over_limit" : "nobody";
  const restEvidence = run === "all" ? { limit } : pass.absence;
  if (!found.isComplete) {
    // More is due than can be counted in one pass. The newest of what was seen may be among the ones
    // to fire, so the books close before them.
    const [lastAt = firstMs] = newest;
    record(lastAt, count - Math.max(0, newest.length - 1), restReason, restEvidence);
    return lastAt;
  }
  const candidates = madeUp === 0 ? [] : newest.slice(-madeUp);
  const restCount = count - candidates.length;
  if (restCount > 0) {
    const before = newest[newest.length - candidates.length - 1];
    record(before ?? lastMs, restCount, restReason, restEvidence);
  }
  const tooOld = candidates.filter((at) => withinMs !== null && now - at > withinMs);
  const [firstAt] = tooOld;
  if (firstAt !== undefined && withinMs !== null) {
    const lastAt = tooOld.at(-1) ?? firstAt;
    const evidence = { withinMs };
    pass.record({ firstAt, lastAt, count: tooOld.length, reason: "too_old", run: null, evidence });
  }
  for (const at of candidates.slice(tooOld.length)) {
    pass.fire(at, run === "all" ? "catch_up" : "late");
  }
  return lastMs;
}

function isDue(tick: number | null, now: number): tick is number {
  return tick !== null && tick <= now;
}

/** What one evaluation gathers. */
class Pass {
  readonly absence: Evidence;
  readonly #situation: Situation;
  readonly #ticks: TickEntry[] = [];
  readonly #runs: NewTickRun[] = [];
  readonly #cancels = new Set<RunId>();
  readonly #caughtUp = new Set<RunId>();
  readonly #live: LiveRun[];

  constructor(situation: Situation) {
    this.#situation = situation;
    this.#live = [...situation.live];
    this.absence = { lastPolledAt: situation.lastPolledAt };
  }

  record(entry: TickEntry): void {
    this.#ticks.push(entry);
  }

  isPausedAt(at: number): boolean {
    return pauseAgainst(this.#situation.pauses ?? [], at) !== null;
  }

  /** Records one tick that a pause of everything keeps from firing; false if none does. */
  skipPaused(at: number): boolean {
    const pause = pauseAgainst(this.#situation.pauses ?? [], at);
    if (pause) this.record(oneTick(at, "paused", { evidence: pauseEvidence(pause) }));
    return pause !== null;
  }

  /** Makes the run of a tick, unless a failure before it or a live run stands in its way. */
  fire(at: number, reason: "on_time" | "late" | "catch_up"): void {
    const { hold, definition, newId, isStuck, nextAt, lastPolledAt } = this.#situation;
    if (this.skipPaused(at)) return;
    if (hold && at < hold.until) {
      const run = hold.run === null ? {} : { run: hold.run };
      this.record(oneTick(at, "after_failure", { evidence: { ...run, until: hold.until } }));
      return;
    }
    const isCatchUp = reason === "catch_up";
    const spared = this.#caughtUp;
    const admission = admitTick(definition.overlap, this.#live, { isCatchUp, spared });
    if (!admission.isAdmitted) {
      this.record(oneTick(at, admission.reason, { evidence: { run: admission.run } }));
      return;
    }
    const { isGated, cancels } = admission;
    const id = newId();
    if (isCatchUp) this.#caughtUp.add(id);
    for (const each of cancels) this.#cancels.add(each);
    this.#runs.push({ id, nominalAt: at, isGated });
    this.#live.push({ id, mode: "scheduled", nominalAt: at, isGated });
    const isReset = isStuck && reason !== "on_time";
    const known: Evidence = {
      ...(isReset ? { nextAt, lastPolledAt } : {}),
      ...(reason === "late" && !isReset ? { lastPolledAt } : {}),
      ...(cancels.length > 0 ? { replaced: cancels } : {}),
    };
    const evidence = Object.keys(known).length > 0 ? { evidence: known } : {};
    this.record(oneTick(at, isReset ? "stuck_reset" : reason, { run: id, ...evidence }));
  }

  end(params: {
    readonly cursorAt: number;
    readonly nextAt: number | null;
    readonly isComplete: boolean;
  }): Evaluation {
    return {
      ...params,
      ticks: this.#ticks,
      runs: this.#runs,
      cancels: [...this.#cancels],
      isEnded: params.nextAt === null,
      live: this.#live,
    };
  }
}
