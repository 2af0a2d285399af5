// Single runs on PostgreSQL: what is known of them, and what operators do to them.

import type { AuditEntry } from "../../operations/rules/audit.js";
import { MODES, type RunId } from "../../runs/rules/run.js";
import { OutcomeUnknownError } from "../../shared/errors.js";
import { idsFrom } from "../../shared/id.js";
import { type Clock, delay } from "../../shared/ports.js";
import { toAttemptRecord, toRunRecord, toRunRecords, toWaiting } from "../record.js";
import type * as store from "../store.js";
import type { RunVerbs } from "../store-of-parts.js";
import type { PostgresAudit } from "./audit.js";
import type { Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import * as reads from "./sql/reads.js";
import { REMOVE } from "./sql/retention.js";
import * as sql from "./sql/runs.js";

const COMPLETED = 1;

export class PostgresRuns implements RunVerbs {
  readonly #asker: PostgresSession;
  readonly #clock: Clock;
  readonly #audit: PostgresAudit;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly clock: Clock;
    readonly audit: PostgresAudit;
  }) {
    this.#asker = params.asker;
    this.#clock = params.clock;
    this.#audit = params.audit;
  }

  async cancel({
    audit,
    ...params
  }: Parameters<store.Store["cancel"]>[0]): Promise<store.CancelAnswer> {
    return this.#untilSettled(async () => {
      const row = await this.#change("cancel", sql.CANCEL, params, audit, "cancelled", "requested");
      if (row.cancelled) return "cancelled";
      if (row.requested) return "requested";
      if (row.terminal) return "already_terminal";
      return row.known ? null : "not_found";
    });
  }

  /** A statement of an operator; it has done something where one of these columns is true. */
  async #change(
    what: string,
    template: string,
    params: object,
    audit: AuditEntry | undefined,
    ...done: readonly string[]
  ): Promise<Row> {
    const isDone = (row: Row = {}) => done.some((column) => row[column] === true);
    return (await this.#audit.change({ what, template, params, audit, isDone })) ?? {};
  }

  async retry({ id, audit }: Parameters<store.Store["retry"]>[0]): Promise<store.RetryAnswer> {
    const params = { id, isGated: false };
    const row = await this.#change("retry", sql.RETRY, params, audit, "reopened");
    if (row.reopened) return "pending";
    if (!row.known) return "not_found";
    return row.status === COMPLETED ? "completed" : "not_terminal";
  }

  async remove({
    id,
    audit,
  }: Parameters<store.Store["remove"]>[0]): Promise<"removed" | "not_terminal" | "not_found"> {
    const row = await this.#change("remove", REMOVE, { id }, audit, "removed");
    if (row.removed) return "removed";
    return row.known ? "not_terminal" : "not_found";
  }

  async runsLike({
    digits,
    limit,
  }: Parameters<store.Store["runsLike"]>[0]): Promise<readonly RunId[]> {
    const params = { ...idsFrom(digits), digits, limit };
    const rows = await this.#asker.repeat("runsLike", reads.RUNS_LIKE, params);
    return rows.map((row) => String(row.id));
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const [row] = await this.#asker.repeat("run", reads.GET_RUN, { id });
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const rows = await this.#asker.repeat("runs", reads.LIST_RUNS[filter.status ?? "any"], {
      before: filter.before ?? null,
      since: filter.since ?? null,
      job: filter.job ?? null,
      schedule: filter.schedule ?? null,
      mode: filter.mode === undefined ? null : MODES.indexOf(filter.mode),
      tag: filter.tag ?? null,
      text: filter.text ?? null,
      limit: filter.limit,
    });
    return toRunRecords(rows);
  }

  async attempts(id: RunId): Promise<readonly store.AttemptRecord[]> {
    return (await this.#asker.repeat("attempts", reads.ATTEMPTS, { id })).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    return (await this.#asker.repeat("terminal", reads.TERMINAL, { ids })).map((row) =>
      String(row.id),
    );
  }

  async waitingFor(id: RunId): ReturnType<store.Store["waitingFor"]> {
    const [row] = await this.#asker.repeat("waitingFor", reads.WAITING_FOR, { id });
    return row ? toWaiting(row) : null;
  }

  /** A run that is moving from one table to the next is looked at again. */
  async #untilSettled<T>(look: () => Promise<T | null>): Promise<T> {
    for (let tries = 1; tries <= 100; tries += 1) {
      const answer = await look();
      if (answer !== null) return answer;
      await delay(this.#clock, tries);
    }
    throw new OutcomeUnknownError("cancel");
  }
}
