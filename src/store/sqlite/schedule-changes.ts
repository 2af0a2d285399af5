// Changes of schedules on SQLite, inside of a write transaction. What every pass of the ticker writes
// (ledger rows, runs, progress) goes in one statement each for the whole batch; the rest is rare.

import { DEFAULT_QUEUE } from "../../runs/rules/job.js";
import type { RunId } from "../../runs/rules/run.js";
import { MONITOR_POLICY } from "../../schedules/rules/monitor.js";
import { OUTCOME_OF, OUTCOMES, REASONS } from "../../schedules/rules/tick.js";
import { traceTag } from "../../shared/trace-context.js";
import { modeCode } from "../record.js";
import { statusCode } from "../rows.js";
import * as schedules from "../schedule-store.js";
import type { SqliteAudit } from "./audit.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteLeases } from "./leases.js";
import type { SqlitePause } from "./pause.js";
import * as sql from "./sql/schedule-changes.js";
import * as runs from "./sql/statements.js";

type Change = schedules.ScheduleChange;

export class SqliteScheduleChanges {
  readonly #file: SqliteFile;
  readonly #enqueue: SqliteEnqueue;
  readonly #leases: SqliteLeases;
  readonly #flow: SqliteLimits;
  readonly #pause: SqlitePause;
  readonly #audit: SqliteAudit;

  constructor(params: {
    readonly file: SqliteFile;
    readonly enqueue: SqliteEnqueue;
    readonly leases: SqliteLeases;
    readonly flow: SqliteLimits;
    readonly pause: SqlitePause;
    readonly audit: SqliteAudit;
  }) {
    this.#file = params.file;
    this.#enqueue = params.enqueue;
    this.#leases = params.leases;
    this.#flow = params.flow;
    this.#pause = params.pause;
    this.#audit = params.audit;
  }

