// Finds due schedules and writes changes of schedules on PostgreSQL. The advance of many schedules is one statement;
// everything else that a change may carry (an edit, a backfill, a delivery) goes with it in a transaction of its own,
// which is rare.

import { DEFAULT_QUEUE } from "../../runs/rules/job.js";
import { MONITOR_POLICY } from "../../schedules/rules/monitor.js";
import { OUTCOME_OF, OUTCOMES, REASONS } from "../../schedules/rules/tick.js";
import { traceTag } from "../../shared/trace-context.js";
import { modeCode } from "../rows.js";
import {
  isOfCadence,
  type NewSchedule,
  type ScheduleChange,
  type ScheduleEdit,
} from "../schedules/changes.js";
import { Schedules } from "../schedules/schedules.js";
import { toScheduleState } from "../schedules/state.js";
import {
  type CheckInNumbers,
  createSchedule,
  JOB_OF_SCHEDULE,
  writeRest,
} from "../schedules/writes.js";
import { row } from "../session.js";
import { plainColumn, textColumn } from "./connection/array.js";
import type { Row } from "./connection/connection.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/schedules.js";

/** Undoes a change if a condition beside its revision no longer holds. */
class NotApplied extends Error {}

export class PostgresSchedules extends Schedules {
  readonly #session: PostgresSession;
  readonly #channel: string;
  readonly #enqueue: PostgresEnqueue;

  constructor(params: {
    readonly session: PostgresSession;
    /** What waiting workers listen to. */
    readonly channel: string;
    readonly enqueue: PostgresEnqueue;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#channel = params.channel;
    this.#enqueue = params.enqueue;
  }

  async due({ limit, only }: { readonly limit: number; readonly only?: "gates" }) {
    const { work } = this.#session;
    const statement = only === "gates" ? sql.GATED_SCHEDULES : sql.DUE_SCHEDULES;
    const rows = await this.#session.attempt("schedules.due", work, statement, { limit });
    const { now, schedules } = statesOf(rows);
    return { now, schedules, hasMore: schedules.length === limit };
  }

  async states({ names }: { readonly names: readonly string[] }) {
    return statesOf(await this.#session.repeat("schedules.states", sql.SCHEDULE_STATES, { names }));
  }

  async write({
    holder,
    changes,
  }: {
    readonly holder: number | null;
    readonly changes: readonly ScheduleChange[];
  }): Promise<readonly number[]> {
    // Of two changes of one schedule only the first is made at its revision.
    const once = [...new Map(changes.toReversed().map((each) => [each.id, each])).values()];
    const plain = once.filter((change) => !hasMore(change));
    const applied: number[] = [];
    if (plain.length > 0) {
      const [row] = await this.#session.attempt(
        "schedules.write",
        this.#session.work,
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

  async #writeWhole(change: ScheduleChange, holder: number | null): Promise<boolean> {
    if (change.edit) await this.#ensureLane(change.edit);
    const numbers = change.checkIn && (await this.#checkInNumbers(change.id));
    try {
      await this.#session.transaction("schedules.write", { lost: "report" }, function* () {
        const applied = yield* row(sql.ADVANCE_SCHEDULES, advanceParams([change], holder, null));
        if (!applied?.won) throw new NotApplied();
        yield* writeRest(change, numbers);
        if (change.revives && !(yield* row(sql.REVIVE, change.revives))) throw new NotApplied();
      });
    } catch (error) {
      if (error instanceof NotApplied) return false;
      throw error;
    }
    return true;
  }

  async create(schedule: NewSchedule): Promise<number | null> {
    await this.#ensureLane(schedule.edit);
    const how = { lost: "report" } as const;
    return this.#session.transaction("schedules.create", how, () => createSchedule(schedule));
  }

  async #checkInNumbers(id: number): Promise<CheckInNumbers> {
    const [found] = await this.#session.read({
      ...{ verb: "schedules.write", sql: JOB_OF_SCHEDULE, params: { id } },
    });
    return {
      lane: await this.#enqueue.lane(DEFAULT_QUEUE, String(found?.job)),
      policy: await this.#enqueue.policy(MONITOR_POLICY),
    };
  }

  /** A schedule may send its runs to a queue that its job never used. */
  async #ensureLane({ queue, job }: ScheduleEdit): Promise<void> {
    if (queue !== null) await this.#enqueue.lane(queue, job);
  }
}

/** Whether a change carries more than the ticker's own changes. */
function hasMore(change: ScheduleChange): boolean {
  const { standing, edit, release, revives, delivery, backfill, audit, beganAt, checkIn } = change;
  return [standing, edit, release, revives, delivery, backfill, audit, beganAt, checkIn].some(
    (each) => each !== undefined,
  );
}

function statesOf(rows: readonly Row[]) {
  const found = rows.filter((row) => row.id !== null);
  return { now: Number(rows[0]?.now), schedules: found.map(toScheduleState) };
}

/** Column by column, without an object for each row in between: this is a hot path. */
function advanceParams(
  changes: readonly ScheduleChange[],
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
