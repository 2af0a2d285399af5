// `holdfast.schedules`: looking at schedules and changing them. What a change decides is in
// schedule-edit.ts, schedule-trigger.ts and declared.ts; here it is asked for and written.

import type { CalendarRules } from "../core/calendar.js";
import { cronSchedule } from "../core/cron.js";
import { describeTouch, dstTouches } from "../core/cron-dst.js";
import {
  BackfillRunningError,
  ConfigurationError,
  type Problem,
  ScheduleNotFoundError,
  UnknownJobError,
} from "../core/errors.js";
import { readInstant } from "../core/instant.js";
import { requireKey, requireName } from "../core/names.js";
import type { Ports } from "../core/ports.js";
import {
  readSchedule,
  SCHEDULE_MEMBERS,
  type ScheduleDefinition,
  type ScheduleOptions,
} from "../core/schedule.js";
import { refuseUnknownMembers } from "../core/suggest.js";
import { OUTCOMES, type Outcome } from "../core/tick.js";
import type { When } from "../core/when.js";
import type { ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";
import { progressOf } from "./advance.js";
import { type CompiledSchedules, compile } from "./compiled.js";
import type { PlannedChange } from "./declared.js";
import { Desk } from "./desk.js";
import { type Explanation, explainAt } from "./explain.js";
import { inputHash } from "./job.js";
import {
  type Asker,
  deleteDecision,
  existing,
  pauseDecision,
  resumeDecision,
  upsertDecision,
  type Wanted,
  warningsFor,
} from "./schedule-edit.js";
import { type Triggered, triggerDecision } from "./schedule-trigger.js";
import {
  type Backfill,
  type Schedule,
  type ScheduleStatus,
  type ScheduleVersion,
  type Tick,
  toBackfill,
  toSchedule,
  toTick,
  toVersion,
} from "./schedule-view.js";

/** Who did it: kept with versions, pauses and backfills. */
export type By = { readonly by?: string };

export type UpsertOptions = ScheduleOptions & {
  /** A job, or its name. */
  readonly job: string | { readonly name: string };
};

export type Upserted = { readonly schedule: Schedule; readonly warnings: readonly string[] };

export type TriggerOptions = By & {
  /** Why: a test is a run like any other, but it says so. @default "manual" */
  readonly mode?: "manual" | "test";
  /** Instead of the schedule's own. */
  readonly input?: unknown;
  /** Only if a tick is due and no run is live; then the run is of mode "scheduled". */
  readonly ifDue?: boolean;
  /** The same delivery twice is the same run. */
  readonly deliveryId?: string;
};

export type ScheduleListOptions = {
  readonly job?: string;
  readonly app?: string;
  readonly status?: ScheduleStatus;
  /** @default 50, at most 1,000 */
  readonly limit?: number;
  readonly cursor?: string;
};

export type TickListOptions = {
  readonly from?: Date | string;
  readonly to?: Date | string;
  readonly outcome?: Outcome;
  readonly limit?: number;
  readonly cursor?: string;
};

export type BackfillOptions = By & {
  readonly from: Date | string;
  readonly to: Date | string;
  /** Also ticks that have a completed run. @default false */
  readonly all?: boolean;
};

export type Preview = {
  readonly ticks: readonly Date[];
  /** Changes of the clocks that touch them. */
  readonly notes: readonly string[];
};

export type SchedulesParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly ports: Ports;
  readonly compiled: CompiledSchedules;
  /** Encodes and checks an input as an enqueue of that job would. */
  readonly encode: (job: string, input: unknown) => Promise<string>;
  /** Makes sure that a job is known to the database; throws if it is known to nobody. */
  readonly ensureJob: (name: string) => Promise<void>;
  readonly app: string | null;
  /** Brings declared schedules up to date in a process that was not started. */
  readonly reconcileOnce: () => Promise<void>;
  readonly plan: () => Promise<readonly PlannedChange[]>;
  readonly apply: () => Promise<readonly PlannedChange[]>;
  /** Something may have become due. */
  readonly onChanged: () => void;
};

const LIMIT_MAX = 1_000;
const PREVIEW_MAX = 1_000;
const BACKFILL_MAX = 100_000;
const STATUSES: readonly ScheduleStatus[] = ["active", "paused", "ended", "broken"];

