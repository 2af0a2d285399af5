// What becomes of the ticks of one schedule that are due and not recorded yet: the heart of the
// scheduler, as one pure function of the schedule, its live runs and the database's now.
// The store applies the answer under the schedule's revision, in one transaction with its runs.

import { admitTick, type LiveRun } from "./overlap.js";
import type { RunId } from "./run.js";
import type { ScheduleDefinition } from "./schedule.js";
import { type Evidence, oneTick, type Reason, type TickEntry } from "./tick.js";
import type { When } from "./when.js";

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
  if (lateMs <= definition.graceMs) pass.fire(tick, "on_time");
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
  const { now, when, definition, cursorAt } = situation;
  if (untilMs <= cursorAt) return { cursorAt, isComplete: true };
  const { run, limit, withinMs } = definition.missed;
  const wanted = run === "skip" ? 0 : run === "latest" ? 1 : limit;
  const older = when.survey({ afterMs: cursorAt, untilMs, newest: wanted + 1 });
  if (older.firstMs === null || older.lastMs === null)
    return {
      cursorAt: older.isComplete ? cursorAt : older.reachedMs,
      isComplete: older.isComplete,
    };
  const restReason: Reason = run === "all" ? "over_limit" : "nobody";
  const restEvidence = run === "all" ? { limit } : pass.absence;
  const stretch = (lastAt: number, count: number) =>
    pass.record({
      firstAt: older.firstMs as number,
      lastAt,
      count,
      reason: restReason,
      run: null,
      evidence: restEvidence,
    });
  if (!older.isComplete) {
    // More is due than can be counted in one pass. The newest of what was seen may be among the ones
    // to fire, so the books close before them.
    const [lastAt = older.firstMs] = older.newest;
    stretch(lastAt, older.count - Math.max(0, older.newest.length - 1));
    return { cursorAt: lastAt, isComplete: false };
  }
  // With one on time already there is nothing to make up for by the latest.
  const hasOnTime = run === "latest" && isDue(when.next(untilMs), now);
  const candidates = hasOnTime || wanted === 0 ? [] : older.newest.slice(-wanted);
  const restCount = older.count - candidates.length;
  if (restCount > 0) {
    const before = older.newest[older.newest.length - candidates.length - 1];
    stretch(before ?? older.lastMs, restCount);
  }
  const isTooOld = (at: number) => withinMs !== null && now - at > withinMs;
  const tooOld = candidates.filter(isTooOld);
  const [firstAt] = tooOld;
  if (firstAt !== undefined && withinMs !== null) {
    const lastAt = tooOld.at(-1) ?? firstAt;
    const evidence = { withinMs };
    pass.record({ firstAt, lastAt, count: tooOld.length, reason: "too_old", run: null, evidence });
  }
  for (const at of candidates.slice(tooOld.length)) {
    pass.fire(at, run === "all" ? "catch_up" : "late");
  }
  return { cursorAt: older.lastMs, isComplete: true };
}

function isDue(tick: number | null, now: number): boolean {
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

  /** Makes the run of a tick, unless a failure before it or a live run stands in its way. */
  fire(at: number, reason: "on_time" | "late" | "catch_up"): void {
    const { hold, definition, newId, isStuck, nextAt, lastPolledAt } = this.#situation;
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
