// Checks on PostgreSQL: a connection of its own, one read-only snapshot, each question behind a savepoint,
// so that one that cannot be asked does not end the others.

import type { Clock } from "../../shared/ports.js";
import {
  answered,
  type CheckFinding,
  type CheckStore,
  type OwnCheck,
  type Question,
  questionsOf,
  scriptOf,
  unaskable,
  unfinished,
} from "../checks.js";
import { LinkFailure, type PlainLink, type PostgresSource, plainLink } from "./connection.js";
import type { InTurn } from "./mutex.js";
import { PIN_TRANSACTION } from "./pinned.js";
import { DATABASE_CLOCK, type PostgresSession } from "./session.js";

const BEGIN = "begin isolation level repeatable read read only";
/** The server gives up by itself first: then the connection can be used for what is next. */
const CLIENT_PATIENCE_MS = 5_000;
const CANCELLED = "57014";

export class PostgresChecks implements CheckStore {
  readonly #asker: PostgresSession;
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  readonly #inTurn: InTurn;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly source: PostgresSource;
    readonly clock: Clock;
    readonly inTurn: InTurn;
  }) {
    this.#asker = params.asker;
    this.#source = params.source;
    this.#clock = params.clock;
    this.#inTurn = params.inTurn;
  }

  async check({
    own,
    timeLimitMs,
  }: Parameters<CheckStore["check"]>[0]): Promise<readonly CheckFinding[]> {
    return this.#inTurn(() => this.#asker.described("check", () => this.#check(own, timeLimitMs)));
  }

  async #check(own: readonly OwnCheck[], timeLimitMs: number): Promise<readonly CheckFinding[]> {
    const link = await plainLink(this.#source, this.#clock);
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
    const startedMs = this.#clock.monotonicMs();
    const findings: CheckFinding[] = [];
    for (const question of questions) {
      const beganMs = this.#clock.monotonicMs();
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
        findings.push(answered(question, rows, this.#clock.monotonicMs() - beganMs));
      } catch (error) {
        if (!(error instanceof LinkFailure) || !error.isCertain) throw error;
        findings.push(
          error.code === CANCELLED ? unfinished(question) : unaskable(question, error.cause),
        );
      }
      // What was set for this question goes with it.
      await link.query({ text: "rollback to savepoint asked; release savepoint asked" });
    }
    return findings;
  }

  async #ask(link: PlainLink, { text, isOwn }: Question, leftMs: number) {
    const timeoutMs = leftMs + CLIENT_PATIENCE_MS;
    if (isOwn) return (await link.query({ text, timeoutMs })).rows;
    const send = async (filled: string, values: readonly unknown[]) =>
      (await link.query({ text: filled, values, timeoutMs })).rows;
    return this.#asker.within(send, text, {});
  }

  checkScript(own: readonly OwnCheck[]): string {
    return scriptOf({
      engine: "postgres",
      dialect: { ...this.#asker.dialect, now: DATABASE_CLOCK },
      own,
      begin: BEGIN,
      how: 'Run it: psql "$HOLDFAST_DATABASE_URL" -f check.sql',
    });
  }
}
