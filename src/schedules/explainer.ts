// Gathers the facts for `schedules.explain` from the database: ledger, versions, runs, attempts. The files of explain/ put
// them into words. Reads only.

import type { RunId } from "../runs/rules/run.js";
import type { ScheduleVersion } from "../store/schedules/schedules.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { TickRecord } from "../store/schedules/ticks.js";
import type { Store } from "../store/store.js";
import {
  explainDue,
  explainForgotten,
  explainNoTick,
  explainOpen,
  explainPlanned,
  explainRecorded,
  explainUnknowable,
  type Words,
} from "./explain/explain.js";
import type {
  BackfillFacts,
  DrawnFacts,
  NoTickFacts,
  RuleFacts,
  StandingFacts,
  TickFacts,
} from "./explain/facts.js";
import type { RunFacts } from "./explain/run.js";
import type { Outcome, Reason } from "./rules/tick.js";
import type { When } from "./rules/when.js";
import { type CachedSchedule, compile } from "./schedule-cache.js";

export type Explanation = {
  readonly schedule: string;
  readonly at: Date;
  /** The tick at the instant; null if there is none. */
  readonly tick: Date | null;
  readonly outcome: Outcome | "planned" | "due" | "no_tick" | "unknown";
  readonly reason: Reason | null;
  /** The answer in one sentence. */
  readonly text: string;
  /** The evidence, line by line. */
  readonly evidence: readonly string[];
  readonly runId: string | null;
  /** For an instant that is not a tick: the neighbouring ticks, if they are known. */
  readonly before: Date | null;
  readonly after: Date | null;
};

type ExplainParams = {
  readonly store: Store;
  readonly state: ScheduleState;
  readonly now: number;
  /** Null: the last tick. */
  readonly atMs: number | null;
};

export async function explainAt({ store, state, now, atMs }: ExplainParams): Promise<Explanation> {
  const versions = await store.schedules.versions({ name: state.name });
  const explainer = new Explainer({ store, state, now, versions });
  return explainer.explain(atMs ?? (await explainer.lastTick()) ?? now);
}

/** A definition and the time in which it was in force: after `fromAt`, up to and including `toAt`. */
type Era = {
  readonly version: ScheduleVersion;
  /** Null if it cannot be read. */
  readonly compiled: CachedSchedule | null;
  readonly fromAt: number;
  readonly toAt: number;
  readonly isCurrent: boolean;
  /** The schedule was deleted in this time. */
  readonly isAbsent: boolean;
};

const LIVE_SHOWN = 5;
/** How many ticks of a random interval are read to find the last fired one. */
const DRAWN_BACK = 50;
const PAGE = 100;
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
/** The search for the tick before an instant widens in these steps. */
const BACK_MS = [DAY_MS, 40 * DAY_MS, 400 * DAY_MS, 10_000 * DAY_MS];

class Explainer {
  readonly #store: Store;
  readonly #state: ScheduleState;
  readonly #now: number;
  readonly #eras: readonly Era[];
  #standing: StandingFacts | null = null;

  constructor(
    params: Omit<ExplainParams, "atMs"> & { readonly versions: readonly ScheduleVersion[] },
  ) {
    this.#store = params.store;
    this.#state = params.state;
    this.#now = params.now;
    this.#eras = params.versions.map((version, at, all) => eraOf(version, all[at + 1]));
  }

