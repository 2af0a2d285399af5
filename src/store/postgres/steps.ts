// Stores steps and waits on PostgreSQL in one statement each, suspends runs, and stores signals in callers' transactions.

import { OutcomeUnknownError } from "../../shared/errors.js";
import type { Settlement } from "../claims.js";
import { wholeMs } from "../items.js";
import { flag } from "../rows.js";
import { run, type Statements } from "../session.js";
import {
  judgeRepeat,
  type NewSignal,
  SEND_SIGNAL,
  type SignalResult,
  Signals,
} from "../signals.js";
import { render } from "../sql/dialect.js";
import {
  addWaits,
  type FinishParams,
  HELD,
  type OpenWaits,
  Steps,
  type SuspendParams,
  toWait,
  WAIT_COLUMNS,
  type WaitParams,
  waitRows,
} from "../steps.js";
import { plainColumn, textColumn } from "./connection/array.js";
import { CallersTransactions } from "./connection/callers-transactions.js";
import { LinkFailure } from "./connection/connection.js";
import type { PostgresSession } from "./session.js";
import { settlementColumns } from "./settlements.js";
import { SETTLE } from "./sql/exchange.js";

/**
 * One round trip instead of seven. The steps are inserted only after the lease is locked, so no reclaim can end it before
 * they are committed. The numbers and the known names are read as of the statement's beginning: if it had to wait for
 * another one of the same run, it does not see what that one stored. Then a number or a name is taken, the whole statement
 * is refused, and the next try sees it. The lock is not weaker, because `collect` numbers its steps under the same lock.
 */
const FINISH_STEPS = /* sql */ `
with held as materialized (${HELD.postgres}),
given as materialized (
  select * from unnest(:names::text[], :values::text[], :tries::int[], :ranMs::bigint[])
    with ordinality as g (name, value, tries, ran_ms, place)
),
known as materialized (select name, no from {step} where run = :id::uuid and name = any(:names::text[])),
last as materialized (select coalesce(max(no), 0) as no from {step} where run = :id::uuid),
fresh as (
  select g.*, row_number() over (order by g.place) as later from given g
  where not exists (select from known n where n.name = g.name)
),
stored as (
  insert into {step} (run, no, name, kind, generation, fence, tries, started_at, ended_at, value)
  select :id::uuid, l.no + f.later, f.name, 0, :generation::smallint, h.fence, f.tries, h.now - f.ran_ms, h.now, f.value
  from held h cross join last l cross join fresh f
  returning name, no
),
dropped as (
  delete from {wait} where run = :id::uuid and name = any(:names::text[]) and exists (select from held)
)
select exists (select from held) as is_held, (
  select json_agg(coalesce(n.no, s.no) order by g.place)
  from given g left join known n on n.name = g.name left join stored s on s.name = g.name
) as numbers`;

/** The open waits: those that it adds, and those that were there when it began. Always one row while the lease is held. */
const ADD_AND_SHOW_WAITS = render(
  /* sql */ `
with held as materialized (${HELD.postgres}),
added as (${addWaits("exists (select from held)", ` returning ${WAIT_COLUMNS}`)})
select h.now, w.* from held h left join (
  select * from added
  union all
  select ${WAIT_COLUMNS} from {wait} where run = :id::uuid and name <> all(array(select name from added))
) w on true order by w.since, w.name`,
  "postgres",
);

const UNIQUE_VIOLATION = "23505";
/** What another statement of the run stored in between is visible to the next try. */
const STORE_TRIES_MAX = 5;

export class PostgresSteps extends Steps {
  readonly #session: PostgresSession;

  constructor(session: PostgresSession) {
    super(session);
    this.#session = session;
  }

  override finish({ id, fence, steps, generation = 0 }: FinishParams) {
    const params = {
      ...{ id, fence, generation },
      names: textColumn(steps, ({ name }) => name),
      values: textColumn(steps, ({ value }) => value),
      tries: plainColumn(steps, ({ tries }) => tries),
      ranMs: plainColumn(steps, ({ ranMs }) => wholeMs(ranMs)),
    };
    return this.#untilSeen("steps.finish", async () => {
      const [found] = await this.#session.once(this.#session.work, FINISH_STEPS, params);
      if (!flag(found?.is_held)) return "stale";
      return (found?.numbers ?? []) as readonly number[];
    });
  }

  override wait({ id, fence, waits, generation = 0 }: WaitParams): Promise<OpenWaits | "stale"> {
    const params = { id, fence, generation, waits: waitRows(waits) };
    return this.#untilSeen("steps.wait", async () => {
      const found = await this.#session.once(this.#session.work, ADD_AND_SHOW_WAITS, params);
      const [first] = found;
      if (!first) return "stale";
      const open = found.filter(({ name }) => name !== null).map(toWait);
      const shown = new Map(open.map((each) => [each.name, each]));
      // Read as of the statement's beginning, a wait may be missing, or a retry be that of an earlier try.
      const isSeen = waits.every(({ name, tries = 0 }) => {
        const each = shown.get(name);
        return each && (each.kind !== "retry" || each.tries >= tries);
      });
      return isSeen && { now: Number(first.now), waits: open };
    });
  }

  /** Repeats a statement that missed what another one of its run stored while it waited for the lease. */
  #untilSeen<T extends object | string>(verb: string, send: () => Promise<T | false>): Promise<T> {
    return this.#session.retryWhileUnavailable(verb, async () => {
      for (let tries = 1; tries <= STORE_TRIES_MAX; tries += 1) {
        try {
          const answer = await send();
          if (answer !== false) return answer;
        } catch (error) {
          const isTaken = error instanceof LinkFailure && error.code === UNIQUE_VIOLATION;
          if (!isTaken || tries === STORE_TRIES_MAX) throw error;
        }
      }
      throw new OutcomeUnknownError(verb);
    });
  }

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
