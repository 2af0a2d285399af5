// Schedules on SQLite: what is read of them, new ones, calendars. What changes a schedule that exists
// is in sqlite-schedule-changes.ts.

import { OUTCOMES } from "../../schedules/rules/tick.js";
import {
  toBackfillRecord,
  toCalendarRecord,
  toScheduleRecord,
  toScheduleState,
  toScheduleVersion,
  toSeenDefinition,
  toTickRecord,
} from "../schedule-record.js";
import * as schedules from "../schedule-store.js";
import type { SqliteAudit } from "./audit.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteLeases } from "./leases.js";
import type { SqlitePause } from "./pause.js";
import { SqliteScheduleChanges } from "./schedule-changes.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/schedules.js";

export class SqliteSchedules implements schedules.ScheduleStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #changes: SqliteScheduleChanges;
  readonly #audit: SqliteAudit;

  constructor(params: {
    readonly asker: SqliteSession;
    readonly enqueue: SqliteEnqueue;
    readonly leases: SqliteLeases;
    readonly flow: SqliteLimits;
    readonly pause: SqlitePause;
    readonly audit: SqliteAudit;
  }) {
    const { asker, ...parts } = params;
    this.#asker = asker;
    this.#file = asker.file;
    this.#changes = new SqliteScheduleChanges({ file: asker.file, ...parts });
    this.#audit = params.audit;
  }

  async dueSchedules({ limit, only }: { readonly limit: number; readonly only?: "gates" }) {
    return this.#asker.read((now) => {
      const rows =
        only === "gates"
          ? this.#file.all(sql.GATED_SCHEDULES, { limit })
          : this.#file.all(sql.DUE_SCHEDULES, { limit, now });
      return { now, schedules: rows.map(stateOf), hasMore: rows.length >= limit };
    });
  }

  async scheduleStates({ names }: { readonly names: readonly string[] }) {
    return this.#file.read(() => {
      const rows = this.#file.all(sql.SCHEDULE_STATES, { names: JSON.stringify(names) });
      return { now: this.#asker.now(), schedules: rows.map(stateOf) };
    });
  }

  async writeSchedules(params: {
    readonly holder: number | null;
    readonly changes: readonly schedules.ScheduleChange[];
  }): Promise<readonly number[]> {
    return this.#asker.write("writeSchedules", (now) => this.#changes.apply(params, now));
  }

  async createSchedule(params: schedules.NewSchedule): Promise<number | null> {
    return this.#asker.write("createSchedule", (now) => this.#changes.create(params, now));
  }

  async schedules(filter: schedules.ScheduleFilter): Promise<readonly schedules.ScheduleRecord[]> {
    const rows = await this.#all(sql.LIST_SCHEDULES, filter);
    return rows.map((row) => toScheduleRecord({ ...row, live: row.live_now }));
  }

  async ticks(filter: schedules.TickFilter): Promise<readonly schedules.TickRecord[]> {
    const { schedule, fromAt, toAt, outcome, before, limit } = filter;
    const statement = schedule === undefined ? sql.LIST_TICKS.ofAll : sql.LIST_TICKS.ofOne;
    const rows = await this.#all(statement, {
      schedule,
      fromAt,
      // One bound for both, so that the index is entered where the page begins.
      untilAt: Math.min(toAt ?? Number.MAX_SAFE_INTEGER, before?.at ?? Number.MAX_SAFE_INTEGER),
      outcome: outcome && OUTCOMES.indexOf(outcome),
      beforeAt: before?.at,
      beforeSchedule: before?.schedule,
      limit,
    });
    return rows.map(toTickRecord);
  }

  async scheduleVersions(params: { readonly name: string }) {
    return (await this.#all(sql.SCHEDULE_VERSIONS, params)).map(toScheduleVersion);
  }

  async delivery(params: { readonly schedule: number; readonly id: string }) {
    const [row] = await this.#all(sql.DELIVERY, params);
    return row ? { run: String(row.run), inputHash: String(row.input_hash) } : null;
  }

  async completedTicks(params: {
    readonly schedule: number;
    readonly ticks: readonly number[];
  }): Promise<readonly number[]> {
    const { schedule, ticks } = params;
    const rows = await this.#all(sql.COMPLETED_TICKS, { schedule, ticks: JSON.stringify(ticks) });
    return rows.map((row) => Number(row.at));
  }

  async backfills(params: { readonly name: string }) {
    return (await this.#all(sql.BACKFILLS, params)).map(toBackfillRecord);
  }

  async seenDefinitions(params: { readonly schedule: number }) {
    return (await this.#all(sql.SEEN_DEFINITIONS, params)).map(toSeenDefinition);
  }

  async declaredNames({ app }: { readonly app: string | null }) {
    return this.#asker.read((now) => {
      const announced = this.#file.all(sql.ANNOUNCED_SCHEDULES, { app, now });
      const source = schedules.SOURCES.indexOf("code");
      const stored = this.#file.all(sql.STORED_DECLARED, { app, source });
      return {
        announced: announced.map((row) => String(row.name)),
        stored: stored.map((row) => ({
          name: String(row.name),
          pausedBy: row.paused_by as string | null,
          isPaused: row.is_paused === 1,
        })),
      };
    });
  }

  async schedulesByTzdata(params: { readonly not: string; readonly limit: number }) {
    return (await this.#all(sql.SCHEDULES_BY_TZDATA, params)).map((row) => String(row.name));
  }

  async calendars() {
    return (await this.#all(sql.CALENDARS)).map(toCalendarRecord);
  }

  readonly putCalendar: schedules.ScheduleStore["putCalendar"] = async ({ audit, ...params }) => {
    const rules = JSON.stringify(params.rules);
    await this.#audit.change({
      what: "putCalendar",
      audit,
      work: (now) => this.#file.run(sql.PUT_CALENDAR, { ...params, rules, now }),
      isDone: () => true,
    });
  };

  readonly removeCalendar: schedules.ScheduleStore["removeCalendar"] = ({ name, audit }) =>
    this.#audit.change({
      what: "removeCalendar",
      audit,
      work: () => this.#file.run(sql.REMOVE_CALENDAR, { name }) > 0,
      isDone: (isRemoved) => isRemoved,
    });

  #all(statement: string, params: Row = {}): Promise<Row[]> {
    return this.#file.read(() => this.#file.all(statement, params));
  }
}

function stateOf(row: Row): schedules.ScheduleState {
  return toScheduleState(JSON.parse(String(row.state)) as Row);
}
