// Sends statements to PostgreSQL: owns the two connections of a store, fills in its statements and prepares them once,
// and repeats what may be repeated when a reply is lost (docs/internals/ambiguous-commits.md). It knows no verb.

import { OutcomeUnknownError, StoreUnavailableError } from "../../shared/errors.js";
import { type Clock, delay } from "../../shared/ports.js";
import type { TxQuery } from "../commits.js";
import type { Lost, Statement, Statements, StoreSession, Write } from "../session.js";
import { render } from "../sql/dialect.js";
import { type Dialect, type FilledStatement, fillIn, numbered } from "../sql/template.js";
import type { WakeListener } from "../store.js";
import {
  isWorthRepeating,
  LinkFailure,
  PostgresLink,
  type PostgresSource,
  type Row,
} from "./connection/connection.js";
import { IN_OWN_PATH, inlined } from "./connection/pinned.js";
import type { PostgresTransactions } from "./connection/transactions.js";

export const DATABASE_CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
/** How long a repeatable verb is repeated before its caller gets the error. */
const REPEATED_FOR_MS = 30_000;

/** Our own session, which keeps a plan by name, or a caller's, which does not. */
type AnyQuery = (text: string, values: readonly unknown[], name: string) => Promise<readonly Row[]>;

export class PostgresSession implements StoreSession {
  readonly engine = "postgres";
  /** For enqueues, exchanges, reclaims, and all other statements that may wait for a locked row. */
  readonly work: PostgresLink;
  /** Sends renewals, polls, and exchanges that never wait for a locked row; it also listens for notifications. */
  readonly beat: PostgresLink;
  readonly dialect: Dialect;
  readonly #transactions: PostgresTransactions;
  readonly #clock: Clock;
  readonly #now: (() => number) | undefined;
  readonly #statements = new Map<string, FilledStatement & { readonly name: string }>();
  #isClosed = false;