  apply(
    { holder, changes }: { readonly holder: number | null; readonly changes: readonly Change[] },
    now: number,
  ): number[] {
    const applied = this.#applicable(changes);
    if (applied.length === 0) return [];
    // The books are closed by the definition that was valid until now: before any edit.
    this.#insertTicks(applied, holder, now);
    this.#insertRuns(applied, now);
    this.#file.runEach(
      sql.SET_PROGRESS,
      applied.map(({ id, progress }) => progressRow(id, progress)),
    );
    this.#openGates(applied, now);
    for (const change of applied) this.#applyRare(change, now);
    return applied.map(({ id }) => id);
  }

  create({ name, edit, progress, audit }: schedules.NewSchedule, now: number): number | null {
    const created = this.#file.get(sql.CREATE_SCHEDULE, {
      ...progress,
      ...definitionRow(edit),
      live: JSON.stringify(progress.live),
      name,
      now,
    });
    if (!created) return null;
    const id = Number(created.id);
    this.#keepEdit(id, edit, now);
    if (audit) this.#audit.add(audit, now);
    return id;
  }

  /** Those that are still at their revision. Of two changes of one schedule the first counts. */
  #applicable(changes: readonly Change[]): Change[] {
    const rows = changes.map(({ id, revision }) => [id, revision]);
    const [found] = this.#file.allEach(sql.UNCHANGED, rows);
    const unchanged = new Set(JSON.parse(String(found?.ids)) as number[]);
    // Nothing is fired while everything is paused: what would have been is decided anew.
    const isPaused = changes.some(schedules.isOfCadence) && this.#pause.isOn;
    const mayBe = (change: Change) => !isPaused || !schedules.isOfCadence(change);
    return changes.filter(
      (change) => unchanged.delete(change.id) && mayBe(change) && this.#isRevivable(change),
    );
  }

  #isRevivable({ revives }: Change): boolean {
    if (!revives) return true;
    const status = this.#file.get(runs.OUTCOME, { id: revives.id })?.status;
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
    const flows = this.#flow.flowsOf([...ready, ...gated]);
    const standing = ready.filter((id) => flows.has(id));
    if (standing.length > 0) ready = ready.filter((id) => !flows.has(id));
    if (ready.length > 0)
      this.#file.run(sql.READY_SCHEDULE_RUNS, { ids: JSON.stringify(ready), now });
    const held = [...gated, ...standing];
    if (held.length > 0) this.#file.run(sql.GATE_SCHEDULE_RUNS, { ids: JSON.stringify(held), now });
    for (const [id, flow] of flows) this.#flow.keep(id, flow);
    for (const id of standing) this.#flow.stand(id, flows.get(id) as number, now);
  }

  #openGates(changes: readonly Change[], now: number): void {
    const opened = changes.flatMap(({ opens }) => (opens === undefined ? [] : [opens]));
    if (opened.length === 0) return;
    const ids = JSON.stringify(opened);
    const limited = this.#file.all(sql.LIMITED_GATED, { ids });
    for (const { id, flow } of limited) this.#flow.stand(String(id), Number(flow), now);
    this.#file.run(sql.OPEN_GATES, { ids });
    this.#file.run(sql.DELETE_OPENED, { ids });
  }

  #applyRare(change: Change, now: number): void {
    const { id, standing, edit, release, revives, delivery, backfill, audit } = change;
    const { beganAt, checkIn } = change;
    if (audit) this.#audit.add(audit, now);
    if (release !== undefined) this.#file.run(sql.SET_RELEASE, { release, schedule: id });
    if (standing) this.#file.run(sql.SET_STANDING, { ...standing, schedule: id, now });
    if (edit) {
      this.#file.run(sql.EDIT_SCHEDULE, { ...definitionRow(edit), schedule: id, now });
      this.#keepEdit(id, edit, now);
    }
    if (revives) this.#leases.revive(revives, now);
    if (delivery) this.#file.run(sql.KEEP_DELIVERY, { ...delivery, schedule: id });
    if (backfill) this.#keepBackfill(id, backfill, now);
    if (beganAt !== undefined) this.#file.run(sql.SET_BEGAN, { beganAt, schedule: id });
    if (checkIn) this.#keepCheckIn(id, checkIn, now);
  }

  #keepCheckIn(schedule: number, checkIn: schedules.CheckIn, now: number): void {
    const { id, nominalAt, ranMs, error } = checkIn;
    const job = String(this.#file.get(sql.JOB_OF_SCHEDULE, { schedule })?.job);
    const lane = this.#enqueue.lane(DEFAULT_QUEUE, job);
    const policy = this.#enqueue.policy(MONITOR_POLICY);
    const mode = modeCode(checkIn.mode);
    const status = statusCode(checkIn.status);
    if (!checkIn.isAgain)
      this.#file.run(sql.INSERT_CHECKED_IN, { id, lane, policy, mode, schedule, nominalAt, now });
    this.#file.run(sql.PUT_CHECK_IN, { id, lane, ranMs, status, error, now });
    this.#file.runEach(runs.COUNT_OUTCOMES, [[lane, mode, status, 1, ranMs ?? 0]], { now });
  }

  #keepEdit(schedule: number, edit: schedules.ScheduleEdit, now: number): void {
    const { job, by, release, codeHash, isForced } = edit;
    const kind = schedules.EDIT_KINDS.indexOf(edit.kind);
    this.#file.run(sql.KEEP_VERSION, { schedule, kind, by, now });
    if (codeHash !== null)
      this.#file.run(sql.SEE_DEFINITION, { schedule, codeHash, release, isForced, now });
    // A job that nobody announced yet brings its own lane along when somebody does.
    const queue = edit.queue ?? this.#file.get(sql.QUEUE_OF_JOB, { job })?.queue;
    if (queue !== undefined) this.#enqueue.lane(String(queue), job);
  }

  #keepBackfill(schedule: number, change: schedules.BackfillChange, now: number): void {
    const { state, isNew, by, isEnded, isCancelled, run } = change;
    const statement = isNew ? sql.INSERT_BACKFILL : sql.UPDATE_BACKFILL;
    this.#file.run(statement, { ...state, schedule, by, isEnded, isCancelled, now });
    this.#file.run(sql.SET_BACKFILL, { id: state.id, schedule, isEnded });
    if (run) {
      this.#file.run(sql.KEEP_BACKFILL_RUN, { id: state.id, schedule, at: run.at, run: run.id });
    }
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

/** The columns that an edit sets. */
function definitionRow(edit: schedules.ScheduleEdit): Row {
  const { job, queue, priority, tags, input, definition, anchorAt, app, release, codeHash } = edit;
  return {
    job,
    queue,
    priority,
    tags: tags.length === 0 ? null : JSON.stringify(tags),
    input,
    definition,
    anchorAt,
    rangeMin: edit.range?.minMs,
    rangeMax: edit.range?.maxMs,
    failMin: edit.afterFailure?.minMs,
    failMax: edit.afterFailure?.maxMs,
    app,
    source: schedules.SOURCES.indexOf(edit.source),
    release,
    codeHash,
    isDeleted: edit.isDeleted,
  };
}
