// Alerts on SQLite: one short write transaction for each verb that changes something, one look for each
// that reads.

import type { AlertEvent, OpenAlert } from "../../alerts/rules/alert.js";
import type { Culprit, ObservationParams } from "../../alerts/rules/observation.js";
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
import type { SqliteAudit } from "./audit.js";
import { isOpenTransaction, type Row, type SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/alerts.js";

/** Four times what SQLite moves by itself: so much waits only if a reader is in the way. */
const PAGES_MAX = 4_000;

export class SqliteAlerts implements AlertStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #audit: SqliteAudit;

  constructor(asker: SqliteSession, audit: SqliteAudit) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#audit = audit;
  }

  async takeAlertTurn(params: Parameters<AlertStore["takeAlertTurn"]>[0]) {
    return this.#asker.write("takeAlertTurn", (now) => {
      this.#file.run(sql.KEEP_SKEW, params);
      return { now, isMine: this.#file.run(sql.TAKE_TURN, { ...params, now }) > 0 };
    });
  }

  async sightOfSchedules(): Promise<ObservedSchedules> {
    return this.#asker.read((now) => {
      const looked = this.#file.get(sql.LOOKED);
      const polledAt = looked?.polled_at ?? null;
      return {
        now,
        schedulerPolledAt: polledAt === null ? null : Number(polledAt),
        recordedUntil: numberOrNull(looked?.recorded_until),
        schedules: this.#file.all(sql.SCHEDULES, { now }).map(toObservedSchedule),
        ticks: this.#file.all(sql.TROUBLED_TICKS).map(toObservedTick),
      };
    });
  }

  /** What no rule asks for is not read. */
  async sightOfRest(params: ObservationParams): Promise<ObservedRest> {
    const { silentMs, ranMs, isRunningCounted, runningOf, ratesOf, ends } = params;
    return this.#asker.read((now) => {
      const when = (isAsked: boolean, text: string, values: Row = {}) =>
        isAsked ? this.#file.all(text, { ...values, now }) : [];
      const { unattendedMs, skewMs } = params;
      const schedules = JSON.stringify(runningOf);
      const of = ends?.of ? JSON.stringify(ends.of) : null;
      const failing = when(ends !== null, sql.FAILING, { schedules: of });
      const depth = ends?.depth ?? 0;
      const { skips } = params;
      return {
        runs: when(silentMs !== null || ranMs !== null, sql.HELD_RUNS, { silentMs, ranMs }).map(
          toObservedRun,
        ),
        running: toRunning(
          when(isRunningCounted || runningOf.length > 0, sql.RUNNING, { schedules }),
        ),
        jobs: when(unattendedMs !== null, sql.UNATTENDED, { unattendedMs }).map(toSightJob),
        skews: when(skewMs !== null, sql.SKEWED, { skewMs }).map(toSkew),
        culprits: params.transactionMs === null ? [] : this.#culprits(),
        scheduleRates: ratesOf.flatMap((each) => when(true, sql.RATES, each).map(toSightRate)),
        ends: failing.flatMap(({ id, name }) =>
          this.#file.all(sql.ENDS, { id, name, depth }).map(toSightEnd),
        ),
        skips: when(skips !== null, sql.SKIPPING).flatMap(({ id, name, is_waiting: isWaiting }) =>
          this.#file.all(sql.SKIPS, { id, name, isWaiting, skips }).map(toObservedSkip),
        ),
        pausedTicks: Object.fromEntries(
          failing.flatMap(({ name }) =>
            this.#file.all(sql.PAUSED_TICK, { schedule: name }).flatMap(pausedTickOf),
          ),
        ),
      };
    });
  }

  /** Inside of a transaction of the handle's owner nothing can be moved: then there is no telling. */
  #culprits(): readonly Culprit[] {
    if (isOpenTransaction(this.#file.handle)) return [];
    const row = this.#file.get(sql.CHECKPOINT);
    const pages = Number(row?.log ?? 0) - Number(row?.checkpointed ?? 0);
    return pages > PAGES_MAX ? [{ what: "reader", pages }] : [];
  }

  async sightOfApart({ schedules, overMs, limit }: Parameters<AlertStore["sightOfApart"]>[0]) {
    const names = JSON.stringify(schedules);
    return this.#asker.read((now) =>
      this.#file.all(sql.APART, { names, overMs, limit, now }).map(toSightApart),
    );
  }

  async openAlerts(): Promise<readonly OpenAlert[]> {
    return this.#file.read(() => this.#file.all(sql.OPEN_ALERTS).map(toOpenAlert));
  }

  async writeAlerts({ opens, holds, resolves }: AlertWrites) {
    return this.#asker.write("writeAlerts", (now) => {
      const fresh = opens.flatMap((alert) => {
        const row = this.#file.get(sql.OPEN_NEW, { ...newAlertRow(alert), now });
        return row && row.told_at !== null ? [alert.id] : [];
      });
      const late = holds.flatMap((held) => {
        const row = this.#file.get(sql.HOLD, { ...heldRow(held), now });
        return row?.is_told === 1 ? [held.id] : [];
      });
      const resolved = resolves.flatMap(({ id, message }) => {
        const row = this.#file.get(sql.RESOLVE, { id, message, now });
        if (row?.is_told === 1) this.#file.run(sql.TELL_RESOLVED, { id, now });
        return row ? [id] : [];
      });
      return { told: this.#withIds([...fresh, ...late]), resolved: this.#withIds(resolved) };
    });
  }

  async claimDeliveries({
    destinations,
    leaseMs,
    limit,
  }: Parameters<AlertStore["claimDeliveries"]>[0]): Promise<readonly ClaimedDelivery[]> {
    return this.#asker.write("claimDeliveries", (now) => {
      const asked = { destinations: JSON.stringify(destinations), leaseMs, limit, now };
      this.#file.run(sql.TELL_OPENED, asked);
      const rows = this.#file.all(sql.CLAIM_DELIVERIES, asked);
      const ids = [...new Set(rows.map(({ alert }) => String(alert)))];
      const alerts = new Map(this.#withIds(ids).map((alert) => [alert.id, alert]));
      return rows.flatMap((row): ClaimedDelivery[] => {
        const alert = alerts.get(String(row.alert));
        if (!alert) return [];
        const [destination, attempt] = [String(row.destination), Number(row.attempts)];
        return [{ alert, event: row.event as AlertEvent, destination, attempt }];
      });
    });
  }

  async endDelivery(end: DeliveryEnd): Promise<void> {
    await this.#asker.write("endDelivery", (now) =>
      this.#file.run(sql.END_DELIVERY, { ...end, now }),
    );
  }

  async alerts({ state, kind, subject, id, before, limit }: AlertFilter) {
    const params = {
      ids: id === undefined ? null : JSON.stringify([id]),
      isOpen: state === undefined ? null : state === "open",
      subject: subject?.name,
      ...{ kind, before, limit },
    };
    return this.#file.read(() => this.#file.all(sql.LIST_ALERTS, params).map(toAlertRecord));
  }

  async markAlert({ audit, ...params }: Parameters<AlertStore["markAlert"]>[0]): Promise<boolean> {
    const text = { mute: sql.MUTE, acknowledge: sql.ACKNOWLEDGE, resolve: sql.RESOLVE_BY_HAND };
    return this.#audit.change({
      what: "markAlert",
      audit,
      work: (now) => this.#file.run(text[params.mark], { ...params, now }) > 0,
      isDone: (isMarked) => isMarked,
    });
  }

  /** Inside of a write transaction. */
  prune({ keepMs, limit }: { readonly keepMs: number; readonly limit: number }, now: number) {
    const old = this.#file.all(sql.OLD_ALERTS, { keepMs, limit, now }).map(({ id }) => id);
    if (old.length === 0) return 0;
    const ids = JSON.stringify(old);
    this.#file.run(sql.PRUNE_DELIVERIES, { ids });
    return this.#file.run(sql.PRUNE_ALERTS, { ids });
  }

  #withIds(ids: readonly string[]): readonly AlertRecord[] {
    if (ids.length === 0) return [];
    const rows = this.#file.all(sql.LIST_ALERTS, { ids: JSON.stringify(ids), limit: ids.length });
    return rows.map(toAlertRecord);
  }
}
