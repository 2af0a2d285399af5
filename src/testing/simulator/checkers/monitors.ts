// Compares the ledger of a monitor with the check-ins: a check-in counts once, every acknowledged one is stored, and a
// tick is missed only after its grace.

import type { Pinged } from "../../../schedules/check-in.js";
import type { PingState } from "../../../schedules/rules/monitor.js";
import { OUTCOMES, REASONS } from "../../../schedules/rules/tick.js";
import type { EventLog } from "../event-log.js";
import { MONITOR } from "../workload/plan.js";
import type { Note } from "./row-changes.js";
import type { Transaction } from "./run-places.js";
import type { ScheduleHistory } from "./schedules.js";

export class MonitorHistory {
  readonly #log: EventLog;
  readonly #schedules: ScheduleHistory;
  /** Every reported end; repetitions of one delivery count once. */
  readonly #told = new Set<string>();
  readonly #runs = new Set<string>();
  /** When a run was removed. */
  readonly #removedMs = new Map<string, number>();
  /** The run in the first response to a delivery; every other response to it names the same run. */
  readonly #delivered = new Map<string, string>();
  /** The run of every tick that was checked in for. */
  readonly #fired = new Map<number, string>();
  /** The latest time of the database's clock, which may be set back between a read and a write. */
  #latest = 0;
  /** The grace before the current transaction: a change of the grace first records past ticks by the old one. */
  #graceMs = 0;

  constructor(log: EventLog, schedules: ScheduleHistory) {
    this.#log = log;
    this.#schedules = schedules;
  }

  tells(operation: number, state: PingState, deliveryId: string | null): void {
    const end = deliveryId ?? `operation ${operation}`;
    if (state === "start" || this.#told.has(end)) return;
    this.#told.add(end);
    this.#asks();
  }

  /** A caller got this response to a request of `askedMs`. */
  answered(
    { state, tick, runId, repeated }: Pinged,
    { deliveryId, askedMs }: { readonly deliveryId: string | null; readonly askedMs: number },
  ): void {
    if (state === "start") this.#log.saw("monitor-began");
    if (runId === null) return;
    this.#log.saw(
      repeated ? "monitor-repeated" : tick === null ? "monitor-late" : "monitor-checked-in",
    );
    // The run was removed while the response travelled: the response was right, and does not bind later check-ins.
    if ((this.#removedMs.get(runId) ?? Number.NEGATIVE_INFINITY) >= askedMs) return;
    if (deliveryId !== null) {
      const first = this.#delivered.get(deliveryId) ?? runId;
      this.#delivered.set(deliveryId, first);
      if (first !== runId)
        this.#violate("S13", `Delivery ${deliveryId} is both ${first} and ${runId}.`);
    }
    if (!this.#runs.has(runId))
      this.#violate("S11", `A check-in was answered with run ${runId}, which nobody made.`);
    if (tick !== null && this.#fired.get(tick.getTime()) !== runId)
      this.#violate("S6", `A check-in was answered with ${tick.toISOString()}, which is not its.`);
  }

  /** A process read this time from the database. */
  looked(now: number): void {
    this.#latest = Math.max(this.#latest, now);
  }

  commit({ notes, now, worldMs }: Transaction): void {
    this.looked(now);
    const monitor = this.#schedules.byName(MONITOR);
    if (!monitor) return;
    for (const note of notes) {
      if (note[0] === "run+" && note[5] === monitor.id) this.#made(String(note[1]));
      else if (note[0] === "run-") this.#removed(String(note[1]), worldMs);
      else if (note[0] === "tick+" && note[1] === monitor.id) this.#recorded(note);
    }
    this.#graceMs = monitor.definition.graceMs;
  }

  #made(run: string): void {
    this.#runs.add(run);
    if (this.#runs.size > this.#told.size)
      this.#violate("S13", `${this.#runs.size} check-ins were kept, ${this.#told.size} were told.`);
  }

  /** A removed run is forgotten with its deliveries, and may be reported again. */
  #removed(run: string, worldMs: number): void {
    if (!this.#runs.delete(run)) return;
    this.#removedMs.set(run, worldMs);
    for (const [delivery, first] of this.#delivered)
      if (first === run) this.#delivered.delete(delivery);
    this.#asks();
  }

  #asks(): void {
    const { asked } = this.#schedules;
    asked.set(MONITOR, (asked.get(MONITOR) ?? 0) + 1);
  }

  #recorded([, , at, lastAt, , outcome, reason, run]: Note): void {
    if (OUTCOMES[Number(outcome)] === "fired") this.#fired.set(Number(at), String(run));
    if (REASONS[Number(reason)] !== "no_ping") return;
    this.#log.saw("monitor-missed");
    if (Number(lastAt) + this.#graceMs > this.#latest)
      this.#violate("T", `${new Date(Number(lastAt)).toISOString()} was missed before its grace.`);
  }

  #violate(promise: string, text: string): void {
    this.#log.violate(promise, text);
  }
}