  async explain(at: number): Promise<Explanation> {
    const tick = (await this.#asTick(at)) ?? (await this.#withinSecond(at));
    return tick ?? (await this.#asNoTick(at));
  }

  /** The newest tick up to now, recorded or not; null if there was none yet. */
  lastTick(): Promise<number | null> {
    return this.#before(this.#now + 1);
  }

  /** Lists show a tick without its milliseconds: a whole second stands for the first tick within it. */
  async #withinSecond(at: number): Promise<Explanation | null> {
    if (at % SECOND_MS !== 0) return null;
    const toAt = at + SECOND_MS - 1;
    const rows = await this.#ticks({ fromAt: at, toAt, limit: PAGE });
    const recorded = rows.flatMap(({ firstAt, lastAt }) => [firstAt, lastAt]);
    const candidates = [...recorded, await this.#after(at)]
      .filter((each) => each !== null && each >= at && each <= toAt)
      .toSorted((one, other) => Number(one) - Number(other));
    const [first] = candidates;
    const found = first === undefined || first === null ? null : await this.#asTick(first);
    return found && { ...found, at: new Date(at) };
  }

  /** Null if the instant is not a tick, as far as can be known. */
  async #asTick(at: number): Promise<Explanation | null> {
    const row = await this.#rowOf(at);
    if (row) return this.#recorded(at, row);
    const state = this.#state;
    const isNext = at === state.nextAt && state.nextAt > state.cursorAt && !state.isEnded;
    const era = isNext ? this.#eras.at(-1) : this.#eraAt(at);
    if (!era?.compiled || era.isAbsent) return null;
    const isDrawn = era.compiled.definition.when.kind === "range";
    const isTick = isDrawn ? isNext : isTickOf(era.compiled.when, at);
    if (!isTick) return null;
    const facts = await this.#tickFacts(at, era);
    const explanation = (words: Words) => this.#explanation(at, words, { tick: at });
    if (!era.isCurrent || at <= state.cursorAt) return explanation(explainForgotten(facts));
    if (at > this.#now) return explanation(explainPlanned(facts));
    const unrecorded = { ...facts, newest: await this.#newest() };
    if (state.pausedAt !== null) return explanation(explainOpen(unrecorded, "paused"));
    if (state.brokenAt !== null) return explanation(explainOpen(unrecorded, "broken"));
    const { allPaused } = facts.standing;
    if (allPaused && at >= allPaused.at) return explanation(explainOpen(unrecorded, "paused"));
    return explanation(explainDue(unrecorded));
  }

  async #recorded(at: number, row: TickRecord): Promise<Explanation> {
    const era = this.#eras.find(({ version }) => version.version === row.version);
    const facts = await this.#tickFacts(at, era ?? null);
    const run = row.run === null ? null : await this.#run(row.run);
    const inTheWay = row.evidence?.run;
    const obstacle = inTheWay === undefined ? null : await this.#run(inTheWay);
    const replacedBy = run ? await this.#replacedBy(at, run) : null;
    const words = explainRecorded({ ...facts, ledger: row, run, obstacle, replacedBy });
    return this.#explanation(at, words, { tick: at, runId: row.run });
  }

  async #asNoTick(at: number): Promise<Explanation> {
    const era = this.#eraAt(at);
    const { before, after } = await this.#beside(at);
    const facts: NoTickFacts = {
      ...this.#instant(at),
      rule: era && !era.isAbsent ? ruleOf(era) : null,
      isInPattern: era?.compiled?.when.matchesPattern(at) ?? false,
      excludedBy: era?.compiled?.when.ruleAgainst(at) ?? null,
      before: before?.text ?? null,
      after: after?.text ?? null,
      others: this.#eras
        .filter((each) => each !== era && !each.isAbsent && isNear(each, at))
        .filter(({ compiled }) => compiled !== null && isTickOf(compiled.when, at))
        .map(({ version }) => version),
      created:
        this.#eras.find(({ fromAt, version }) => fromAt >= at && version.kind !== "deleted")
          ?.version ?? null,
      deleted: era?.isAbsent ? era.version : null,
      standing: await this.#stands(),
    };
    const isUnreadable = facts.rule !== null && facts.rule.definition === null;
    const isUnknowable = isUnreadable || (era !== null && this.#mayBeDrawn(at, era));
    const words = isUnknowable ? explainUnknowable(facts) : explainNoTick(facts);
    return this.#explanation(at, words, {
      before: before?.tick ?? null,
      after: after?.tick ?? null,
    });
  }

