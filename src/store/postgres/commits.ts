// Commits a user's work together with the end of its run, or with an item, on PostgreSQL: in a transaction of ours or
// of the user's library, whose last statement is ours.

import { OutcomeUnknownError, TxEndedError } from "../../shared/errors.js";
import type { Clock, Timer } from "../../shared/ports.js";
import type { Settlement } from "../claims.js";
import {
  type CommitItemParams,
  type CommitParams,
  type CommitStepParams,
  type CommitVerbs,
  endsTransaction,
  type OpenTransaction,
  RolledBack,
  type Transactor,
} from "../commits.js";
import type { ItemResult } from "../items.js";
import type { Statements } from "../session.js";
import { render } from "../sql/dialect.js";
import { storeWork } from "../steps.js";
import {
  isWorthRepeating,
  LinkFailure,
  type PlainLink,
  type PostgresSource,
  plainLink,
  type Row,
} from "./connection/connection.js";
import { type Send, STORE_ITEM_LAST, storeItems } from "./items.js";
import type { PostgresSession } from "./session.js";
import { settlementColumns } from "./settlements.js";
import { FINISH, SETTLE } from "./sql/exchange.js";

export class PostgresCommits implements CommitVerbs {
  readonly #session: PostgresSession;
  readonly #own: PostgresTransactor;

  constructor(params: {
    readonly session: PostgresSession;
    readonly source: PostgresSource;
    readonly clock: Clock;
  }) {
    this.#session = params.session;
    this.#own = new PostgresTransactor(params);
  }

  get load(): PostgresTransactor["load"] {
    return this.#own.load;
  }

  close(): Promise<void> {
    return this.#own.close();
  }

  /** Only the last statement locks the lease: heartbeats of its other runs do not wait. */
  async run(params: CommitParams): Promise<"committed" | "stale"> {
    const { holder, random, work } = params;
    return this.#transact<"committed" | "stale">("commits.run", params, async ({ tx, query }) => {
      const settlement = await work(tx);
      const [row] = await this.#session.withinForeign(query, formOf(settlement), {
        ...settlementColumns([settlement]),
        chance: random,
        isLastBeforeCommit: true,
        // A statistics row of its own, so that a commit and an exchange of one instance do not wait for each other.
        shard: -1 - holder,
      });
      if (row?.unapplied) throw new RolledBack("stale");
      return "committed";
    });
  }

  async item(params: CommitItemParams): Promise<ItemResult> {
    return this.#transact<ItemResult>("commits.item", params, async ({ tx, query }) => {
      const item = await params.work(tx);
      const send: Send = (template, values) => this.#session.withinForeign(query, template, values);
      const [answer] = await storeItems(send, [item], STORE_ITEM_LAST);
      if (answer !== "stored") throw new RolledBack(answer);
      return "stored";
    });
  }

  step({ work, ...params }: CommitStepParams): Promise<number | "stale"> {
    return this.#transact<number | "stale">("commits.step", params, async ({ tx, query }) => {
      const step = await work(tx);
      const no = await this.#driveForeign(query, storeWork({ ...params, step }));
      if (no === "stale") throw new RolledBack(no);
      return no;
    });
  }

  /** Statements that are written once, in a user's transaction: each of them returns rows. */
  async #driveForeign<T>(query: OpenTransaction["query"], steps: Statements<T>): Promise<T> {
    let next = steps.next();
    while (!next.done) {
      const { sql, params } = next.value;
      const text = render(sql, "postgres");
      next = steps.next(await this.#session.withinForeign(query, text, params as Row));
    }
    return next.value;
  }

  /** Before COMMIT is sent every failure is certain. After that only a reply of the server is. */
  async #transact<Answer>(
    what: string,
    { on, timeoutMs }: { readonly on: Transactor | null; readonly timeoutMs: number },
    fn: (opened: OpenTransaction) => Promise<Answer>,
  ): Promise<Answer> {
    let isCommitting = false;
    const work = async (opened: OpenTransaction) => {
      const answer = await fn(opened);
      isCommitting = true;
      return answer;
    };
    try {
      return await (on ? on.transact(work) : this.#own.transact(work, timeoutMs));
    } catch (error) {
      if (error instanceof RolledBack) return error.result as Answer;
      const isLink = error instanceof LinkFailure;
      if (isCommitting && !(isLink && error.isCertain))
        throw new OutcomeUnknownError(what, { cause: isLink ? error.cause : error });
      const certain = isLink ? new LinkFailure(error.cause, error.code, true) : error;
      return this.#session.described(what, () => Promise.reject(certain));
    }
  }
}

/** Includes only the parts that this run needs: the server prepares every part of a plan for every execution. */
function formOf({ batch, schedule, isLimited, mayWait }: Settlement): string {
  const belongs = batch !== null || schedule !== null || isLimited || mayWait;
  return belongs ? SETTLE : FINISH;
}

/** The `tx` of a user's function; it returns results like the `pg` driver does. */
export type PostgresTx = {
  query(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number }>;
};

