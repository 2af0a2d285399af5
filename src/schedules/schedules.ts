// Gives users `holdfast.schedules`: reads schedules and changes them. This folder decides when jobs run: definitions,
// ticks, triggers, backfills, monitors. It executes no run, and writes a schedule only at the revision that it has read.
// The decisions are in edit.ts, trigger.ts and declared.ts; this file checks options and has decisions written.

import type { Actor } from "../operations/rules/audit.js";
import {
  ConfigurationError,
  ScheduleNotFoundError,
  StoreUnavailableError,
  UnknownJobError,
} from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { requireName } from "../shared/names.js";
import { type By, instantMs, readBy, readNote, requireOptions } from "../shared/options.js";
import { pageOf } from "../shared/paging.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { backfillDecision, cancelBackfillDecision } from "./backfill.js";
import type { CalendarRules } from "./calendars/calendar.js";
import { catchUpWithCalendars } from "./calendars.js";
import {
  checkInDecision,
  type Pinged,
  type PingOptions,
  readCheckIn,
  refuseMonitor,
} from "./check-in.js";
import type { PlannedChange } from "./declared.js";
import {
  type ChangeAuthor,
  deleteDecision,
  existing,
  fromCall,
  pauseDecision,
  requireVersion,
  resumeDecision,
  upsertDecision,
} from "./edit.js";
import { type Explanation, explainAt } from "./explainer.js";
import {
  type BackfillOptions,
  calendarsOf,
  definitionOf,
  jobOf,
  readBackfill,
  readScheduleFilter,
  readTickFilter,
  readTrigger,
  readUpsertCondition,
  type ScheduleListOptions,
  type TickListOptions,
  type TriggerOptions,
  tickCursor,
  type UpsertAsked,
  type Upserted,
  type UpsertOptions,
} from "./options.js";
import {
  type DefinitionPreview,
  type Preview,
  previewDefinition,
  previewOf,
  previewOfDrawn,
  warningsFor,
} from "./preview.js";
import type { JobDirectory, Reconciler } from "./reconcile.js";
import {
  SCHEDULE_MEMBERS,
  type ScheduleDefinition,
  type ScheduleOptions,
} from "./rules/schedule.js";
import { compile, type ScheduleCache } from "./schedule-cache.js";
import { readTimeline, type Timeline, type TimelineOptions, timelineOf } from "./timeline.js";
import { type Triggered, triggerDecision } from "./trigger.js";
import type { Read, ScheduleUpdater } from "./updater.js";
import {
  type Backfill,
  type Schedule,
  type ScheduleVersion,
  schedulePage,
  type Tick,
  toBackfill,
  toSchedule,
  toTick,
  toVersion,
} from "./view.js";

export type SchedulesParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly actor: Actor;
  readonly ports: Ports;
  readonly updater: ScheduleUpdater;
  readonly cache: ScheduleCache;
  readonly jobs: JobDirectory;
  readonly app: string | null;
  readonly reconciler: Reconciler;
  /** Something may have become due. */
  readonly onChanged: () => void;
  readonly emit: Emit;
};

export class Schedules {
  readonly #params: SchedulesParams;
  readonly #updater: ScheduleUpdater;

  constructor(params: SchedulesParams) {
    this.#params = params;
    this.#updater = params.updater;
  }

