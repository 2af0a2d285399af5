// Suspends runs on PostgreSQL, and stores signals in callers' transactions.

import type { Settlement } from "../claims.js";
import { run, type Statements } from "../session.js";
import {
  judgeRepeat,
  type NewSignal,
  SEND_SIGNAL,
  type SignalResult,
  Signals,
} from "../signals.js";
import { Steps, type SuspendParams } from "../steps.js";
import { CallersTransactions } from "./connection/callers-transactions.js";
import type { PostgresSession } from "./session.js";
import { settlementColumns } from "./settlements.js";
import { SETTLE } from "./sql/exchange.js";

export class PostgresSteps extends Steps {
  protected override *settle(
    settlement: Settlement,
    { holder, random }: SuspendParams,
  ): Statements<void> {
    const columns = settlementColumns([settlement]);
    // A statistics row of its own, so that a suspension and an exchange of one instance do not wait for each other.
    const shard = -1 - holder;
    yield* run(SETTLE, { ...columns, shard, chance: random, isLastBeforeCommit: false });
  }
}

/** Wakes instances when the transaction commits. */
const NOTIFY = /* sql */ `select pg_notify(:channel, '')::text as told`;

export class PostgresSignals extends Signals {
  readonly #session: PostgresSession;
  readonly #channel: string;
  readonly #callers: CallersTransactions;

  constructor(session: PostgresSession, channel: string) {
    super(session);
    this.#session = session;
    this.#channel = channel;
    this.#callers = new CallersTransactions(session);
  }

  override async sendWithin(params: {
    readonly tx: object;
    readonly signal: NewSignal;
  }): Promise<SignalResult> {
    const { signal } = params;
    const query = await this.#callers.queryOf(params.tx, "signal().tx");
    const send = (template: string, values: object) =>
      this.#session.withinForeign(query, template, { ...values });
    const [added] = await send(SEND_SIGNAL.add, signal);
    if (added) {
      await send(NOTIFY, { channel: this.#channel });
      return "stored";
    }
    const { name, key } = signal;
    const [found] = await send(SEND_SIGNAL.find, { name, key });
    return judgeRepeat(signal, found);
  }
}