  /** Only the next tick of a random interval is known, and only after the previous run has ended. */
  #mayBeDrawn(at: number, era: Era): boolean {
    const { isEnded, pausedAt, brokenAt } = this.#state;
    const isDrawn = era.compiled?.definition.when.kind === "range";
    const isOpen = era.isCurrent && !era.isAbsent && !isEnded;
    const isAllPaused = this.#state.pauses.some(({ until }) => until === null);
    const isFiring = pausedAt === null && brokenAt === null && !isAllPaused;
    return isDrawn && isOpen && isFiring && at > this.#now && isAllowed(era, at);
  }

  #explanation(
    at: number,
    words: Words,
    more: {
      readonly tick?: number;
      readonly runId?: string | null;
      readonly before?: Date | null;
      readonly after?: Date | null;
    },
  ): Explanation {
    const { tick, runId = null, before = null, after = null } = more;
    return {
      schedule: this.#state.name,
      at: new Date(at),
      tick: tick === undefined ? null : new Date(tick),
      outcome: words.outcome,
      reason: words.reason,
      text: words.text,
      evidence: words.evidence,
      runId,
      before,
      after,
    };
  }

  #instant(at: number) {
    const { name, job } = this.#state;
    return { schedule: name, job, at, now: this.#now };
  }

  async #tickFacts(at: number, era: Era | null): Promise<TickFacts> {
    return {
      ...this.#instant(at),
      rule: era ? ruleOf(era) : this.#unknownRule(at),
      drawn: era ? await this.#drawn(at, era) : null,
      standing: await this.#stands(),
      backfills: await this.#backfills(at),
    };
  }

  /** For a row without its version. Versions are never pruned, but an explanation must not fail. */
  #unknownRule(at: number): RuleFacts {
    const version = { version: 0, kind: "edited", at, by: null } as const;
    return { version, definition: null, anchorAt: at, isCurrent: false };
  }

  async #stands(): Promise<StandingFacts> {
    this.#standing ??= await this.#readStanding();
    return this.#standing;
  }

  async #readStanding(): Promise<StandingFacts> {
    const state = this.#state;
    const { pausedAt, pausedBy, pauseNote, brokenAt, brokenError, holdUntil, holdRun } = state;
    const live: RunFacts[] = [];
    for (const { id } of state.live.slice(0, LIVE_SHOWN)) {
      const run = await this.#run(id);
      if (run) live.push(run);
    }
    return {
      paused: pausedAt === null ? null : { at: pausedAt, by: pausedBy, note: pauseNote },
      allPaused: state.pauses.find(({ until }) => until === null) ?? null,
      broken: brokenAt === null ? null : { at: brokenAt, error: brokenError },
      hold: holdUntil === null ? null : { until: holdUntil, run: holdRun },
      isEnded: state.isEnded,
      isJobKnown: state.isJobKnown,
      live,
    };
  }

  async #run(id: RunId): Promise<RunFacts | null> {
    const [record, attempts] = await Promise.all([
      this.#store.runs.get(id),
      this.#store.runs.attempts(id),
    ]);
    if (!record) return null;
    const place = this.#state.live.findIndex((each) => each.id === id);
    const waitsFor = this.#state.live[place]?.isGated
      ? this.#state.live.slice(0, place).map((each) => each.id)
      : [];
    return {
      ...record,
      error: messageOf(record.error),
      attempts: attempts.map((each) => ({ ...each, error: messageOf(each.error) })),
      waitsFor,
    };
  }

  /** The run whose end drew this tick: the run of the newest fired tick before it. */
  async #drawn(at: number, era: Era): Promise<DrawnFacts | null> {
    if (era.compiled?.definition.when.kind !== "range") return null;
    const rows = await this.#ticks({ toAt: at - 1, limit: DRAWN_BACK });
    const id = rows.find(({ run }) => run !== null)?.run;
    const run = id === undefined || id === null ? null : await this.#store.runs.get(id);
    if (!run) return null;
    return { run: run.id, finishedAt: run.finishedAt, hasFailed: run.status === "failed" };
  }

  /** The later tick whose run replaced this cancelled one. */
  async #replacedBy(at: number, { id, status, finishedAt }: RunFacts): Promise<number | null> {
    if (status !== "cancelled" || finishedAt === null) return null;
    const rows = await this.#ticks({ fromAt: at + 1, toAt: finishedAt, limit: PAGE });
    return rows.find(({ evidence }) => evidence?.replaced?.includes(id))?.firstAt ?? null;
  }

  async #backfills(at: number): Promise<BackfillFacts[]> {
    const all = await this.#store.schedules.backfills({ name: this.#state.name });
    return all
      .filter(({ fromAt, toAt }) => fromAt <= at && at <= toAt)
      .filter(({ isCancelled, cursorAt }) => !isCancelled || cursorAt >= at)
      .map(({ createdBy, createdAt, cursorAt }) => ({
        by: createdBy,
        createdAt,
        isPast: cursorAt >= at,
      }));
  }

  #ticks(filter: { readonly fromAt?: number; readonly toAt?: number; readonly limit: number }) {
    return this.#store.schedules.ticks({ schedule: this.#state.name, ...filter });
  }

  async #newest() {
    const [row] = await this.#ticks({ limit: 1 });
    return row ? { ...row, at: row.lastAt } : null;
  }

  /** The row of this tick. The ledger decides, even if newer time zone rules would not compute this tick. */
  async #rowOf(at: number): Promise<TickRecord | null> {
    const rows = await this.#ticks({ fromAt: at, toAt: at, limit: 2 });
    const exact = rows.find(({ firstAt, lastAt }) => firstAt === at || lastAt === at);
    return exact ?? rows.find((row) => isTickOf(this.#whenOf(row), at)) ?? null;
  }

  #whenOf(row: TickRecord): When | null {
    const era = this.#eras.find(({ version }) => version.version === row.version);
    return era?.compiled?.when ?? null;
  }

  #eraAt(at: number): Era | null {
    return this.#eras.findLast(({ fromAt }) => fromAt < at) ?? null;
  }

  async #beside(at: number) {
    const before = await this.#before(at);
    const after = await this.#after(at);
    const explainTick = (tick: number | null) => (tick === null ? null : this.#asTick(tick));
    return { before: await explainTick(before), after: await explainTick(after) };
  }

  async #before(at: number): Promise<number | null> {
    const [row] = await this.#ticks({ toAt: at - 1, limit: 1 });
    const known = row ? lastBefore(row, at, this.#whenOf(row)) : null;
    const { nextAt, cursorAt } = this.#state;
    // Ticks without a row: not recorded yet, or recorded before the retention, so that the row is gone.
    for (const era of this.#eras.toReversed()) {
      const fromAt = Math.max(era.fromAt, known === null ? 0 : Math.min(cursorAt, known));
      if (era.isAbsent || !era.compiled || fromAt >= at - 1) continue;
      const isDrawn = era.compiled.definition.when.kind === "range";
      const drawn = isDrawn && era.isCurrent && nextAt !== null && nextAt < at ? nextAt : null;
      const untilAt = Math.min(at - 1, era.toAt);
      const found = isDrawn ? drawn : newestIn(era.compiled.when, { fromAt, untilAt });
      if (found !== null) return Math.max(found, known ?? found);
    }
    return known;
  }

  async #after(at: number): Promise<number | null> {
    for (const era of this.#eras) {
      if (era.toAt <= at || era.isAbsent || !era.compiled) continue;
      const fromAt = Math.max(era.fromAt, at);
      const found =
        era.compiled.definition.when.kind === "range"
          ? await this.#drawnAfter(fromAt, era)
          : era.compiled.when.next(fromAt);
      if (found !== null && found <= era.toAt) return found;
    }
    return null;
  }

  /** The first row after the instant. The ledger is read newest first, so the search uses growing windows. */
  async #drawnAfter(fromAt: number, era: Era): Promise<number | null> {
    const { nextAt, isEnded } = this.#state;
    const endAt = Math.min(era.toAt, this.#now);
    let spanMs = era.compiled?.definition.when.everyMs ?? DAY_MS;
    for (let toAt = fromAt; toAt < endAt; spanMs *= 2) {
      toAt = Math.min(endAt, fromAt + spanMs);
      const rows = await this.#ticks({ fromAt: fromAt + 1, toAt, limit: PAGE });
      const oldest = rows.at(-1);
      if (oldest) return oldest.firstAt;
    }
    const isNext = era.isCurrent && !isEnded && nextAt !== null && nextAt > fromAt;
    return isNext ? nextAt : null;
  }
}