  constructor(params: {
    readonly source: PostgresSource;
    readonly schema: string;
    readonly clock: Clock;
    readonly channel: string;
    readonly onWake: WakeListener;
    readonly now: (() => number) | undefined;
    readonly transactions: PostgresTransactions;
  }) {
    const { source, schema, clock, channel, onWake, now } = params;
    const onNotice = (from: number) =>
      onWake({ isOwn: [this.work.serverPid, this.beat.serverPid].includes(from) });
    this.#transactions = params.transactions;
    this.#clock = clock;
    this.#now = now;
    this.dialect = {
      name: (plain) => `"${schema}".${plain}`,
      now: now ? ":now::bigint" : DATABASE_CLOCK,
    };
    this.work = new PostgresLink({ source, clock, listenTo: null, onNotice });
    this.beat = new PostgresLink({ source, clock, listenTo: channel, onNotice });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.work.close(), this.beat.close()]);
  }

  async databaseNow(): Promise<number> {
    if (this.#now) return this.#now();
    const { rows } = await this.beat.query({ text: `select ${DATABASE_CLOCK} as now` });
    return Number(rows[0]?.now);
  }

  read({ verb, sql, params = {} }: Statement): Promise<readonly Row[]> {
    return this.repeat(verb, render(sql, "postgres"), params);
  }

  async reads<T>(verb: string, work: () => Statements<T>): Promise<T> {
    const steps = work();
    let next = steps.next();
    while (!next.done) next = steps.next(await this.read({ verb, ...next.value }));
    return next.value;
  }

  write({ verb, sql, params = {}, ...how }: Write): Promise<readonly Row[]> {
    const template = render(sql, "postgres");
    const link = this[how.connection ?? "work"];
    const once = () => this.once(link, template, params);
    return how.lost === "repeat"
      ? this.retryWhileUnavailable(verb, once)
      : this.described(verb, once);
  }

  transaction<T>(verb: string, { lost }: Lost, work: () => Statements<T>): Promise<T> {
    const once = () => this.#transactions.run((query) => this.drive(query, work()));
    return lost === "repeat" ? this.retryWhileUnavailable(verb, once) : this.described(verb, once);
  }

  /** Statements that are written once for both engines, inside an open transaction. */
  async drive<T>(query: AnyQuery, statements: Statements<T>): Promise<T> {
    // Never resumed after an error: PostgreSQL has aborted the transaction by then.
    let next = statements.next();
    while (!next.done) {
      const { sql, params } = next.value;
      next = statements.next(await this.within(query, render(sql, "postgres"), params));
    }
    return next.value;
  }

  /** The same statement inside of a transaction, ours or a caller's. */
  async within(query: AnyQuery, template: string, params: Row): Promise<Row[]> {
    const statement = this.#statement(template);
    const values = this.#values(statement, params);
    return (await query(statement.text, values, statement.name)) as Row[];
  }

  /**
   * The same inside a user's transaction, where names may mean objects of other roles: a function of ours has its own
   * search path, and the user's stays as it is.
   */
  async withinForeign(query: TxQuery, template: string, params: Row): Promise<Row[]> {
    const statement = this.#statement(template);
    const text = inlined(statement.text, this.#values(statement, params));
    const rows = await query(fillIn(IN_OWN_PATH, this.dialect), [text]);
    return rows.map(({ answer }) => JSON.parse(String(answer)) as Row);
  }

  #statement(template: string): FilledStatement & { readonly name: string } {
    let statement = this.#statements.get(template);
    if (!statement) {
      const filled = numbered(template, this.dialect);
      statement = { ...filled, name: `holdfast_${digest(filled.text)}` };
      this.#statements.set(template, statement);
    }
    return statement;
  }

  #values(statement: FilledStatement, params: Row): unknown[] {
    return statement.parameters.map((name) => (name === "now" ? this.#now?.() : params[name]));
  }

  /** One try: the caller decides what a lost reply means. */
  async once(
    link: PostgresLink,
    template: string,
    params: Row,
    timeoutMs?: number,
  ): Promise<Row[]> {
    const statement = this.#statement(template);
    const { name, text } = statement;
    const values = this.#values(statement, params);
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    return (await link.query({ name, text, values, ...limit })).rows;
  }

  /** One try; its failure becomes an error of the store. */
  async attempt(
    what: string,
    link: PostgresLink,
    template: string,
    params: object,
    timeoutMs?: number,
  ): Promise<Row[]> {
    try {
      return await this.once(link, template, params as Row, timeoutMs);
    } catch (error) {
      throw describe(what, error, { wasUnknown: false });
    }
  }

  /** One try of a transaction; its failure becomes an error of the store. */
  async described<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw describe(what, error, { wasUnknown: false });
    }
  }

  /** For reads, and for statements that change nothing more when they are repeated. */
  repeat(what: string, template: string, params: object): Promise<Row[]> {
    return this.retryWhileUnavailable(what, () => this.once(this.work, template, params as Row));
  }

  async retryWhileUnavailable<T>(what: string, send: () => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonicMs();
    let wasUnknown = false;
    for (let tries = 1; ; tries += 1) {
      try {
        return await send();
      } catch (error) {
        wasUnknown ||= error instanceof LinkFailure && !error.isCertain;
        const isOver = this.#isClosed || this.#clock.monotonicMs() - startedAt > REPEATED_FOR_MS;
        if (isOver || !isWorthRepeating(error)) throw describe(what, error, { wasUnknown });
        await delay(this.#clock, Math.min(1_000, 20 * 2 ** Math.min(tries, 6)));
      }
    }
  }
}

/** The error for the caller: a lost reply is neither success nor failure. */
function describe(what: string, error: unknown, { wasUnknown }: { wasUnknown: boolean }): unknown {
  if (!(error instanceof LinkFailure)) return error;
  if (wasUnknown || !error.isCertain) return new OutcomeUnknownError(what, { cause: error.cause });
  return isWorthRepeating(error) || error.code === "CLOSED"
    ? new StoreUnavailableError({ tried: what, cause: error.cause })
    : error.cause;
}

function digest(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let at = 0; at < text.length; at += 1) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x100000001b3n);
  }
  return hash.toString(36);
}

export type Mutex = <T>(work: () => Promise<T>) => Promise<T>;

export function newMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
