// Finds due schedules and writes changes of schedules on SQLite, each call in one write transaction. The parts that every
// pass of the ticker writes (ledger rows, runs, progress) go in one statement each for the whole batch; the rest is rare.

import { DEFAULT_QUEUE } from "../../runs/rules/job.js";
import type { RunId } from "../../runs/rules/run.js";
import { MONITOR_POLICY } from "../../schedules/rules/monitor.js";
import { OUTCOME_OF, OUTCOMES, REASONS } from "../../schedules/rules/tick.js";
import { traceTag } from "../../shared/trace-context.js";
import { PAUSE_ON } from "../pause.js";
import { modeCode, statusCode } from "../rows.js";
import * as schedules from "../schedules/changes.js";
import { Schedules } from "../schedules/schedules.js";
import { type ScheduleState, toScheduleState } from "../schedules/state.js";
import {
  type CheckInNumbers,
  createSchedule,
  JOB_OF_SCHEDULE,
  writeRest,
} from "../schedules/writes.js";
import { row } from "../session.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import { type LeaseRows, OUTCOME } from "./lease-rows.js";
import type { SqliteLimits } from "./limits.js";
import * as sql from "./schedule-statements.js";
import type { SqliteSession } from "./session.js";

type Change = schedules.ScheduleChange;

export class SqliteSchedules extends Schedules {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #enqueue: SqliteEnqueue;
  readonly #leases: LeaseRows;
  readonly #limits: SqliteLimits;

