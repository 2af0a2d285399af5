// Writes the schedules that this process declares to the database: once, before the first one is fired or triggered, and
// whenever a caller applies them.

import type { Actor } from "../operations/rules/audit.js";
import { ConfigurationError, DuplicateScheduleError, type Problem } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { requireOptions } from "../shared/options.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { LazyStore } from "../store/lazy-store.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { isActive, progressOf } from "./advance.js";
import { catchUpWithCalendars } from "./calendars.js";
import { isNewerTzdata } from "./cron/zone.js";
import {
  type Declaration,
  emitVerdict,
  findVanished,
  isUpToDate,
  isVanished,
  judge,
  type PlannedChange,
  pauseVanished,
  reconcile,
  vanishedWords,
  wantedOf,
} from "./declared.js";
import { anchorAfter, type ChangeAuthor, gridStart } from "./edit.js";
import { calendarsOf } from "./options.js";
import { lateWarning, previewOf } from "./preview.js";
import { evaluateAt } from "./rules/monitor.js";
import { readSchedule, SCHEDULE_MEMBERS, type ScheduleOptions } from "./rules/schedule.js";
import { compile, tzdataOf } from "./schedule-cache.js";
import { type ScheduleUpdater, settleTicks } from "./updater.js";

/** The jobs that schedules may name. */
export type JobDirectory = {
  /** Checks and encodes an input as an enqueue of that job would. */
  encode(job: string, input: unknown): Promise<string>;
  /** Makes the job known to the database; throws if no instance has announced it. */
  ensure(name: string): Promise<void>;
};

/** The role of this instance, and the signal that schedules have changed. */
export type SchedulerRole = {
  readonly isStarted: boolean;
  /** Whether this instance fires due schedules. */
  readonly isScheduler: boolean;
  /** Something may be due now that was not before. */
  changed(): Promise<void>;
};

export type ReconcilerParams = {
  readonly declarations: Declarations;
  readonly lazyStore: LazyStore;
  /** The code at hand wins over definitions that newer code stored. */
  readonly isDevelopment: boolean;
  readonly running: SchedulerRole;
};

export class Reconciler {
  readonly #params: ReconcilerParams;
  #done: Promise<void> | null = null;

  constructor(params: ReconcilerParams) {
    this.#params = params;
  }

  /**
   * Reconciles once in a process; the next call repeats a failed try. An instance that was started without a
   * scheduler declares nothing, unless a bounded pass makes it fire schedules.
   */
  async once({ isFiring = false } = {}): Promise<void> {
    const { isStarted, isScheduler } = this.#params.running;
    if (isStarted && !isScheduler && !isFiring) return;
    this.#done ??= this.#reconcile();
    this.#done.catch(() => {
      this.#done = null;
    });
    await this.#done;
  }

  async #reconcile(): Promise<void> {
    const { declarations, lazyStore, isDevelopment, running } = this.#params;
    if (declarations.names.length === 0 && !running.isScheduler) return;
    const store = await lazyStore.for("schedules");
    await declarations.reconcileAll(store, { isForced: isDevelopment });
    if (!running.isScheduler) return;
    await declarations.reportVanished(store);
    await declarations.recompute(store);
  }

  async plan(): Promise<readonly PlannedChange[]> {
    const { declarations, lazyStore } = this.#params;
    return declarations.plan(await lazyStore.for("schedules.plan"));
  }

  async apply(): Promise<readonly PlannedChange[]> {
    const { declarations, lazyStore, running } = this.#params;
    const store = await lazyStore.for("schedules.apply");
    const planned = await declarations.plan(store);
    await declarations.reconcileAll(store, { isForced: true });
    await declarations.reportVanished(store, { isApplied: true });
    void running.changed();
    return planned;
  }
}

// ── the declarations of this process, and the passes over them: at the start, each minute, for a plan ──

export type DeclarationsParams = {
  readonly ports: Ports;
  readonly updater: ScheduleUpdater;
  readonly actor: Actor;
  readonly app: string | null;
  readonly program: string | null;
  readonly release: string | null;
  /** False: vanished schedules are only reported, as in development. */
  readonly mayPause: boolean;
  readonly emit: Emit;
  readonly jobs: JobDirectory;
};

type Declared = { readonly name: string; readonly job: string; readonly options: ScheduleOptions };

const PREVIEWED = 5;
const TZDATA_BATCH = 500;
const FAR_BATCH = 200;

export class Declarations {
  readonly #params: DeclarationsParams;
  readonly #declared = new Map<string, Declared>();
  readonly #reported = new Set<string>();
  readonly #updater: ScheduleUpdater;

  constructor(params: DeclarationsParams) {
    this.#params = params;
    this.#updater = params.updater;
  }

