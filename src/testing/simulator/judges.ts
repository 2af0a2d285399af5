// All checkers of one simulation, and the order in which they take in a commit.

import { BatchHistory } from "./batch-history.js";
import { CalendarHistory } from "./calendar-history.js";
import type { Chronicle } from "./chronicle.js";
import { Clients } from "./clients.js";
import { Effects } from "./effects.js";
import { FlowHistory } from "./flow-history.js";
import { LockHistory } from "./lock-history.js";
import { MonitorHistory } from "./monitor-history.js";
import { PauseHistory } from "./pause-history.js";
import type { Transaction } from "./run-facts.js";
import { RunHistory } from "./run-history.js";
import { ScheduleHistory } from "./schedule-history.js";

export class Judges {
  readonly effects: Effects;
  readonly runs: RunHistory;
  readonly schedules: ScheduleHistory;
  readonly calendars: CalendarHistory;
  readonly pauses: PauseHistory;
  readonly monitors: MonitorHistory;
  readonly locks: LockHistory;
  readonly clients: Clients;
  readonly #batches: BatchHistory;
  readonly #flows: FlowHistory;

  constructor(chronicle: Chronicle) {
    this.effects = new Effects(chronicle);
    this.runs = new RunHistory(chronicle, this.effects);
    this.schedules = new ScheduleHistory(chronicle);
    this.calendars = new CalendarHistory(chronicle, this.schedules);
    this.pauses = new PauseHistory(chronicle, this.runs);
    this.monitors = new MonitorHistory(chronicle, this.schedules);
    this.locks = new LockHistory(chronicle);
    this.clients = new Clients(chronicle, this.runs);
    this.#batches = new BatchHistory(chronicle, this.runs);
    this.#flows = new FlowHistory(chronicle, this.runs);
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