export class Schedules {
  readonly #params: SchedulesParams;
  readonly #desk: Desk;

  constructor(params: SchedulesParams) {
    this.#params = params;
    this.#desk = new Desk(params.ports);
  }

  /** Makes a schedule, or changes it; an equal one changes nothing. */
  async upsert(name: string, options: UpsertOptions, { by }: By = {}): Promise<Upserted> {
    const checked = requireName(name, "schedules.upsert(name)");
    const job = jobName(options);
    const members = refuseUnknownMembers(
      options,
      [...SCHEDULE_MEMBERS, "job"],
      "schedules.upsert()",
    );
    if (members.length > 0) throw new ConfigurationError(members);
    const store = await this.#params.store("schedules.upsert");
    const calendars = await calendarsOf(store, options);
    const { now } = await store.scheduleStates({ names: [] });
    const definition = definitionOf(options, { calendars, nowMs: now });
    await this.#params.ensureJob(job);
    const input = await this.#params.encode(job, options.input ?? null);
    const wanted = { name: checked, job, definition, input, isForced: false };
    await this.#desk.change(store, checked, (read) =>
      upsertDecision(read, fromCall(wanted, read.state, this.#params.app), this.#asker(by)),
    );
    this.#params.onChanged();
    const schedule = await this.get(checked);
    if (!schedule) throw new ScheduleNotFoundError(checked);
    return { schedule, warnings: warningsFor(definition, now) };
  }

  async get(name: string): Promise<Schedule | null> {
    const store = await this.#params.store("schedules.get");
    const [record] = await store.schedules({ name: String(name), limit: 1 });
    return record ? toSchedule(record) : null;
  }

  /** By name. */
  async list(
    options: ScheduleListOptions = {},
  ): Promise<{ readonly schedules: readonly Schedule[]; readonly nextCursor: string | null }> {
    const members = ["job", "app", "status", "limit", "cursor"];
    const problems = refuseUnknownMembers(options, members, "schedules.list()");
    const { limit = 50, cursor, status, job, app } = options;
    problems.push(...limitProblems(limit));
    if (status !== undefined && !STATUSES.includes(status))
      problems.push({ field: "status", message: `must be one of ${STATUSES.join(", ")}` });
    if (problems.length > 0) throw new ConfigurationError(problems);
    const store = await this.#params.store("schedules.list");
    const records = await store.schedules({
      limit: limit + 1,
      ...(job === undefined ? {} : { job }),
      ...(app === undefined ? {} : { app }),
      ...(status === undefined ? {} : { state: status }),
      ...(cursor === undefined ? {} : { after: cursor }),
    });
    const page = records.slice(0, limit);
    const nextCursor = records.length > limit ? (page.at(-1)?.name ?? null) : null;
    return { schedules: page.map(toSchedule), nextCursor };
  }

  /** It fires no more; runs it has made go on. A schedule of the same name never fires a tick again. */
  async delete(name: string, { by }: By = {}): Promise<void> {
    const store = await this.#params.store("schedules.delete");
    const asker = this.#asker(by);
    await this.#desk.change(store, name, (read) => deleteDecision(read, { name, asker }));
  }

  /** No tick fires until it is resumed; they are recorded as skipped. Runs it has made go on. */
  async pause(name: string, note?: string, { by }: By = {}): Promise<Schedule> {
    const store = await this.#params.store("schedules.pause");
    const asker = this.#asker(by);
    await this.#desk.change(store, name, (read) =>
      pauseDecision(read, { name, note: note ?? null, asker }),
    );
    return this.#found(name);
  }

  /** Ends a pause; also makes a broken schedule be evaluated again. Paused ticks are not caught up. */
  async resume(name: string, { by }: By = {}): Promise<Schedule> {
    const store = await this.#params.store("schedules.resume");
    const asker = this.#asker(by);
    await this.#desk.change(store, name, (read) => resumeDecision(read, { name, asker }));
    this.#params.onChanged();
    return this.#found(name);
  }

