// Brings the database up to the schedules that this process declares: once, before the first is fired or triggered, and
// whenever a caller applies them.

import type { Actor } from "../operations/rules/audit.js";
import { ConfigurationError, DuplicateScheduleError, type Problem } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { requireOptions } from "../shared/options.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { LazyStore } from "../store/lazy-store.js";
import type { ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { catchUpWithCalendars } from "./calendars.js";
import { isNewerTzdata } from "./cron/zone.js";
import {
  type Declaration,
  findVanished,
  isUpToDate,
  isVanished,
  judge,
  type PlannedChange,
  pauseVanished,
  reconcile,
  tellVerdict,
  vanishedWords,
  wantedOf,
} from "./declared.js";
import { anchorAfter, type ChangeAuthor, gridStart } from "./edit.js";
import { calendarsOf } from "./options.js";
import { lateWarning, previewOf } from "./preview.js";
import { lookAt } from "./rules/monitor.js";
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
    await declarations.reportVanished(store);
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
  readonly release: string | null;
  /** False: what vanished is only reported, as in development. */
  readonly mayPause: boolean;
  readonly emit: Emit;
  readonly jobs: JobDirectory;
};

type Declared = { readonly name: string; readonly job: string; readonly options: ScheduleOptions };

const PREVIEWED = 5;
const TZDATA_BATCH = 500;

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

  /** Everything that can be checked without the database is checked at once. */
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

  /** Brings the database up to the code. */
  async reconcileAll(
    store: Store,
    { isForced, only }: { readonly isForced: boolean; readonly only?: string },
  ): Promise<readonly PlannedChange[]> {
    const changes: PlannedChange[] = [];
    const chosen = [...this.#declared.values()].filter(({ name }) => (only ?? name) === name);
    const { schedules, now } = await store.scheduleStates({
      names: chosen.map(({ name }) => name),
    });
    const states = new Map(schedules.map((state) => [state.name, state]));
    await this.#checkAll(store, chosen, states);
    for (const declared of chosen) {
      const declaration = await this.#declarationOf(declared);
      const calendars = await calendarsOf(store, declared.options);
      const params = { ...this.#context(store), calendars, isForced };
      // Most are as they were: they need not be read once more, one by one.
      const verdict = isUpToDate(declaration, states.get(declared.name), params)
        ? "unchanged"
        : await reconcile(declaration, params);
      if (declared.options.calendars !== undefined && verdict !== "foreign")
        await catchUpWithCalendars({ ...this.#context(store), name: declared.name });
      tellVerdict(this.#params.emit, declared.name, verdict);
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

  /** All that is wrong is said at once, before anything is stored. */
  async #checkAll(
    store: Store,
    chosen: readonly Declared[],
    states: ReadonlyMap<string, ScheduleState>,
  ): Promise<void> {
    const problems: Problem[] = [];
    const { now } = await store.scheduleStates({ names: [] });
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

  /** What `reconcileAll` with force would do, and which upcoming ticks it would move. */
  async plan(store: Store): Promise<readonly PlannedChange[]> {
    const planned: PlannedChange[] = [];
    const context = this.#context(store);
    for (const declared of this.#declared.values()) {
      const calendars = await calendarsOf(store, declared.options);
      const { schedules, now } = await store.scheduleStates({ names: [declared.name] });
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

  /** Whether there is anything to look at each minute: an app without a name pauses nothing. */
  get isWatchful(): boolean {
    return this.#params.app !== null && this.#params.mayPause;
  }

  async reportVanished(store: Store): Promise<void> {
    const { app, mayPause, emit } = this.#params;
    await this.#reviveDropped(store);
    const vanished = await this.#vanished(store);
    const paused = mayPause ? await pauseVanished(this.#context(store), vanished) : [];
    for (const { name } of vanished) {
      const isPaused = paused.includes(name);
      if (this.#reported.has(name) && !isPaused) continue;
      this.#reported.add(name);
      const done = { isPaused: isPaused && app !== null, app };
      emit("schedule.vanished", {
        schedule: name,
        ...done,
        what: vanishedWords(name, done.isPaused),
      });
    }
  }

  /** After a rollback: what a newer release had dropped goes on once nobody of that release is left. */
  async #reviveDropped(store: Store): Promise<void> {
    const { schedules } = await store.scheduleStates({ names: this.names });
    for (const { name } of schedules.filter(isVanished)) {
      const declared = this.#declared.get(name);
      if (!declared) continue;
      const calendars = await calendarsOf(store, declared.options);
      const params = { ...this.#context(store), calendars, isForced: false };
      const verdict = await reconcile(await this.#declarationOf(declared), params);
      // That it is refused was said at the start.
      if (verdict !== "older") tellVerdict(this.#params.emit, name, verdict);
    }
  }

  #vanished(store: Store) {
    return findVanished({ store, app: this.#params.app, declared: new Set(this.names) });
  }

  /** Ticks that newer rules of time zones have moved; the past stays as it was recorded. */
  async recompute(store: Store): Promise<void> {
    const runtime = process.versions.tz;
    if (runtime === undefined) return;
    const names = await store.schedulesByTzdata({ not: runtime, limit: TZDATA_BATCH });
    for (const name of names) {
      await this.#updater.change(store, name, ({ state, now }) => {
        const stored = state?.tzdata ?? undefined;
        if (!state || state.nextAt === null || !isNewerTzdata({ runtime, stored }))
          return { answer: undefined };
        const around = { now, lastPolledAt: null, newId: this.#author().newId };
        const settled = settleTicks(state, around);
        if (!settled.isSettled) return { first: settled.change };
        const { progress } = settled.change;
        const { definition, when } = compile(state);
        const nextAt = lookAt(definition, when.next(Math.max(progress.cursorAt, now)));
        const cursorAt = Math.max(progress.cursorAt, now);
        const moved = { cursorAt, nextAt, isEnded: nextAt === null, tzdata: tzdataOf(definition) };
        return {
          answer: undefined,
          change: { ...settled.change, progress: { ...progress, ...moved } },
        };
      });
    }
  }

  async #declarationOf({ name, job, options }: Declared): Promise<Declaration> {
    const input = options.monitor
      ? "null"
      : await this.#params.jobs.encode(job, options.input ?? null);
    return { name, job, options, input };
  }

  #context(store: Store) {
    const { app, release } = this.#params;
    return { store, updater: this.#updater, app, release, author: this.#author() };
  }

  #author(): ChangeAuthor {
    const { chance, ids } = this.#params.ports;
    const by = this.#params.app === null ? "code" : `code of ${this.#params.app}`;
    return { by, actor: this.#params.actor, chance: chance.next(), newId: () => ids.run() };
  }
}

function ticksOf(
  stored: { readonly definition: string; readonly anchorAt: number },
  now: number,
): readonly Date[] {
  try {
    return previewOf(compile(stored), now, PREVIEWED).ticks;
  } catch {
    return []; // What cannot be evaluated has no ticks to show.
  }
}
