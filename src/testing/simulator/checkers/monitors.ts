// What the ledger says of a monitor, against what was really told: a check-in counts once, what was
// acknowledged is there, and a tick is missed only after its grace.

import type { Pinged } from "../../../schedules/check-in.js";
import type { PingState } from "../../../schedules/rules/monitor.js";
import { OUTCOMES, REASONS } from "../../../schedules/rules/tick.js";
import type { EventLog } from "../event-log.js";
import { MONITOR } from "../workload/monitor-plan.js";
import type { Note } from "./row-changes.js";
import type { Transaction } from "./run-places.js";
import type { ScheduleHistory } from "./schedules.js";

export class MonitorHistory {
  readonly #chronicle: EventLog;
  readonly #schedules: ScheduleHistory;
  /** Every end that was told; those of one delivery are one. */
  readonly #told = new Set<string>();
  readonly #runs = new Set<string>();
  /** When a run was removed. */
  readonly #removedMs = new Map<string, number>();
  /** The run that a delivery was first answered with: every other answer to it names the same. */
  readonly #delivered = new Map<string, string>();
  /** The run of every tick that was checked in for. */
  readonly #fired = new Map<number, string>();
  /** The latest that the database's clock was seen at: it may be set back between a look and a write. */
  #latest = 0;
  /** As it stood before the transaction at hand: what changes it first records what is over, by that. */
  #graceMs = 0;

  constructor(chronicle: EventLog, schedules: ScheduleHistory) {
    this.#chronicle = chronicle;
    this.#schedules = schedules;
  }

  tells(operation: number, state: PingState, deliveryId: string | null): void {
    const end = deliveryId ?? `operation ${operation}`;
    if (state === "start" || this.#told.has(end)) return;
    this.#told.add(end);
    this.#asks();
  }

  /** What somebody was told who had asked at `askedMs`. */
  answered(
    { state, tick, runId, repeated }: Pinged,
    { deliveryId, askedMs }: { readonly deliveryId: string | null; readonly askedMs: number },
  ): void {
    if (state === "start") this.#chronicle.saw("monitor-began");
    if (runId === null) return;
    this.#chronicle.saw(
      repeated ? "monitor-repeated" : tick === null ? "monitor-late" : "monitor-checked-in",
    );
    // Removed while the answer was on its way: it was right, and says nothing of what is told anew.
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

  /** What time it was when somebody looked. */
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

  /** What was removed is forgotten with its deliveries, and may be told anew. */
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
    this.#chronicle.saw("monitor-missed");
    if (Number(lastAt) + this.#graceMs > this.#latest)
      this.#violate("T", `${new Date(Number(lastAt)).toISOString()} was missed before its grace.`);
  }

  #violate(promise: string, text: string): void {
    this.#chronicle.violate(promise, text);
  }
}