  /** A run now, beside the cadence; also of a paused schedule. */
  async trigger(name: string, options: TriggerOptions = {}): Promise<Triggered> {
    const params = readTrigger(options);
    await this.#params.reconcileOnce();
    const store = await this.#params.store("schedules.trigger");
    const { schedules } = await store.scheduleStates({ names: [name] });
    const state = existing({ state: schedules[0] ?? null, now: 0 }, name);
    const input =
      options.input === undefined ? null : await this.#params.encode(state.job, options.input);
    const asker = this.#asker(options.by);
    const answer = await this.#desk.change<Triggered>(store, name, (read) => {
      if (read.state?.isJobKnown === false) throw new UnknownJobError(read.state.job);
      return triggerDecision(
        read,
        { ...params, name, input, asker },
        { store, compiled: this.#params.compiled },
      );
    });
    if (answer.runId !== undefined) {
      this.#params.onChanged();
      store.wake();
    }
    return answer;
  }

  /** The next ticks, and where changes of the clocks touch them. */
  async preview(name: string, count = 10): Promise<Preview> {
    const { compiled, state, now } = await this.#readable(name, "schedules.preview");
    const after = Math.max(state.cursorAt, now);
    if (compiled.definition.when.kind === "range")
      return { ticks: state.nextAt === null ? [] : [new Date(state.nextAt)], notes: [] };
    return previewOf(compiled, after, count);
  }

  /** Why there was a run at an instant, or why not: with the evidence, in plain words. */
  async explain(name: string, at: Date | string): Promise<Explanation> {
    const atMs = instantMs(at, "schedules.explain(at)");
    const store = await this.#params.store("schedules.explain");
    const { schedules, now } = await store.scheduleStates({ names: [name] });
    const [state] = schedules;
    if (!state) throw new ScheduleNotFoundError(name);
    return explainAt({ store, state, now, atMs });
  }

  /** The ledger, newest first: of one schedule, or of all. */
  async ticks(
    name: string | null,
    options: TickListOptions = {},
  ): Promise<{ readonly ticks: readonly Tick[]; readonly nextCursor: string | null }> {
    const members = ["from", "to", "outcome", "limit", "cursor"];
    const problems = refuseUnknownMembers(options, members, "schedules.ticks()");
    const { limit = 50, outcome, cursor, from, to } = options;
    problems.push(...limitProblems(limit));
    if (outcome !== undefined && !OUTCOMES.includes(outcome))
      problems.push({ field: "outcome", message: `must be one of ${OUTCOMES.join(", ")}` });
    const before = cursor === undefined ? undefined : readCursor(cursor);
    if (before === null)
      problems.push({ field: "cursor", message: "must be the nextCursor of an earlier page" });
    if (problems.length > 0) throw new ConfigurationError(problems);
    const store = await this.#params.store("schedules.ticks");
    const records = await store.ticks({
      limit: limit + 1,
      ...(name === null ? {} : { schedule: name }),
      ...(outcome === undefined ? {} : { outcome }),
      ...(from === undefined ? {} : { fromAt: instantMs(from, "from") }),
      ...(to === undefined ? {} : { toAt: instantMs(to, "to") }),
      ...(before ? { before } : {}),
    });
    const page = records.slice(0, limit);
    const last = records.length > limit ? page.at(-1) : undefined;
    const nextCursor = last ? `${last.firstAt}:${last.schedule}` : null;
    return { ticks: page.map(toTick), nextCursor };
  }

  /** Every definition that it had, the first one first. */
  async versions(name: string): Promise<readonly ScheduleVersion[]> {
    const store = await this.#params.store("schedules.versions");
    return (await store.scheduleVersions({ name })).map(toVersion);
  }

  /**
   * Makes runs for the ticks of a range, one after the other; by default for those without a
   * completed run. The ledger stays as it is.
   */
  async backfill(name: string, options: BackfillOptions): Promise<Backfill> {
    const problems = refuseUnknownMembers(
      options,
      ["from", "to", "all", "by"],
      "schedules.backfill()",
    );
    if (problems.length > 0) throw new ConfigurationError(problems);
    const fromAt = instantMs(options.from, "schedules.backfill().from");
    const toAt = instantMs(options.to, "schedules.backfill().to");
    if (fromAt > toAt) refuse("schedules.backfill().to", "must not be before `from`");
    const store = await this.#params.store("schedules.backfill");
    const id = this.#params.ports.ids.run();
    await this.#desk.change(store, name, (read) => {
      const state = existing(read, name);
      if (state.backfill) throw new BackfillRunningError(name, state.backfill.id);
      const until = Math.min(toAt, read.now);
      const { definition, when } = compile(state);
      if (definition.when.kind === "range")
        refuse("schedules.backfill()", "an interval that is drawn has no ticks to go back to");
      const total = ticksIn(when, fromAt, until);
      const change = {
        state: {
          id,
          fromAt,
          toAt: until,
          cursorAt: fromAt - 1,
          total,
          made: 0,
          passed: 0,
          isAll: options.all ?? false,
        },
        isNew: true,
        by: options.by ?? null,
        isEnded: total === 0,
        isCancelled: false,
        run: null,
      };
      return { answer: undefined, change: { ...idle(state), backfill: change } };
    });
    this.#params.onChanged();
    const found = (await this.backfills(name)).find((each) => each.id === id);
    if (!found) throw new ScheduleNotFoundError(name);
    return found;
  }

  /** Newest first. */
  async backfills(name: string): Promise<readonly Backfill[]> {
    const store = await this.#params.store("schedules.backfills");
    return (await store.backfills({ name })).map(toBackfill);
  }

  /** It makes no more runs; the one it has made goes on. True if there was one. */
  async cancelBackfill(name: string): Promise<boolean> {
    const store = await this.#params.store("schedules.cancelBackfill");
    return this.#desk.change<boolean>(store, name, (read) => {
      const state = existing(read, name);
      if (!state.backfill) return { answer: false };
      const backfill = {
        state: state.backfill,
        isNew: false,
        by: null,
        isEnded: true,
        isCancelled: true,
        run: null,
      };
      return { answer: true, change: { ...idle(state), backfill } };
    });
  }

  /** What `apply` would change, and which upcoming ticks would move. */
  plan(): Promise<readonly PlannedChange[]> {
    return this.#params.plan();
  }

  /** Brings the schedules up to this process's code, also over a newer definition: a rollback. */
  apply(): Promise<readonly PlannedChange[]> {
    return this.#params.apply();
  }

  /** Gives a schedule the new rules of a calendar that it uses. */
  async applyCalendar(
    name: string,
    calendar: { readonly name: string; readonly rules: CalendarRules },
  ): Promise<void> {
    const store = await this.#params.store("calendars.upsert");
    await this.#desk.change(store, name, (read) => {
      const { state } = read;
      if (!state || state.deletedAt !== null) return { answer: undefined };
      const definition = JSON.parse(state.definition) as ScheduleDefinition;
      const calendars = definition.when.calendars.map((each) =>
        each.name === calendar.name ? calendar : each,
      );
      const changed = { ...definition, when: { ...definition.when, calendars } };
      const wanted = { ...state, definition: changed, isForced: false };
      const decision = upsertDecision(read, wanted, this.#asker(`calendar ${calendar.name}`));
      return "first" in decision ? decision : { ...decision, answer: undefined };
    });
    this.#params.onChanged();
  }

  async #found(name: string): Promise<Schedule> {
    const schedule = await this.get(name);
    if (!schedule) throw new ScheduleNotFoundError(name);
    return schedule;
  }

  async #readable(name: string, verb: string) {
    const store = await this.#params.store(verb);
    const { schedules, now } = await store.scheduleStates({ names: [name] });
    const state = existing({ state: schedules[0] ?? null, now }, name);
    return { state, now, compiled: compile(state) };
  }

  #asker(by: string | undefined): Asker {
    const { ids, chance } = this.#params.ports;
    return { by: by ?? null, chance: chance.next(), newId: () => ids.run() };
  }
}

