// Schedules, their ledger and calendars on PostgreSQL. The advance of many schedules is one
// statement; what else a change may carry (an edit, a backfill, a delivery) goes with it in a
// transaction of its own, which is rare.

import { DEFAULT_QUEUE } from "../../runs/rules/job.js";
import { MONITOR_POLICY } from "../../schedules/rules/monitor.js";
import { OUTCOME_OF, OUTCOMES, REASONS } from "../../schedules/rules/tick.js";
import { traceTag } from "../../shared/trace-context.js";
import { auditParams } from "../audit.js";
import { modeCode } from "../record.js";
import { statusCode } from "../rows.js";
import {
  toBackfillRecord,
  toCalendarRecord,
  toScheduleRecord,
  toScheduleState,
  toScheduleVersion,
  toSeenDefinition,
  toTickRecord,
} from "../schedule-record.js";
import type * as store from "../schedule-store.js";
import { EDIT_KINDS, isOfCadence, SOURCES } from "../schedule-store.js";
import { plainColumn, textArray, textColumn } from "./array.js";
import { ADD_AUDIT, type PostgresAudit } from "./audit.js";
import type { Row } from "./connection.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/schedules.js";
import type { PostgresTransactions } from "./transactions.js";

type Send = (template: string, params: Row) => Promise<Row[]>;

/** Undoes a change of which some other part than its revision did not hold. */
class NotApplied extends Error {}

