// Suspends runs on SQLite, and stores signals in callers' transactions.

import type { Settlement } from "../claims.js";
import type { Statements } from "../session.js";
import { type NewSignal, type SignalResult, Signals, sending } from "../signals.js";
import { Steps, type SuspendParams } from "../steps.js";
import { callersHandle } from "./enqueue.js";
import type { LeaseRows } from "./lease-rows.js";
import { SqliteSession } from "./session.js";

export class SqliteSteps extends Steps {
  readonly #own: SqliteSession;
  readonly #leases: LeaseRows;

  constructor(session: SqliteSession, leases: LeaseRows) {
    super(session);
    this.#own = session;
    this.#leases = leases;
  }

  // biome-ignore lint/correctness/useYield: the rows are written at once, inside of the same transaction
  protected override *settle(settlement: Settlement, { random }: SuspendParams): Statements<void> {
    this.#leases.settle({ settlements: [settlement], random }, this.#own.now());
  }
}

export class SqliteSignals extends Signals {
  readonly #own: SqliteSession;

  constructor(session: SqliteSession) {
    super(session);
    this.#own = session;
  }

  override async sendWithin({
    tx,
    signal,
  }: {
    readonly tx: object;
    readonly signal: NewSignal;
  }): Promise<SignalResult> {
    const { file } = this.#own;
    const handle = callersHandle(tx, file.handle, "signal().tx");
    const session =
      handle === file.handle ? this.#own : new SqliteSession({ file: file.on(handle) });
    return session.drive(sending(signal), this.#own.now());
  }
}