/** An edit by a call leaves whose schedule it is, and which definition in code it came from. */
function fromCall(
  wanted: Pick<Wanted, "name" | "job" | "definition" | "input" | "isForced">,
  state: ScheduleState | null,
  app: string | null,
): Wanted {
  const isKept = state !== null && state.deletedAt === null;
  if (!isKept) return { ...wanted, app, source: "api", release: null, codeHash: null };
  const { source, release, codeHash } = state;
  return { ...wanted, app: state.app, source, release, codeHash };
}

function idle(state: ScheduleState) {
  const { id, revision } = state;
  return { id, revision, ticks: [], runs: [], progress: progressOf(state) };
}

export async function calendarsOf(
  store: Store,
  { calendars }: { readonly calendars?: unknown },
): Promise<ReadonlyMap<string, CalendarRules>> {
  if (calendars === undefined) return new Map();
  return new Map((await store.calendars()).map(({ name, rules }) => [name, rules]));
}

function definitionOf(
  options: ScheduleOptions,
  params: { readonly calendars: ReadonlyMap<string, CalendarRules>; readonly nowMs: number },
): ScheduleDefinition {
  return readSchedule(options, {
    field: "schedules.upsert()",
    nowMs: params.nowMs,
    calendar: (name) => params.calendars.get(name),
    calendarNames: [...params.calendars.keys()],
  });
}