const LINKS_MAX = 4;
/** The store holds two connections of a user's pool permanently. */
const POOL_HELD = 2;
const KEPT_MS = 10_000;
/** The longest that a timer of the driver can count. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

class PostgresTransactor implements Transactor {
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  readonly #max: number;
  readonly #idle: { readonly link: PlainLink; readonly timer: Timer }[] = [];
  readonly #open = new Set<PlainLink>();
  readonly #waiting: { resolve(): void; reject(error: unknown): void }[] = [];
  #taken = 0;
  #isClosed = false;

  constructor(params: { readonly source: PostgresSource; readonly clock: Clock }) {
    this.#source = params.source;
    this.#clock = params.clock;
    this.#max = linksMax(params.source);
  }

  /** How many transactions are open, how many may be, and how many callers wait for their turn. */
  get load(): { readonly open: number; readonly max: number; readonly waiting: number } {
    return { open: this.#taken, max: this.#max, waiting: this.#waiting.length };
  }

  /** `timeoutMs` applies to each statement of the user. */
  async transact<Value>(
    fn: (opened: OpenTransaction) => Promise<Value>,
    timeoutMs = TIMEOUT_MAX_MS,
  ): Promise<Value> {
    await this.#turn();
    let link: PlainLink | null = null;
    try {
      link = await this.#begun();
      this.#open.add(link);
      const value = await within(link, fn, Math.min(timeoutMs, TIMEOUT_MAX_MS));
      this.#keep(link);
      return value;
    } catch (error) {
      // Testing whether the connection still works is not worth a statement.
      void link?.end();
      throw error;
    } finally {
      if (link) this.#open.delete(link);
      this.#taken -= 1;
      this.#waiting.shift()?.resolve();
    }
  }

  /** Cuts open transactions: their functions got the signal to end long before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(closed());
    const idle = this.#idle.splice(0);
    for (const { timer } of idle) timer.cancel();
    await Promise.all([...idle.map(({ link }) => link), ...this.#open].map((link) => link.end()));
  }

  async #turn(): Promise<void> {
    while (this.#taken >= this.#max && !this.#isClosed) {
      await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    }
    if (this.#isClosed) throw closed();
    this.#taken += 1;
  }

  /** Read committed: a stricter level would fail at the lease, which every heartbeat changes. */
  async #begun(): Promise<PlainLink> {
    const text = "begin isolation level read committed";
    const kept = this.#idle.pop();
    if (kept) {
      kept.timer.cancel();
      try {
        await kept.link.query({ text });
        return kept.link;
      } catch (error) {
        // The server may have closed the connection while it was idle: the caller's work must not fail for that.
        void kept.link.end();
        if (!isWorthRepeating(error)) throw error;
      }
    }
    const link = await plainLink(this.#source, this.#clock);
    await link.query({ text }).catch((error: unknown) => {
      void link.end();
      throw error;
    });
    return link;
  }

  /** A user's pool keeps connections itself. */
  #keep(link: PlainLink): void {
    if (typeof this.#source !== "string" || this.#isClosed) {
      void link.end();
      return;
    }
    const timer = this.#clock.timer(KEPT_MS, () => {
      this.#idle.splice(this.#idle.indexOf(kept), 1);
      void link.end();
    });
    const kept = { link, timer };
    this.#idle.push(kept);
  }
}

/** From the sending of BEGIN to COMMIT or ROLLBACK. */
async function within<Value>(
  link: PlainLink,
  fn: (opened: OpenTransaction) => Promise<Value>,
  timeoutMs: number,
): Promise<Value> {
  let isOpen = true;
  /** The first statement that failed. A function that does not await its statements never gets its error. */
  let failed: { readonly error: unknown } | null = null;
  const failing = (error: unknown): never => {
    failed ??= { error };
    throw error;
  };
  const send: PostgresTx["query"] = async (text, values = []) => {
    // The connection then serves other callers: a late statement of this one must not reach them.
    if (!isOpen) throw new Error("The transaction is over; nothing was sent.");
    if (endsTransaction(text)) return failing(new TxEndedError("ctx.commit or ctx.item"));
    return link
      .query({ text, values, timeoutMs })
      .catch((failure: unknown) =>
        failing(failure instanceof LinkFailure ? failure.cause : failure),
      );
  };
  const tx: PostgresTx = {
    query(text, values) {
      const sent = send(text, values);
      // One that is not awaited must not end the process; its failure comes out below.
      sent.catch(() => undefined);
      return sent;
    },
  };
  const query = async (text: string, values: readonly unknown[]) => {
    if (failed?.error instanceof TxEndedError) throw failed.error;
    try {
      return (await link.query({ text, values })).rows;
    } catch (error) {
      // Refused because of that statement, unless the function went back to a savepoint.
      if (failed && isAborted(error)) throw failed.error;
      throw error;
    }
  };
  try {
    const value = await fn({ tx, query });
    isOpen = false;
    await link.query({ text: "commit" });
    return value;
  } catch (error) {
    isOpen = false;
    throw error;
  }
}

/** Refused because an earlier statement of the transaction failed. */
function isAborted(error: unknown): boolean {
  return error instanceof LinkFailure && error.code === "25P02";
}

function linksMax(source: PostgresSource): number {
  if (typeof source === "string") return LINKS_MAX;
  const { max = 10 } = source.options;
  return Math.max(1, Math.min(LINKS_MAX, max - POOL_HELD));
}

function closed(): LinkFailure {
  return new LinkFailure(new Error("The store was closed."), "CLOSED", true);
}
