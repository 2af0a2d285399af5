// All checkers of one simulation, and the order in which they take in a commit.

import { Clients } from "../clients.js";
import type { EventLog } from "../event-log.js";
import { Effects } from "../workload/effects.js";
import { BatchHistory } from "./batches.js";
import { CalendarHistory } from "./calendars.js";
import { LimitChecker } from "./limits.js";
import { LockHistory } from "./locks.js";
import { MonitorHistory } from "./monitors.js";
import { PauseHistory } from "./pause.js";
import type { Transaction } from "./run-places.js";
import { RunHistory } from "./runs.js";
import { ScheduleHistory } from "./schedules.js";

export class Checkers {
  readonly effects: Effects;
  readonly runs: RunHistory;
  readonly schedules: ScheduleHistory;
  readonly calendars: CalendarHistory;
  readonly pauses: PauseHistory;
  readonly monitors: MonitorHistory;
  readonly locks: LockHistory;
  readonly clients: Clients;
  readonly #batches: BatchHistory;
  readonly #flows: LimitChecker;

  constructor(chronicle: EventLog) {
    this.effects = new Effects(chronicle);
    this.runs = new RunHistory(chronicle, this.effects);
    this.schedules = new ScheduleHistory(chronicle);
    this.calendars = new CalendarHistory(chronicle, this.schedules);
    this.pauses = new PauseHistory(chronicle, this.runs);
    this.monitors = new MonitorHistory(chronicle, this.schedules);
    this.locks = new LockHistory(chronicle);
    this.clients = new Clients(chronicle, this.runs);
    this.#batches = new BatchHistory(chronicle, this.runs);
    this.#flows = new LimitChecker(chronicle, this.runs);
  }

  /** Runs come first: what the others say is about the runs that this transaction touched. */
  commit(transaction: Transaction): void {
    const touched = this.runs.commit(transaction);
    this.#flows.commit(transaction, touched);
    this.runs.judgeLosses();
    this.schedules.commit(transaction, touched);
    this.calendars.commit(transaction);
    this.pauses.commit(transaction);
    this.monitors.commit(transaction);
    this.locks.commit(transaction);
    this.#batches.commit(transaction);
  }
}