  get names(): readonly string[] {
    return [...this.#declared.keys()];
  }

  /** Checks everything that needs no database. */
  add(name: string, job: string, options: ScheduleOptions): void {
    const checked = requireName(name, "schedule(name)");
    if (this.#declared.has(checked)) throw new DuplicateScheduleError(checked);
    const field = `schedule("${checked}")`;
    requireOptions(options, field);
    const problems = refuseUnknownMembers(options, SCHEDULE_MEMBERS, field);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const { calendars: _, ...rest } = options;
    readSchedule(rest, { field, nowMs: null, calendar: () => undefined, calendarNames: [] });
    this.#declared.set(checked, { name: checked, job, options });
  }

  /** Writes all declarations that differ from the database. */
  async reconcileAll(
    store: Store,
    { isForced, only }: { readonly isForced: boolean; readonly only?: string },
  ): Promise<readonly PlannedChange[]> {
    const changes: PlannedChange[] = [];
    const chosen = [...this.#declared.values()].filter(({ name }) => (only ?? name) === name);
    const { schedules, now } = await store.schedules.states({
      names: chosen.map(({ name }) => name),
    });
    const states = new Map(schedules.map((state) => [state.name, state]));
    await this.#checkAll(store, chosen, states);
    for (const declared of chosen) {
      const declaration = await this.#declarationOf(declared);
      const calendars = await calendarsOf(store, declared.options);
      const params = { ...this.#context(store), calendars, isForced };
      // Most are unchanged and need no read of their own.
      const verdict = isUpToDate(declaration, states.get(declared.name), params)
        ? "unchanged"
        : await reconcile(declaration, params);
      if (declared.options.calendars !== undefined && verdict !== "foreign")
        await catchUpWithCalendars({ ...this.#context(store), name: declared.name });
      emitVerdict(this.#params.emit, declared.name, verdict);
      if (verdict === "created" || verdict === "edited") {
        const { definition } = wantedOf(declaration, { ...params, now: null });
        const warning = lateWarning(definition, now);
        if (warning !== null)
          this.#params.emit("schedule.warned", { schedule: declared.name, warning });
      }
      const { name: schedule } = declared;
      changes.push({ schedule, change: verdict, ticksBefore: [], ticksAfter: [] });
    }
    return changes;
  }

  /** Throws one error with all problems before anything is stored. */
  async #checkAll(
    store: Store,
    chosen: readonly Declared[],
    states: ReadonlyMap<string, ScheduleState>,
  ): Promise<void> {
    const problems: Problem[] = [];
    const { now } = await store.schedules.states({ names: [] });
    for (const declared of chosen) {
      try {
        if (!declared.options.monitor) await this.#params.jobs.ensure(declared.job);
        const declaration = await this.#declarationOf(declared);
        const calendars = await calendarsOf(store, declared.options);
        const isNew = !states.has(declared.name);
        const params = { ...this.#context(store), calendars, isForced: false };
        wantedOf(declaration, { ...params, now: isNew ? now : null });
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error;
        problems.push(...error.problems);
      }
    }
    if (problems.length > 0) throw new ConfigurationError(problems);
  }

  /** The changes that a forced `reconcileAll` would make, and the upcoming ticks that it would move. */
  async plan(store: Store): Promise<readonly PlannedChange[]> {
    const planned: PlannedChange[] = [];
    const context = this.#context(store);
    for (const declared of this.#declared.values()) {
      const calendars = await calendarsOf(store, declared.options);
      const { schedules, now } = await store.schedules.states({ names: [declared.name] });
      const state = schedules[0] ?? null;
      const declaration = await this.#declarationOf(declared);
      const wanted = wantedOf(declaration, {
        ...context,
        calendars,
        now: state ? null : now,
        isForced: true,
      });
      const judged = await judge({ state, now }, wanted, context);
      const change = judged === "unchanged" && state && isVanished(state) ? "edited" : judged;
      const isThere = state !== null && state.deletedAt === null;
      const before = isThere ? ticksOf(state, now) : [];
      const isKept = change === "unchanged" || change === "foreign";
      const definition = JSON.stringify(wanted.definition);
      const anchorAt = isThere ? anchorAfter(state, wanted.definition, now) : gridStart(now);
      const after = isKept ? before : ticksOf({ definition, anchorAt }, now);
      planned.push({ schedule: declared.name, change, ticksBefore: before, ticksAfter: after });
    }
    for (const { name } of await this.#vanished(store)) {
      planned.push({ schedule: name, change: "vanished", ticksBefore: [], ticksAfter: [] });
    }
    return planned;
  }

  /** Whether vanished schedules are checked for each minute: an app without a name pauses nothing. */
  get isWatchful(): boolean {
    return this.#params.app !== null && this.#params.mayPause;
  }

  /** Pauses what this program has dropped; if applied, everything that no live instance declares. */
  async reportVanished(store: Store, { isApplied = false } = {}): Promise<void> {
    const { app, mayPause, emit } = this.#params;
    await this.#reviveDropped(store);
    const vanished = await this.#vanished(store);
    const context = this.#context(store);
    const paused = mayPause ? await pauseVanished(context, vanished, { isApplied }) : [];
    for (const { name: schedule, otherProgram } of vanished) {
      const isPaused = paused.includes(schedule);
      if (this.#reported.has(schedule) && !isPaused) continue;
      this.#reported.add(schedule);
      const what = vanishedWords({ schedule, isPaused, otherProgram });
      emit("schedule.vanished", { schedule, isPaused, app, what });
    }
  }

  /** After a rollback: a schedule that a newer release dropped resumes once no instance of that release is left. */
  async #reviveDropped(store: Store): Promise<void> {
    const { schedules } = await store.schedules.states({ names: this.names });
    for (const { name } of schedules.filter(isVanished)) {
      const declared = this.#declared.get(name);
      if (!declared) continue;
      const calendars = await calendarsOf(store, declared.options);
      const params = { ...this.#context(store), calendars, isForced: false };
      const verdict = await reconcile(await this.#declarationOf(declared), params);
      // The refusal was already logged at the start.
      if (verdict !== "older") emitVerdict(this.#params.emit, name, verdict);
    }
  }

  #vanished(store: Store) {
    const { app, program } = this.#params;
    return findVanished({ store, app, program, declared: new Set(this.names) });
  }

  /** Recomputes next ticks under newer time zone rules; recorded ticks stay as they are. */
  async recompute(store: Store): Promise<void> {
    const runtime = process.versions.tz;
    if (runtime === undefined) return;
    const names = await store.schedules.byTzdata({ not: runtime, limit: TZDATA_BATCH });
    for (const name of names) {
      await this.#updater.change(store, name, ({ state, now }) => {
        const stored = state?.tzdata ?? undefined;
        if (!state || state.nextAt === null || !isNewerTzdata({ runtime, stored }))
          return { result: undefined };
        const around = { now, lastPolledAt: null, newId: this.#author().newId };
        const settled = settleTicks(state, around);
        if (!settled.isSettled) return { first: settled.change };
        const { progress } = settled.change;
        const { definition, when } = compile(state);
        const nextAt = evaluateAt(definition, when.next(Math.max(progress.cursorAt, now)));
        const cursorAt = Math.max(progress.cursorAt, now);
        const moved = { cursorAt, nextAt, isEnded: nextAt === null, tzdata: tzdataOf(definition) };
        return {
          result: undefined,
          change: { ...settled.change, progress: { ...progress, ...moved } },
        };
      });
    }
  }

  /**
   * Finds next ticks that lie beyond the rule's own next tick: such a schedule would stay silent until then, and no poll
   * notices it. It gets the rule's next tick, with the evidence in a warning; what it left out is evaluated as missed.
   */
  async resetFar(store: Store): Promise<void> {
    for (let after: string | null = null; ; ) {
      const rest = after === null ? {} : { after };
      const page = await store.schedules.list({ state: "active", limit: FAR_BATCH, ...rest });
      const names = page.map(({ name }) => name);
      const { schedules, now } = await store.schedules.states({ names });
      for (const state of schedules)
        if (nearerTick(state, now) !== null) await this.#resetFarTick(store, state.name);
      after = names.at(-1) ?? null;
      if (page.length < FAR_BATCH) return;
    }
  }

  async #resetFarTick(store: Store, schedule: string): Promise<void> {
    await this.#updater.change<void>(store, schedule, async ({ state, now }) => {
      const nextAt = state && nearerTick(state, now);
      if (!state || nextAt === null) return { result: undefined };
      const stored = { nextAt: isoOf(state.nextAt), cursorAt: isoOf(state.cursorAt) };
      this.#params.emit("schedule.stuck", { schedule, ...stored });
      const { id, revision } = state;
      const progress = { ...progressOf(state), nextAt };
      return { result: undefined, change: { id, revision, ticks: [], runs: [], progress } };
    });
  }

  async #declarationOf({ name, job, options }: Declared): Promise<Declaration> {
    const input = options.monitor
      ? "null"
      : await this.#params.jobs.encode(job, options.input ?? null);
    return { name, job, options, input };
  }

  #context(store: Store) {
    const { app, program, release } = this.#params;
    return { store, updater: this.#updater, app, program, release, author: this.#author() };
  }

  #author(): ChangeAuthor {
    const { random, ids } = this.#params.ports;
    const by = this.#params.app === null ? "code" : `code of ${this.#params.app}`;
    return { by, actor: this.#params.actor, random: random.next(), newId: () => ids.run() };
  }
}

/** The rule's next tick, if the stored one lies beyond it; a drawn interval has no such tick. */
function nearerTick(state: ScheduleState, now: number): number | null {
  if (!isActive(state) || state.nextAt === null) return null;
  try {
    const { definition, when } = compile(state);
    if (definition.when.kind === "range") return null;
    const nextAt = evaluateAt(definition, when.next(Math.max(state.cursorAt, now)));
    return nextAt !== null && nextAt < state.nextAt ? nextAt : null;
  } catch {
    return null; // A broken schedule is found when it is due.
  }
}

function isoOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

function ticksOf(
  stored: { readonly definition: string; readonly anchorAt: number },
  now: number,
): readonly Date[] {
  try {
    return previewOf(compile(stored), now, PREVIEWED).ticks;
  } catch {
    return []; // An unreadable definition has no ticks to show.
  }
}
