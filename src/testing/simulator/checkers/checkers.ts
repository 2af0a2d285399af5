// Holds all checkers of one simulation, and calls them in their order for each commit.

import type { EventLog } from "../event-log.js";
import { BatchHistory } from "./batches.js";
import { CalendarHistory } from "./calendars.js";
import { Clients } from "./clients.js";
import { Effects } from "./effects.js";
import { LimitChecker } from "./limits.js";
import { LockHistory } from "./locks.js";
import { MonitorHistory } from "./monitors.js";
import { PauseHistory } from "./pause.js";
import type { Transaction } from "./run-places.js";
import { RunHistory } from "./runs.js";
import { ScheduleHistory } from "./schedules.js";
import { WaitHistory } from "./waits.js";

export class Checkers {
  readonly effects: Effects;
  readonly runs: RunHistory;
  readonly schedules: ScheduleHistory;
  readonly calendars: CalendarHistory;
  readonly pauses: PauseHistory;
  readonly monitors: MonitorHistory;
  readonly locks: LockHistory;
  readonly clients: Clients;
  readonly waits: WaitHistory;
  readonly #batches: BatchHistory;
  readonly #limits: LimitChecker;

  constructor(log: EventLog) {
    this.effects = new Effects(log);
    this.runs = new RunHistory(log, this.effects);
    this.schedules = new ScheduleHistory(log);
    this.calendars = new CalendarHistory(log, this.schedules);
    this.pauses = new PauseHistory(log, this.runs);
    this.monitors = new MonitorHistory(log, this.schedules);
    this.locks = new LockHistory(log);
    this.clients = new Clients(log, this.runs);
    this.waits = new WaitHistory(log, this.runs);
    this.#batches = new BatchHistory(log, this.runs);
    this.#limits = new LimitChecker(log, this.runs);
  }

  /** Runs come first, because the other checkers look at the runs that this transaction touched. */
  commit(transaction: Transaction): void {
    const touched = this.runs.commit(transaction);
    this.#limits.commit(transaction, touched);
    this.runs.checkLosses();
    this.schedules.commit(transaction, touched);
    this.calendars.commit(transaction);
    this.pauses.commit(transaction);
    this.monitors.commit(transaction);
    this.locks.commit(transaction);
    this.#batches.commit(transaction);
    this.waits.commit(transaction);
  }
}