  constructor(params: {
    readonly session: SqliteSession;
    readonly enqueue: SqliteEnqueue;
    readonly leases: LeaseRows;
    readonly limits: SqliteLimits;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#file = params.session.file;
    this.#enqueue = params.enqueue;
    this.#leases = params.leases;
    this.#limits = params.limits;
  }

  async due({ limit, only }: { readonly limit: number; readonly only?: "gates" }) {
    return this.#session.look((now) => {
      const rows =
        only === "gates"
          ? this.#file.all(sql.GATED_SCHEDULES, { limit })
          : this.#file.all(sql.DUE_SCHEDULES, { limit, now });
      return { now, schedules: rows.map(stateOf), hasMore: rows.length >= limit };
    });
  }

  async states({ names }: { readonly names: readonly string[] }) {
    return this.#file.read(() => {
      const rows = this.#file.all(sql.SCHEDULE_STATES, { names: JSON.stringify(names) });
      return { now: this.#session.now(), schedules: rows.map(stateOf) };
    });
  }

  async write(params: {
    readonly holder: number | null;
    readonly changes: readonly schedules.ScheduleChange[];
  }): Promise<readonly number[]> {
    return this.#session.transact("schedules.write", (now) => this.#apply(params, now));
  }

  create(schedule: schedules.NewSchedule): Promise<number | null> {
    return this.#session.transact("schedules.create", (now) => {
      this.#ensureLane(schedule.edit);
      return this.#session.drive(createSchedule(schedule), now);
    });
  }

  #apply(
    { holder, changes }: { readonly holder: number | null; readonly changes: readonly Change[] },
    now: number,
  ): number[] {
    const applied = this.#applicable(changes);
    if (applied.length === 0) return [];
    // Ticks up to now are settled by the old definition: before any edit.
    this.#insertTicks(applied, holder, now);
    this.#insertRuns(applied, now);
    this.#file.runEach(
      sql.SET_PROGRESS,
      applied.map(({ id, progress }) => progressRow(id, progress)),
    );
    this.#openGates(applied, now);
    for (const change of applied) this.#writeRest(change, now);
    return applied.map(({ id }) => id);
  }

  /** Those that are still at their revision. Of two changes of one schedule the first counts. */
  #applicable(changes: readonly Change[]): Change[] {
    const rows = changes.map(({ id, revision }) => [id, revision]);
    const [found] = this.#file.allEach(sql.UNCHANGED, rows);
    const unchanged = new Set(JSON.parse(String(found?.ids)) as number[]);
    // Nothing fires while everything is paused: such changes are decided again later.
    const isPaused = changes.some(schedules.isOfCadence) && this.#file.get(PAUSE_ON) !== undefined;
    const mayBe = (change: Change) => !isPaused || !schedules.isOfCadence(change);
    return changes.filter(
      (change) => unchanged.delete(change.id) && mayBe(change) && this.#isRevivable(change),
    );
  }

  #isRevivable({ revives }: Change): boolean {
    if (!revives) return true;
    const status = this.#file.get(OUTCOME, { id: revives.id })?.status;
    return status === statusCode("failed") || status === statusCode("cancelled");
  }

  #insertTicks(changes: readonly Change[], holder: number | null, now: number): void {
    const rows = changes.flatMap(({ id, ticks }) =>
      ticks.map(({ firstAt, lastAt, count, reason, run, evidence }) => [
        id,
        firstAt,
        lastAt,
        count,
        OUTCOMES.indexOf(OUTCOME_OF[reason]),
        REASONS.indexOf(reason),
        run,
        evidence && JSON.stringify(evidence),
      ]),
    );
    if (rows.length > 0) this.#file.runEach(sql.INSERT_TICKS, rows, { holder, now });
  }

  #insertRuns(changes: readonly Change[], now: number): void {
    const rows: unknown[] = [];
    let ready: RunId[] = [];
    const gated: RunId[] = [];
    for (const change of changes) {
      for (const { id, mode, nominalAt, isGated, input, trace } of change.runs) {
        const tag = trace === undefined ? null : traceTag(trace);
        rows.push([change.id, id, modeCode(mode), nominalAt, input, tag]);
        (isGated ? gated : ready).push(id);
      }
    }
    if (rows.length === 0) return;
    this.#file.runEach(sql.INSERT_SCHEDULE_RUNS, rows, { now });
    const flows = this.#limits.flowsOf([...ready, ...gated]);
    const standing = ready.filter((id) => flows.has(id));
    if (standing.length > 0) ready = ready.filter((id) => !flows.has(id));
    if (ready.length > 0)
      this.#file.run(sql.READY_SCHEDULE_RUNS, { ids: JSON.stringify(ready), now });
    const held = [...gated, ...standing];
    if (held.length > 0) this.#file.run(sql.GATE_SCHEDULE_RUNS, { ids: JSON.stringify(held), now });
    for (const [id, flow] of flows) this.#limits.keep(id, flow);
    for (const id of standing) this.#limits.stand(id, flows.get(id) as number, now);
  }

  #openGates(changes: readonly Change[], now: number): void {
    const opened = changes.flatMap(({ opens }) => (opens === undefined ? [] : [opens]));
    if (opened.length === 0) return;
    const ids = JSON.stringify(opened);
    const limited = this.#file.all(sql.LIMITED_GATED, { ids });
    for (const { id, flow } of limited) this.#limits.stand(String(id), Number(flow), now);
    this.#file.run(sql.OPEN_GATES, { ids });
    this.#file.run(sql.DELETE_OPENED, { ids });
  }

  #writeRest(change: Change, now: number): void {
    const { id, edit, revives, checkIn } = change;
    if (edit) this.#ensureLane(edit);
    const numbers = checkIn && this.#checkInNumbers(id, now);
    this.#session.drive(writeRest(change, numbers), now);
    if (revives) this.#leases.revive(revives, now);
  }

  #checkInNumbers(id: number, now: number): CheckInNumbers {
    const job = String(this.#session.drive(row(JOB_OF_SCHEDULE, { id }), now)?.job);
    return {
      lane: this.#enqueue.lane(DEFAULT_QUEUE, job),
      policy: this.#enqueue.policy(MONITOR_POLICY),
    };
  }

  /** A schedule may send its runs to a queue that its job never used. */
  #ensureLane({ queue, job }: schedules.ScheduleEdit): void {
    if (queue !== null) this.#enqueue.lane(queue, job);
  }
}

function progressRow(id: number, progress: schedules.ScheduleProgress): unknown[] {
  return [
    id,
    progress.cursorAt,
    progress.nextAt,
    progress.isEnded ? 1 : 0,
    progress.holdUntil,
    progress.holdRun,
    progress.lastRun,
    progress.lastTickAt,
    progress.live,
    progress.isGated ? 1 : 0,
    progress.isReplacing ? 1 : 0,
    progress.tzdata,
  ];
}

function stateOf(row: Row): ScheduleState {
  return toScheduleState(JSON.parse(String(row.state)) as Row);
}
