// Runs checks on PostgreSQL: on a connection of its own, in one read-only snapshot, each check behind a savepoint, so
// that a failing check does not end the others.

import type { Clock } from "../../shared/ports.js";
import {
  answered,
  type CheckFinding,
  type Checks,
  type OwnCheck,
  type Question,
  questionsOf,
  scriptOf,
  unaskable,
  unfinished,
} from "../checks/checks.js";
import { Repairs } from "../checks/repairs.js";
import type { BoundStatement } from "../session.js";
import { render } from "../sql/dialect.js";
import { fillIn } from "../sql/template.js";
import {
  LinkFailure,
  type PlainLink,
  type PostgresSource,
  plainLink,
} from "./connection/connection.js";
import { PIN_TRANSACTION } from "./connection/pinned.js";
import { DATABASE_CLOCK, type Mutex, type PostgresSession } from "./session.js";

const BEGIN = "begin isolation level repeatable read read only";
/** The server's own timeout is shorter: then the connection stays usable for the next check. */
const CLIENT_TIMEOUT_AFTER_MS = 5_000;
const CANCELLED = "57014";

/** For rare work that takes a connection of its own, one piece at a time. */
type RareParts = {
  readonly session: PostgresSession;
  readonly source: PostgresSource;
  readonly clock: Clock;
  readonly mutex: Mutex;
};

export class PostgresChecks implements Checks {
  readonly #rare: RareParts;

  constructor(rare: RareParts) {
    this.#rare = rare;
  }

  async run({ own, timeLimitMs }: Parameters<Checks["run"]>[0]): Promise<readonly CheckFinding[]> {
    return this.#rare.mutex(() =>
      this.#rare.session.described("checks.run", () => this.#check(own, timeLimitMs)),
    );
  }

  async #check(own: readonly OwnCheck[], timeLimitMs: number): Promise<readonly CheckFinding[]> {
    const link = await plainLink(this.#rare.source, this.#rare.clock);
    try {
      await link.query({ text: BEGIN });
      return await this.#askAll(link, questionsOf("postgres", own), timeLimitMs);
    } finally {
      await link.end();
    }
  }

  async #askAll(
    link: PlainLink,
    questions: readonly Question[],
    timeLimitMs: number,
  ): Promise<readonly CheckFinding[]> {
    const startedMs = this.#rare.clock.monotonicMs();
    const findings: CheckFinding[] = [];
    for (const question of questions) {
      const beganMs = this.#rare.clock.monotonicMs();
      const leftMs = Math.floor(timeLimitMs - (beganMs - startedMs));
      if (leftMs < 1) {
        findings.push(unfinished(question));
        continue;
      }
      await link.query({
        text: `savepoint asked; ${question.isOwn ? "" : `${PIN_TRANSACTION}; `}set local jit = off; set local statement_timeout = ${leftMs}`,
      });
      try {
        const rows = await this.#ask(link, question, leftMs);
        findings.push(answered(question, rows, this.#rare.clock.monotonicMs() - beganMs));
      } catch (error) {
        if (!(error instanceof LinkFailure) || !error.isCertain) throw error;
        findings.push(
          error.code === CANCELLED ? unfinished(question) : unaskable(question, error.cause),
        );
      }
      // Also undoes the settings that were made for this check.
      await link.query({ text: "rollback to savepoint asked; release savepoint asked" });
    }
    return findings;
  }

  async #ask(link: PlainLink, { text, isOwn }: Question, leftMs: number) {
    const timeoutMs = leftMs + CLIENT_TIMEOUT_AFTER_MS;
    if (isOwn) return (await link.query({ text, timeoutMs })).rows;
    const send = async (filled: string, values: readonly unknown[]) =>
      (await link.query({ text: filled, values, timeoutMs })).rows;
    return this.#rare.session.within(send, text, {});
  }

  script(own: readonly OwnCheck[]): string {
    return scriptOf({
      engine: "postgres",
      dialect: { ...this.#rare.session.dialect, now: DATABASE_CLOCK },
      own,
      begin: BEGIN,
      how: 'Run it: psql "$HOLDFAST_DATABASE_URL" -f check.sql',
    });
  }
}

const TIMEOUT_MS = 600_000;
const STILL =
  "lock table {ready}, {waiting}, {lease}, {outcome}, {schedule}, {flow}, {batch} in share row exclusive mode";

export class PostgresRepairs extends Repairs {
  readonly #rare: RareParts;

  constructor(rare: RareParts) {
    super(rare.session);
    this.#rare = rare;
  }

  protected whileStill(verb: string, steps: readonly BoundStatement[]): Promise<readonly number[]> {
    return this.#rare.mutex(() => this.#rare.session.described(verb, () => this.#still(steps)));
  }

  async #still(steps: readonly BoundStatement[]): Promise<readonly number[]> {
    const link = await plainLink(this.#rare.source, this.#rare.clock);
    try {
      await link.query({ text: `begin; ${PIN_TRANSACTION}; set local lock_timeout = '20s'` });
      await link.query({ text: fillIn(STILL, this.#rare.session.dialect) });
      const changed: number[] = [];
      for (const step of steps) changed.push(await this.#change(link, step));
      await link.query({ text: "commit" });
      return changed;
    } finally {
      await link.end();
    }
  }

  /** How many rows it changed. */
  async #change(link: PlainLink, { sql, params }: BoundStatement): Promise<number> {
    let changed = 0;
    const send = async (text: string, values: readonly unknown[]) => {
      const { rows, rowCount } = await link.query({ text, values, timeoutMs: TIMEOUT_MS });
      changed = rowCount;
      return rows;
    };
    await this.#rare.session.within(send, render(sql, "postgres"), params);
    return changed;
  }
}