  /** Creates or changes a schedule; an equal definition changes nothing. */
  async upsert<Input>(
    name: string,
    options: UpsertOptions<Input>,
    asked?: UpsertAsked,
  ): Promise<Upserted> {
    const checked = requireName(name, "schedules.upsert(name)");
    const field = "schedules.upsert()";
    requireOptions(options, field);
    const { by, ifVersion } = readUpsertCondition(asked, field);
    const author = this.#author(by);
    const job = jobOf(checked, options, `${field}.job`);
    const members = refuseUnknownMembers(options, [...SCHEDULE_MEMBERS, "job"], field);
    if (members.length > 0) throw new ConfigurationError(members);
    const store = await this.#params.store("schedules.upsert");
    // All problems are reported before anything is announced or stored.
    definitionOf(options, { calendars: await calendarsOf(store, options), nowMs: null });
    if (!options.monitor) await this.#params.jobs.ensure(job);
    const input = options.monitor
      ? "null"
      : await this.#params.jobs.encode(job, options.input ?? null);
    const made = await this.#updater.change(store, checked, async (read) => {
      const calendars = await calendarsOf(store, options);
      const definition = definitionAt(options, { calendars, read });
      const wanted = { name: checked, job, definition, input, isForced: false };
      const decision = upsertDecision(read, fromCall(wanted, read.state, this.#params.app), author);
      requireVersion(read, { name: checked, ifVersion, decision });
      const result = { definition, now: read.now };
      return "first" in decision ? decision : { ...decision, result };
    });
    if (options.calendars !== undefined) await this.#catchUp(store, checked);
    this.#params.onChanged();
    const schedule = await this.#found(checked);
    return { schedule, warnings: warningsFor(made.definition, made.now) };
  }

  /** One schedule; null: there is none. */
  async get(name: string): Promise<Schedule | null> {
    const store = await this.#params.store("schedules.get");
    const [record] = await store.schedules.list({ name: nameOf(name, "get"), limit: 1 });
    return record ? toSchedule(record) : null;
  }

  /** By name. A page whose definitions and inputs weigh more than 1 MiB ends early, with a cursor. */
  async list(
    options: ScheduleListOptions = {},
  ): Promise<{ readonly schedules: readonly Schedule[]; readonly nextCursor: string | null }> {
    const filter = readScheduleFilter(options);
    const store = await this.#params.store("schedules.list");
    return schedulePage(store, filter);
  }

  /** Stops firing; existing runs go on. A new schedule of the same name never repeats a tick. */
  async delete(name: string, asked?: By): Promise<void> {
    nameOf(name, "delete");
    const author = this.#author(readBy(asked, "schedules.delete()"));
    const store = await this.#params.store("schedules.delete");
    await this.#updater.change(store, name, (read) => deleteDecision(read, { name, author }));
  }