export class PostgresSchedules implements store.ScheduleStore {
  readonly #asker: PostgresSession;
  readonly #transactions: PostgresTransactions;
  readonly #channel: string;
  readonly #enqueue: PostgresEnqueue;
  readonly #audit: PostgresAudit;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly transactions: PostgresTransactions;
    /** What waiting workers listen to. */
    readonly channel: string;
    readonly enqueue: PostgresEnqueue;
    readonly audit: PostgresAudit;
  }) {
    this.#asker = params.asker;
    this.#transactions = params.transactions;
    this.#channel = params.channel;
    this.#enqueue = params.enqueue;
    this.#audit = params.audit;
  }

  async dueSchedules({ limit, only }: { readonly limit: number; readonly only?: "gates" }) {
    const { work } = this.#asker;
    const statement = only === "gates" ? sql.GATED_SCHEDULES : sql.DUE_SCHEDULES;
    const rows = await this.#asker.attempt("dueSchedules", work, statement, { limit });
    const { now, schedules } = statesOf(rows);
    return { now, schedules, hasMore: schedules.length === limit };
  }

  async scheduleStates({ names }: { readonly names: readonly string[] }) {
    return statesOf(await this.#repeat("scheduleStates", sql.SCHEDULE_STATES, { names }));
  }

  async writeSchedules({
    holder,
    changes,
  }: {
    readonly holder: number | null;
    readonly changes: readonly store.ScheduleChange[];
  }): Promise<readonly number[]> {
    // Of two changes of one schedule only the first is made at its revision.
    const once = [...new Map(changes.toReversed().map((each) => [each.id, each])).values()];
    const plain = once.filter((change) => !hasMore(change));
    const applied: number[] = [];
    if (plain.length > 0) {
      const [row] = await this.#asker.attempt(
        "writeSchedules",
        this.#asker.work,
        sql.ADVANCE_SCHEDULES,
        advanceParams(plain, holder, this.#channel),
      );
      applied.push(...((row?.won ?? []) as number[]));
    }
    for (const change of once.filter(hasMore)) {
      if (await this.#writeWhole(change, holder)) applied.push(change.id);
    }
    return applied;
  }

  async #writeWhole(change: store.ScheduleChange, holder: number | null): Promise<boolean> {
    if (change.edit) await this.#ensureLane(change.edit);
    const kept = change.checkIn && (await this.#checkedIn(change.id, change.checkIn));
    try {
      await this.#transaction("writeSchedules", async (ask) => {
        const [row] = await ask(sql.ADVANCE_SCHEDULES, advanceParams([change], holder, null));
        if (!row?.won) throw new NotApplied();
        await this.#writeRest(change, ask);
        if (kept) await ask(sql.ADD_CHECK_IN, kept);
      });
    } catch (error) {
      if (error instanceof NotApplied) return false;
      throw error;
    }
    return true;
  }

  async #writeRest(change: store.ScheduleChange, ask: Send): Promise<void> {
    const { id, standing, edit, release, revives, delivery, backfill, audit } = change;
    if (audit) await ask(ADD_AUDIT, auditParams(audit));
    if (release !== undefined) await ask(sql.SET_RELEASE, { id, release });
    if (standing) await ask(sql.SET_STANDING, { id, ...standing });
    if (edit) {
      const [row] = await ask(sql.EDIT_SCHEDULE, { id, ...editParams(edit) });
      await addVersion(ask, { id, version: Number(row?.version), edit });
    }
    if (revives && (await ask(sql.REVIVE, { ...revives })).length === 0) throw new NotApplied();
    const { beganAt } = change;
    if (beganAt !== undefined) await ask(sql.SET_BEGAN, { id, beganAt });
    if (delivery) await ask(sql.ADD_DELIVERY, { ...delivery, schedule: id });
    if (backfill) {
      const { state, by, isEnded, isCancelled, run } = backfill;
      await ask(sql.PUT_BACKFILL, { ...state, schedule: id, by, isEnded, isCancelled });
      await ask(sql.SET_BACKFILL, { id, backfill: state.id, isEnded });
      if (run)
        await ask(sql.ADD_BACKFILL_RUN, {
          schedule: id,
          at: run.at,
          backfill: state.id,
          run: run.id,
        });
    }
  }

  async createSchedule({ name, edit, progress, audit }: store.NewSchedule): Promise<number | null> {
    await this.#ensureLane(edit);
    return this.#transaction("createSchedule", async (ask) => {
      const [row] = await ask(sql.CREATE_SCHEDULE, {
        name,
        ...editParams(edit),
        ...progress,
        live: `{${progress.live.join(",")}}`,
      });
      if (!row) return null;
      const id = Number(row.id);
      await addVersion(ask, { id, version: 1, edit });
      if (audit) await ask(ADD_AUDIT, auditParams(audit));
      return id;
    });
  }

  /** What a check-in is stored with: the lane and the policy that its run has in place of a job's. */
  async #checkedIn(schedule: number, checkIn: store.CheckIn): Promise<Row> {
    const [row] = await this.#repeat("writeSchedules", sql.JOB_OF_SCHEDULE, { id: schedule });
    return {
      ...checkIn,
      schedule,
      mode: modeCode(checkIn.mode),
      status: statusCode(checkIn.status),
      lane: await this.#enqueue.lane(DEFAULT_QUEUE, String(row?.job)),
      policy: await this.#enqueue.policy(MONITOR_POLICY),
    };
  }

  /** A schedule may send its runs to a queue that its job never used. */
  async #ensureLane({ queue, job }: store.ScheduleEdit): Promise<void> {
    if (queue !== null) await this.#enqueue.lane(queue, job);
  }

  async schedules(filter: store.ScheduleFilter): Promise<readonly store.ScheduleRecord[]> {
    const { name = null, after = null, job = null, app = null, state = null, limit } = filter;
    const params = { name, after, job, app, state, limit };
    return (await this.#repeat("schedules", sql.LIST_SCHEDULES, params)).map(toScheduleRecord);
  }

  async ticks(filter: store.TickFilter): Promise<readonly store.TickRecord[]> {
    const template = filter.schedule === undefined ? sql.LIST_TICKS : sql.SCHEDULE_TICKS;
    const rows = await this.#repeat("ticks", template, {
      schedule: filter.schedule ?? null,
      fromAt: filter.fromAt ?? null,
      toAt: filter.toAt ?? null,
      outcome: filter.outcome === undefined ? null : OUTCOMES.indexOf(filter.outcome),
      beforeAt: filter.before?.at ?? null,
      beforeSchedule: filter.before?.schedule ?? null,
      limit: filter.limit,
    });
    return rows.map(toTickRecord);
  }

  async scheduleVersions(params: { readonly name: string }) {
    const rows = await this.#repeat("scheduleVersions", sql.SCHEDULE_VERSIONS, params);
    return rows.map(toScheduleVersion);
  }

  async delivery(params: { readonly schedule: number; readonly id: string }) {
    const [row] = await this.#repeat("delivery", sql.DELIVERY, params);
    return row ? { run: String(row.run), inputHash: String(row.input_hash) } : null;
  }

  async completedTicks(params: {
    readonly schedule: number;
    readonly ticks: readonly number[];
  }): Promise<readonly number[]> {
    const rows = await this.#repeat("completedTicks", sql.COMPLETED_TICKS, params);
    return rows.map((row) => Number(row.at));
  }

  async backfills(params: { readonly name: string }) {
    return (await this.#repeat("backfills", sql.BACKFILLS, params)).map(toBackfillRecord);
  }

  async seenDefinitions(params: { readonly schedule: number }) {
    const rows = await this.#repeat("seenDefinitions", sql.SEEN_DEFINITIONS, params);
    return rows.map(toSeenDefinition);
  }

  async declaredNames(params: { readonly app: string | null }) {
    type Stored = { name: string; pausedBy: string | null; isPaused: boolean };
    const [row] = await this.#repeat("declaredNames", sql.DECLARED_NAMES, params);
    return {
      announced: (row?.announced ?? []) as string[],
      stored: (row?.stored ?? []) as Stored[],
    };
  }

  async schedulesByTzdata(params: { readonly not: string; readonly limit: number }) {
    const rows = await this.#repeat("schedulesByTzdata", sql.SCHEDULES_BY_TZDATA, params);
    return rows.map((row) => String(row.name));
  }

  async calendars() {
    return (await this.#repeat("calendars", sql.CALENDARS, {})).map(toCalendarRecord);
  }

  async putCalendar({
    name,
    rules,
    by,
    audit,
  }: Parameters<store.ScheduleStore["putCalendar"]>[0]): Promise<void> {
    const params = { name, rules: JSON.stringify(rules), by };
    const template = sql.PUT_CALENDAR;
    await this.#audit.change({ what: "putCalendar", template, params, audit, isDone: () => true });
  }

  async removeCalendar({
    name,
    audit,
  }: Parameters<store.ScheduleStore["removeCalendar"]>[0]): Promise<boolean> {
    const row = await this.#audit.change({
      what: "removeCalendar",
      template: sql.REMOVE_CALENDAR,
      params: { name },
      audit,
      isDone: (found) => found !== undefined,
    });
    return row !== undefined;
  }

  #repeat(what: string, template: string, params: Row): Promise<Row[]> {
    return this.#asker.repeat(what, template, params);
  }

  #transaction<T>(what: string, work: (ask: Send) => Promise<T>): Promise<T> {
    return this.#asker.described(what, () =>
      this.#transactions.run((query) =>
        work((template, params) => this.#asker.within(query, template, params)),
      ),
    );
  }
}