function eraOf(version: ScheduleVersion, next: ScheduleVersion | undefined): Era {
  let compiled: CachedSchedule | null | undefined;
  return {
    version,
    // Parsed on first use: of many versions only those near the instant are needed.
    get compiled() {
      if (compiled === undefined) compiled = compiledOrNull(version);
      return compiled;
    },
    fromAt: version.at,
    toAt: next?.at ?? Number.POSITIVE_INFINITY,
    isCurrent: next === undefined,
    isAbsent: version.kind === "deleted",
  };
}

function ruleOf({ version, compiled, isCurrent }: Era): RuleFacts {
  const definition = compiled?.definition ?? null;
  return { version, definition, anchorAt: version.anchorAt, isCurrent };
}

function isTickOf(when: When | null, at: number): boolean {
  return when?.matchesPattern(at) === true && when.ruleAgainst(at) === null;
}

function isAllowed({ compiled }: Era, at: number): boolean {
  return compiled !== null && compiled.when.ruleAgainst(at) === null;
}

/** Whether the definition was in force within a day of the instant; others would only confuse. */
function isNear({ fromAt, toAt, isCurrent }: Era, at: number): boolean {
  return isCurrent || (fromAt >= at && fromAt - at <= DAY_MS) || (toAt < at && at - toAt <= DAY_MS);
}

function lastBefore(row: TickRecord, at: number, when: When | null): number {
  if (row.lastAt < at) return row.lastAt;
  const found = when ? newestIn(when, { fromAt: row.firstAt - 1, untilAt: at - 1 }) : null;
  return found ?? row.firstAt;
}

/** The newest tick in a stretch of time, searched from its end. */
function newestIn(
  when: When,
  { fromAt, untilAt }: { readonly fromAt: number; readonly untilAt: number },
): number | null {
  for (const backMs of BACK_MS) {
    const afterMs = Math.max(fromAt, untilAt - backMs);
    const { lastMs } = when.survey({ afterMs, untilMs: untilAt, newest: 1 });
    if (lastMs !== null) return lastMs;
    if (afterMs === fromAt) return null;
  }
  return null;
}

function compiledOrNull(version: ScheduleVersion): CachedSchedule | null {
  try {
    return compile(version);
  } catch {
    return null;
  }
}

/** Errors are stored as JSON with a message; anything else is shown as it is. */
function messageOf(error: string | null): string | null {
  if (error === null) return null;
  try {
    const { message } = JSON.parse(error) as { readonly message?: unknown };
    return typeof message === "string" ? message : error;
  } catch {
    return error;
  }
}