  /** No tick fires until it is resumed; ticks are recorded as skipped. Existing runs go on. */
  async pause(name: string, note?: string, asked?: By): Promise<Schedule> {
    nameOf(name, "pause");
    const checked = readNote(note, "schedules.pause(note)");
    const author = this.#author(readBy(asked, "schedules.pause()"));
    const store = await this.#params.store("schedules.pause");
    await this.#updater.change(store, name, (read) =>
      pauseDecision(read, { name, note: checked, author }),
    );
    return this.#found(name);
  }

  /** Ends a pause, or evaluates a broken schedule again. Ticks of the pause are not run later. */
  async resume(name: string, asked?: By): Promise<Schedule> {
    nameOf(name, "resume");
    const author = this.#author(readBy(asked, "schedules.resume()"));
    const store = await this.#params.store("schedules.resume");
    await this.#updater.change(store, name, (read) => resumeDecision(read, { name, author }));
    this.#params.onChanged();
    return this.#found(name);
  }

  /** Makes a run now, beside the cadence; also for a paused schedule. */
  async trigger(name: string, options: TriggerOptions = {}): Promise<Triggered> {
    nameOf(name, "trigger");
    const params = readTrigger(options);
    try {
      const result = await this.#trigger(name, options, params);
      if (result.skipped) this.#emitSkipped(name, result);
      return result;
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        const facts = { schedule: name, error: describeFailure(error) };
        this.#params.emit("trigger.unread", facts, error);
      }
      throw error;
    }
  }

  #emitSkipped(schedule: string, skipped: Extract<Triggered, { readonly skipped: true }>): void {
    const { reason, holder, until, nextAt } = skipped;
    this.#params.emit("trigger.skipped", {
      schedule,
      reason,
      holder,
      until: until?.toISOString() ?? null,
      nextAt: nextAt?.toISOString() ?? null,
    });
  }

  async #trigger(
    name: string,
    options: TriggerOptions,
    params: ReturnType<typeof readTrigger>,
  ): Promise<Triggered> {
    await this.#params.reconciler.once();
    const store = await this.#params.store("schedules.trigger");
    const { schedules } = await store.schedules.states({ names: [name] });
    const state = existing({ state: schedules[0] ?? null, now: 0 }, name);
    refuseMonitor(state);
    const input =
      options.input === undefined ? null : await this.#params.jobs.encode(state.job, options.input);
    const author = this.#author(options.by);
    const result = await this.#updater.change<Triggered>(store, name, (read) => {
      if (read.state?.isJobKnown === false) throw new UnknownJobError(read.state.job);
      return triggerDecision(
        read,
        { ...params, name, input, author },
        { store, cache: this.#params.cache },
      );
    });
    if (result.runId !== undefined) {
      this.#params.onChanged();
      store.wake();
    }
    return result;
  }

  /** Checks in at a monitor: the job that it watches began, is done, or failed. */
  async ping(name: string, options: PingOptions = {}): Promise<Pinged> {
    nameOf(name, "ping");
    const params = readCheckIn(options);
    await this.#params.reconciler.once();
    const store = await this.#params.store("schedules.ping");
    const author = this.#author(undefined);
    const result = await this.#updater.change<Pinged>(store, name, (read) =>
      checkInDecision(read, { ...params, name, author }, store),
    );
    const { state, runId: run, repeated } = result;
    const facts = { schedule: name, tick: result.tick?.toISOString() ?? null, run };
    if (params.error && !repeated)
      this.#params.emit("monitor.failed", { ...facts, error: params.error });
    else this.#params.emit("monitor.pinged", { ...facts, state, repeated });
    return result;
  }

  /** The next ticks, and the clock changes that touch them. */
  async preview(name: string, count = 10): Promise<Preview> {
    const { compiled, state, now } = await this.#readable(name, "schedules.preview");
    const after = Math.max(state.cursorAt, now);
    if (compiled.definition.when.kind === "range") return previewOfDrawn(compiled, state.nextAt);
    return previewOf(compiled, after, count);
  }

  /** Previews a definition that is not stored: its description, next ticks and warnings. */
  async previewDefinition(options: ScheduleOptions, count = 10): Promise<DefinitionPreview> {
    requireOptions(options, "schedules.previewDefinition()");
    const store = await this.#params.store("schedules.previewDefinition");
    const calendars = await calendarsOf(store, options);
    const { now } = await store.schedules.states({ names: [] });
    return previewDefinition(definitionOf(options, { calendars, nowMs: now }), { now, count });
  }

  /** Recorded and planned ticks of several schedules over a stretch of time. */
  async timeline(options: TimelineOptions): Promise<Timeline> {
    const params = readTimeline(options);
    const { schedules, nextCursor } = await this.list({
      limit: params.limit,
      ...(params.job === undefined ? {} : { job: params.job }),
      ...(params.cursor === undefined ? {} : { cursor: params.cursor }),
    });
    const shown = params.schedule === undefined ? schedules : [await this.#found(params.schedule)];
    const store = await this.#params.store("schedules.timeline");
    const timeline = await timelineOf(store, { ...params, schedules: shown });
    return { ...timeline, nextCursor: params.schedule === undefined ? nextCursor : null };
  }

  /**
   * Explains in plain words, with evidence, why there was a run at an instant, or why not. A whole second stands for the
   * tick within it; without an instant the last tick is explained.
   */
  async explain(name: string, at?: Date | string): Promise<Explanation> {
    nameOf(name, "explain");
    const atMs = at === undefined ? null : instantMs(at, "schedules.explain(at)");
    const store = await this.#params.store("schedules.explain");
    const { schedules, now } = await store.schedules.states({ names: [name] });
    const [state] = schedules;
    if (!state) throw new ScheduleNotFoundError(name);
    return explainAt({ store, state, now, atMs });
  }

  /** The ledger of one schedule or of all, newest first. */
  async ticks(
    name: string | null,
    options: TickListOptions = {},
  ): Promise<{ readonly ticks: readonly Tick[]; readonly nextCursor: string | null }> {
    const filter = readTickFilter(name, options);
    const { limit } = filter;
    const store = await this.#params.store("schedules.ticks");
    const records = await store.schedules.ticks({ ...filter, limit: limit + 1 });
    const { page, last } = pageOf(records, limit);
    return { ticks: page.map(toTick), nextCursor: last && tickCursor(last) };
  }

  /** All definitions of the schedule, oldest first. */
  async versions(name: string): Promise<readonly ScheduleVersion[]> {
    const store = await this.#params.store("schedules.versions");
    return (await store.schedules.versions({ name })).map(toVersion);
  }

  /**
   * Makes runs for the ticks of a range, one after the other; by default only for ticks without a completed run. The
   * ledger does not change.
   */
  async backfill(name: string, options: BackfillOptions): Promise<Backfill> {
    nameOf(name, "backfill");
    const { fromAt, toAt, isAll, by } = readBackfill(options);
    const author = this.#author(by);
    const store = await this.#params.store("schedules.backfill");
    const id = this.#params.ports.ids.run();
    await this.#updater.change(store, name, (read) =>
      backfillDecision(read, { name, id, fromAt, toAt, isAll, author }),
    );
    this.#params.onChanged();
    const found = (await this.backfills(name)).find((each) => each.id === id);
    if (!found) throw new ScheduleNotFoundError(name);
    return found;
  }

  /** Newest first. */
  async backfills(name: string): Promise<readonly Backfill[]> {
    const store = await this.#params.store("schedules.backfills");
    return (await store.schedules.backfills({ name })).map(toBackfill);
  }

  /** Stops a backfill; its present run goes on. True if one was running. */
  async cancelBackfill(name: string): Promise<boolean> {
    nameOf(name, "cancelBackfill");
    const store = await this.#params.store("schedules.cancelBackfill");
    const author = this.#author(undefined);
    return this.#updater.change<boolean>(store, name, (read) =>
      cancelBackfillDecision(read, { name, author }),
    );
  }

  /** The changes that `apply` would make, and the upcoming ticks that would move. */
  plan(): Promise<readonly PlannedChange[]> {
    return this.#params.reconciler.plan();
  }

  /** Applies the declarations of this process, also over newer definitions: a rollback. */
  apply(): Promise<readonly PlannedChange[]> {
    return this.#params.reconciler.apply();
  }

  /** Gives a schedule the present rules of the calendars that it uses. */
  async applyCalendars(name: string): Promise<void> {
    const store = await this.#params.store("calendars.upsert");
    await this.#catchUp(store, name);
    this.#params.onChanged();
  }

  #catchUp(store: Store, name: string): Promise<void> {
    return catchUpWithCalendars({
      store,
      updater: this.#updater,
      name,
      author: this.#author("calendars"),
    });
  }

  async #found(name: string): Promise<Schedule> {
    const schedule = await this.get(name);
    if (!schedule) throw new ScheduleNotFoundError(name);
    return schedule;
  }

  async #readable(name: string, verb: string) {
    const store = await this.#params.store(verb);
    const { schedules, now } = await store.schedules.states({ names: [name] });
    const state = existing({ state: schedules[0] ?? null, now }, name);
    return { state, now, compiled: compile(state) };
  }

  #author(by: string | undefined): ChangeAuthor {
    const { ids, random } = this.#params.ports;
    const { actor } = this.#params;
    return { by: by ?? null, actor, random: random.next(), newId: () => ids.run() };
  }
}

/** A time that has passed is not refused if the definition is unchanged. */
function definitionAt(
  options: UpsertOptions,
  params: { readonly calendars: ReadonlyMap<string, CalendarRules>; readonly read: Read },
): ScheduleDefinition {
  const { state, now } = params.read;
  const definition = definitionOf(options, { ...params, nowMs: null });
  const isKnown = state?.deletedAt === null && state.definition === JSON.stringify(definition);
  return isKnown ? definition : definitionOf(options, { ...params, nowMs: now });
}

function nameOf(name: unknown, verb: string): string {
  return requireName(name, `schedules.${verb}(name)`);
}