/** Whether a change carries more than the ticker's own. */
function hasMore(change: store.ScheduleChange): boolean {
  const { standing, edit, release, revives, delivery, backfill, audit, beganAt, checkIn } = change;
  return [standing, edit, release, revives, delivery, backfill, audit, beganAt, checkIn].some(
    (each) => each !== undefined,
  );
}

function statesOf(rows: readonly Row[]) {
  const found = rows.filter((row) => row.id !== null);
  return { now: Number(rows[0]?.now), schedules: found.map(toScheduleState) };
}

async function addVersion(
  ask: Send,
  params: { readonly id: number; readonly version: number; readonly edit: store.ScheduleEdit },
): Promise<void> {
  const { id, version, edit } = params;
  const { job, definition, input, anchorAt, by, codeHash, release, isForced } = edit;
  const kind = EDIT_KINDS.indexOf(edit.kind);
  await ask(sql.ADD_VERSION, { id, version, kind, by, job, definition, input, anchorAt });
  if (codeHash !== null) await ask(sql.SEE_DEFINITION, { id, codeHash, release, isForced });
}

function editParams(edit: store.ScheduleEdit): Row {
  return {
    job: edit.job,
    queue: edit.queue,
    priority: edit.priority,
    tags: edit.tags.length === 0 ? null : textArray(edit.tags),
    input: edit.input,
    definition: edit.definition,
    anchorAt: edit.anchorAt,
    rangeMin: edit.range?.minMs ?? null,
    rangeMax: edit.range?.maxMs ?? null,
    failMin: edit.afterFailure?.minMs ?? null,
    failMax: edit.afterFailure?.maxMs ?? null,
    app: edit.app,
    source: SOURCES.indexOf(edit.source),
    release: edit.release,
    codeHash: edit.codeHash,
    isDeleted: edit.isDeleted,
  };
}

