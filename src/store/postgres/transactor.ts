// Transactions that users' work is in, on connections of their own: they may take long, and nothing of
// ours must wait behind them. There are few; who finds none free waits for its turn.

import { TxEndedError } from "../../shared/errors.js";
import type { Clock, Timer } from "../../shared/ports.js";
import type { OpenTransaction, Transactor } from "../transaction.js";
import {
  isWorthRepeating,
  LinkFailure,
  type PlainLink,
  type PostgresSource,
  plainLink,
  type Row,
} from "./connection.js";

/** What a user's function gets as `tx`; answers as the `pg` driver does. */
export type PostgresTx = {
  query(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number }>;
};

const LINKS_MAX = 4;
/** Of a user's pool, two are held for good by the store. */
const POOL_HELD = 2;
const KEPT_MS = 10_000;
/** The longest that a timer of the driver can count. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/** What would end the transaction, so that the run would be completed without it. Savepoints may go. */
const ENDS_TRANSACTION =
  /(begin|start\s+transaction|commit|end|abort|rollback(?!\s+(work\s+|transaction\s+)?to\b)|prepare\s+transaction)\b/iy;

export class PostgresTransactor implements Transactor {
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

  /** How many are open, how many may be, and how many wait for their turn. */
  get load(): { readonly open: number; readonly max: number; readonly waiting: number } {
    return { open: this.#taken, max: this.#max, waiting: this.#waiting.length };
  }

  /** `timeoutMs` is for each statement of the user's. */
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
      // Whether the connection is still good is not worth a question.
      void link?.end();
      throw error;
    } finally {
      if (link) this.#open.delete(link);
      this.#taken -= 1;
      this.#waiting.shift()?.resolve();
    }
  }

  /** Open transactions are cut: whoever is in one was told to end long before. */
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
        // The server may have closed it while it was idle: that is no answer to the caller.
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

/** From BEGIN, which was sent, to COMMIT or ROLLBACK. */
async function within<Value>(
  link: PlainLink,
  fn: (opened: OpenTransaction) => Promise<Value>,
  timeoutMs: number,
): Promise<Value> {
  let isOpen = true;
  const tx: PostgresTx = {
    query: async (text, values = []) => {
      // The connection goes on to serve others: what comes too late must not get into theirs.
      if (!isOpen) throw new Error("The transaction is over; nothing was sent.");
      if (endsTransaction(text)) throw new TxEndedError("ctx.commit or ctx.item");
      return link.query({ text, values, timeoutMs }).catch((failure: unknown) => {
        throw failure instanceof LinkFailure ? failure.cause : failure;
      });
    },
  };
  const query = async (text: string, values: readonly unknown[]) =>
    (await link.query({ text, values })).rows;
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

/**
 * Whether a statement in this text would end the transaction. Reads from the end to the beginning and every position
 * once, however many comments follow each other.
 */
function endsTransaction(text: string): boolean {
  const end = text.length;
  /** Where the next word begins after spaces and comments, and where the next star is. */
  const words = new Int32Array(end + 3).fill(end);
  const stars = new Int32Array(end + 3).fill(end);
  let newline = end;
  for (let at = end - 1; at >= 0; at -= 1) {
    const star = stars[at + 2] as number;
    let word = at;
    if (/\s/.test(text.charAt(at))) word = words[at + 1] as number;
    else if (text.startsWith("--", at) && newline < end) word = words[newline + 1] as number;
    else if (text.startsWith("/*", at) && text[star + 1] === "/") word = words[star + 2] as number;
    words[at] = word;
    stars[at] = text[at] === "*" ? at : (stars[at + 1] as number);
    if (text[at] === "\n") newline = at;
    const isStart = at === 0 || text[at - 1] === ";";
    if (!isStart) continue;
    ENDS_TRANSACTION.lastIndex = word;
    if (ENDS_TRANSACTION.test(text)) return true;
  }
  return false;
}

function linksMax(source: PostgresSource): number {
  if (typeof source === "string") return LINKS_MAX;
  const { max = 10 } = source.options;
  return Math.max(1, Math.min(LINKS_MAX, max - POOL_HELD));
}

function closed(): LinkFailure {
  return new LinkFailure(new Error("The store was closed."), "CLOSED", true);
}
