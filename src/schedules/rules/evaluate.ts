// Decides the outcome of every tick that is due and not recorded: a pure function of the schedule, its live runs and the
// database's now. The store applies the decision at the schedule's revision, in one transaction with the new runs.

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
  /** The stored next tick: for random intervals it decides, otherwise it is a hint. */
  readonly nextAt: number | null;
  /** Ticks before this are held back, after this run failed. */
  readonly hold: { readonly until: number; readonly run: RunId | null } | null;
  readonly live: readonly LiveRun[];
  /** Pauses of everything that may cover ticks; while one lasts, nothing fires. */
  readonly pauses?: readonly Pause[];
  /** The schedule is long overdue although an instance has polled. */
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
  /** False: more ticks are due than one pass records; the next pass continues. */
  readonly isComplete: boolean;
  /** The live runs afterwards, the new ones last. */
  readonly live: readonly LiveRun[];
};

/** Ticks on time that one pass evaluates, one by one; the next pass takes the rest. */
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

/** A random interval has at most one outstanding tick: the stored one. */
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
  // A fallback until the end of the run draws the next tick. It counts from now: counted from an old tick it would be due at once.
  const fallbackAt = Math.max(now, tick) + (definition.when.everyMaxMs ?? 0);
  // It stays even past the last allowed time: an earlier draw may still replace it.
  const nextTick = when.firstAllowed(fallbackAt) ?? fallbackAt;
  return pass.end({ cursorAt: tick, nextAt: nextTick, isComplete: true });
}

/** Records ticks past their grace, and fires those that the missed policy runs late. */
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
  // "latest" runs nothing late if a tick is on time.
  const next = when.next(untilMs);
  const hasOnTime = run === "latest" && isDue(next, now) && !pass.isPausedAt(next);
  const isCut = stretches.at(-1)?.found.isComplete === false;
  let left = hasOnTime || isCut ? 0 : wanted;
  // The newest ticks use up the limit first.
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

/** Records one stretch of older ticks and fires its newest `madeUp` late; returns the last settled tick. */
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
    // More ticks are due than one pass can count. The newest counted ones may still have to fire: this pass
    // records ticks up to the first of `newest`, and the next pass decides the rest.
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

/** Collects the ticks, runs and cancellations of one evaluation. */
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

  /** Records the tick as skipped if a pause of everything covers it; returns false if none does. */
  skipPaused(at: number): boolean {
    const pause = pauseAgainst(this.#situation.pauses ?? [], at);
    if (pause) this.record(oneTick(at, "paused", { evidence: pauseEvidence(pause) }));
    return pause !== null;
  }

  /** Makes the run of a tick, unless a pause, an earlier failure or a live run prevents it. */
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