/** The next ticks of a definition, with notes. */
export function previewOf(
  { definition, when }: { readonly definition: ScheduleDefinition; readonly when: When },
  afterMs: number,
  count: number,
): Preview {
  if (!Number.isInteger(count) || count < 1 || count > PREVIEW_MAX)
    refuse("count", `must be a whole number from 1 to ${PREVIEW_MAX}, for example 10`);
  const ticks: number[] = [];
  for (let at = when.next(afterMs); at !== null && ticks.length < count; at = when.next(at))
    ticks.push(at);
  const last = ticks.at(-1);
  const { cron, timezone, dst } = definition.when;
  if (cron === null || last === undefined)
    return { ticks: ticks.map((at) => new Date(at)), notes: [] };
  const schedule = cronSchedule({ cron, timezone, ...(dst ? { dst } : {}) });
  const touches = dstTouches(schedule, { fromMs: afterMs, untilMs: last, limit: 10 });
  return {
    ticks: ticks.map((at) => new Date(at)),
    notes: touches.map((touch) => `${describeTouch(touch)}.`),
  };
}

function ticksIn(when: When, fromAt: number, toAt: number): number {
  const budget = Number.POSITIVE_INFINITY;
  const { count } = when.survey({ afterMs: fromAt - 1, untilMs: toAt, newest: 0, budget });
  if (count > BACKFILL_MAX)
    refuse("schedules.backfill()", `covers ${count} ticks; at most ${BACKFILL_MAX} at a time`);
  return count;
}

function jobName({ job }: UpsertOptions): string {
  const name = typeof job === "object" && job !== null ? job.name : job;
  return requireName(name, "schedules.upsert().job");
}

function readTrigger(options: TriggerOptions) {
  const members = ["mode", "input", "ifDue", "deliveryId", "by"];
  const problems: Problem[] = refuseUnknownMembers(options, members, "schedules.trigger()");
  const { mode = "manual", ifDue = false, deliveryId } = options;
  if (mode !== "manual" && mode !== "test")
    problems.push({ field: "mode", message: 'must be "manual" or "test"' });
  if (typeof ifDue !== "boolean")
    problems.push({ field: "ifDue", message: "must be true or false" });
  if (ifDue && (options.mode !== undefined || options.input !== undefined))
    problems.push({
      field: "ifDue",
      message: "goes without mode and input: it fires the schedule's own tick",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const delivery =
    deliveryId === undefined
      ? null
      : { id: requireKey(deliveryId, "deliveryId"), hashOf: inputHash };
  return { mode, isIfDue: ifDue, delivery };
}

function readCursor(cursor: string): { readonly at: number; readonly schedule: string } | null {
  const [, at, schedule] = /^(\d{1,16}):(.+)$/s.exec(cursor) ?? [];
  return at === undefined || schedule === undefined ? null : { at: Number(at), schedule };
}

function limitProblems(limit: number): Problem[] {
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX) return [];
  const message = `must be a whole number from 1 to ${LIMIT_MAX}, for example 50`;
  return [{ field: "limit", message }];
}

function instantMs(value: Date | string, field: string): number {
  const instant = readInstant(value);
  return typeof instant === "string" ? refuse(field, instant) : instant;
}

function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}
