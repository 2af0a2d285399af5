// Alerts on PostgreSQL: a statement for each verb, or a few. What is repeated after a lost answer
// changes nothing more, but for a turn: a lost one is made up for a minute later.

import type { OpenAlert } from "../../alerts/rules/alert.js";
import type { ObservationParams } from "../../alerts/rules/observation.js";
import {
  type AlertFilter,
  type AlertRecord,
  type AlertStore,
  type AlertWrites,
  type ClaimedDelivery,
  type DeliveryEnd,
  heldRow,
  newAlertRow,
  type ObservedRest,
  type ObservedSchedules,
  pausedTickOf,
  toAlertRecord,
  toCulprit,
  toObservedRun,
  toObservedSchedule,
  toObservedSkip,
  toObservedTick,
  toOpenAlert,
  toRunning,
  toSightApart,
  toSightEnd,
  toSightJob,
  toSightRate,
  toSkew,
} from "../alerts.js";
import { numberOrNull } from "../rows.js";
import type { PostgresAudit } from "./audit.js";
import type { Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/alerts.js";
import type { PostgresTransactions } from "./transactions.js";

export class PostgresAlerts implements AlertStore {
  readonly #asker: PostgresSession;
  readonly #transactions: PostgresTransactions;
  readonly #audit: PostgresAudit;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly transactions: PostgresTransactions;
    readonly audit: PostgresAudit;
  }) {
    this.#asker = params.asker;
    this.#transactions = params.transactions;
    this.#audit = params.audit;
  }

  async takeAlertTurn(params: Parameters<AlertStore["takeAlertTurn"]>[0]) {
    const { beat } = this.#asker;
    const [row] = await this.#asker.attempt("takeAlertTurn", beat, sql.TAKE_TURN, params);
    return { now: Number(row?.now), isMine: row?.is_mine === true };
  }

  async sightOfSchedules(): Promise<ObservedSchedules> {
    const [looked, schedules, ticks] = await Promise.all([
      this.#ask(sql.LOOKED),
      this.#ask(sql.SCHEDULES),
      this.#ask(sql.TROUBLED_TICKS),
    ]);
    const polledAt = looked[0]?.polled_at;
    return {
      now: Number(looked[0]?.now),
      schedulerPolledAt: polledAt === null ? null : Number(polledAt),
      recordedUntil: numberOrNull(looked[0]?.recorded_until),
      schedules: schedules.map(toObservedSchedule),
      ticks: ticks.map(toObservedTick),
    };
  }

  /** What no rule asks for is not read. */
  async sightOfRest(params: ObservationParams): Promise<ObservedRest> {
    const { silentMs, ranMs, isRunningCounted, runningOf, unattendedMs, ratesOf, ends } = params;
    const when = (isAsked: boolean, text: string, values: object = params) =>
      isAsked ? this.#ask(text, values) : Promise.resolve([]);
    const [runs, running, jobs, skews, culprits, rates, ended, skips] = await Promise.all([
      when(silentMs !== null || ranMs !== null, sql.HELD_RUNS),
      when(isRunningCounted || runningOf.length > 0, sql.RUNNING, { schedules: runningOf }),
      when(unattendedMs !== null, sql.UNATTENDED),
      when(params.skewMs !== null, sql.SKEWED),
      when(params.transactionMs !== null, sql.CULPRITS),
      when(ratesOf.length > 0, sql.RATES, { ratesOf: JSON.stringify(ratesOf) }),
      when(ends !== null, sql.ENDS, { depth: ends?.depth ?? 0, schedules: ends?.of ?? null }),
      when(params.skips !== null, sql.SKIPS),
    ]);
    const failing = [...new Set(ended.map(({ name }) => String(name)))];
    const paused = await when(failing.length > 0, sql.PAUSED_TICKS, { schedules: failing });
    return {
      runs: runs.map(toObservedRun),
      running: toRunning(running),
      jobs: jobs.map(toSightJob),
      skews: skews.map(toSkew),
      culprits: culprits.map(toCulprit),
      scheduleRates: rates.map(toSightRate),
      ends: ended.map(toSightEnd),
      skips: skips.map(toObservedSkip),
      pausedTicks: Object.fromEntries(paused.flatMap(pausedTickOf)),
    };
  }

  async sightOfApart(params: Parameters<AlertStore["sightOfApart"]>[0]) {
    return (await this.#ask(sql.APART, params)).map(toSightApart);
  }

  async openAlerts(): Promise<readonly OpenAlert[]> {
    return (await this.#ask(sql.OPEN_ALERTS)).map(toOpenAlert);
  }

  async writeAlerts({ opens, holds, resolves }: AlertWrites) {
    const rows = opens.map(newAlertRow).map(({ subjectType, ...rest }) => ({
      ...rest,
      subject_type: subjectType,
    }));
    const fresh =
      rows.length === 0 ? [] : await this.#ask(sql.OPEN_NEW, { opens: JSON.stringify(rows) });
    const late =
      holds.length === 0
        ? []
        : await this.#ask(sql.HOLD, { holds: JSON.stringify(holds.map(heldRow)) });
    const over = resolves.length === 0 ? [] : await this.#resolve(resolves);
    return { told: await this.#byIds([...fresh, ...late]), resolved: await this.#byIds(over) };
  }

  #resolve(resolves: AlertWrites["resolves"]): Promise<readonly Row[]> {
    return this.#asker.patiently("alerts", () =>
      this.#transactions.run(async (query) => {
        const ask = (text: string, params: Row) => this.#asker.within(query, text, params);
        const over = await ask(sql.RESOLVE, { resolves: JSON.stringify(resolves) });
        const ids = over.filter((row) => row.is_told === true).map(({ id }) => String(id));
        if (ids.length > 0) await ask(sql.TELL_RESOLVED, { ids });
        return over;
      }),
    );
  }

  async claimDeliveries(params: Parameters<AlertStore["claimDeliveries"]>[0]) {
    const { work } = this.#asker;
    const rows = await this.#asker.attempt("alerts", work, sql.CLAIM_DELIVERIES, params);
    const ids = [...new Set(rows.map(({ alert }) => String(alert)))];
    const alerts = new Map((await this.#withIds(ids)).map((alert) => [alert.id, alert]));
    return rows.flatMap((row): ClaimedDelivery[] => {
      const alert = alerts.get(String(row.alert));
      if (!alert) return [];
      const [destination, attempt] = [String(row.destination), Number(row.attempts)];
      return [{ alert, event: row.event as ClaimedDelivery["event"], destination, attempt }];
    });
  }

  async endDelivery(end: DeliveryEnd): Promise<void> {
    await this.#ask(sql.END_DELIVERY, end);
  }

  async alerts({ state, kind, subject, id, before, limit }: AlertFilter) {
    const rows = await this.#ask(sql.LIST_ALERTS, {
      ids: id === undefined ? null : [id],
      isOpen: state === undefined ? null : state === "open",
      kind: kind ?? null,
      subject: subject?.name ?? null,
      before: before ?? null,
      limit,
    });
    return rows.map(toAlertRecord);
  }

  async markAlert({ audit, ...params }: Parameters<AlertStore["markAlert"]>[0]): Promise<boolean> {
    const text = { mute: sql.MUTE, acknowledge: sql.ACKNOWLEDGE, resolve: sql.RESOLVE_BY_HAND };
    const isDone = (row: Row | undefined) => row !== undefined;
    const change = { what: "markAlert", template: text[params.mark], params, audit, isDone };
    return isDone(await this.#audit.change(change));
  }

  async #byIds(rows: readonly Row[]): Promise<readonly AlertRecord[]> {
    return this.#withIds(rows.map(({ id }) => String(id)));
  }

  async #withIds(ids: readonly string[]): Promise<readonly AlertRecord[]> {
    if (ids.length === 0) return [];
    const any = { isOpen: null, kind: null, subject: null, before: null, limit: ids.length };
    return (await this.#ask(sql.LIST_ALERTS, { ids, ...any })).map(toAlertRecord);
  }

  #ask(text: string, params: object = {}): Promise<Row[]> {
    return this.#asker.repeat("alerts", text, params);
  }
}