/** Column by column, without an object for each row in between: this is a hot path. */
function advanceParams(
  changes: readonly store.ScheduleChange[],
  holder: number | null,
  channel: string | null,
): Row {
  const ticks = changes.flatMap(({ id, ticks: own }) => own.map((tick) => ({ id, tick })));
  const runs = changes.flatMap(({ id, runs: own }) => own.map((run) => ({ id, run })));
  const opens = changes.filter((change) => change.opens !== undefined);
  const hasWork = opens.length > 0 || runs.length > 0;
  return {
    holder,
    channel: hasWork ? channel : null,
    ids: plainColumn(changes, ({ id }) => id),
    revisions: plainColumn(changes, ({ revision }) => revision),
    cursors: plainColumn(changes, ({ progress }) => progress.cursorAt),
    nexts: plainColumn(changes, ({ progress }) => progress.nextAt),
    ends: plainColumn(changes, ({ progress }) => progress.isEnded),
    holds: plainColumn(changes, ({ progress }) => progress.holdUntil),
    holdRuns: plainColumn(changes, ({ progress }) => progress.holdRun),
    lastRuns: plainColumn(changes, ({ progress }) => progress.lastRun),
    lastTicks: plainColumn(changes, ({ progress }) => progress.lastTickAt),
    lives: textColumn(changes, ({ progress }) => `{${progress.live.join(",")}}`),
    gates: plainColumn(changes, ({ progress }) => progress.isGated),
    replacings: plainColumn(changes, ({ progress }) => progress.isReplacing),
    tzdatas: textColumn(changes, ({ progress }) => progress.tzdata),
    tickSchedules: plainColumn(ticks, ({ id }) => id),
    tickFirsts: plainColumn(ticks, ({ tick }) => tick.firstAt),
    tickLasts: plainColumn(ticks, ({ tick }) => tick.lastAt),
    tickCounts: plainColumn(ticks, ({ tick }) => tick.count),
    tickOutcomes: plainColumn(ticks, ({ tick }) => OUTCOMES.indexOf(OUTCOME_OF[tick.reason])),
    tickReasons: plainColumn(ticks, ({ tick }) => REASONS.indexOf(tick.reason)),
    tickRuns: plainColumn(ticks, ({ tick }) => tick.run),
    tickEvidence: textColumn(ticks, ({ tick }) => tick.evidence && JSON.stringify(tick.evidence)),
    runSchedules: plainColumn(runs, ({ id }) => id),
    runIds: plainColumn(runs, ({ run }) => run.id),
    runModes: plainColumn(runs, ({ run }) => modeCode(run.mode)),
    runNominals: plainColumn(runs, ({ run }) => run.nominalAt),
    runGates: plainColumn(runs, ({ run }) => run.isGated),
    runInputs: textColumn(runs, ({ run }) => run.input),
    cadenced: plainColumn(changes.filter(isOfCadence), ({ id }) => id),
    runTraces: textColumn(runs, ({ run }) =>
      run.trace === undefined ? null : traceTag(run.trace),
    ),
    openSchedules: plainColumn(opens, ({ id }) => id),
    openRuns: plainColumn(opens, ({ opens: run }) => run ?? null),
  };
}
