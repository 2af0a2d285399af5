// Runs that a run makes, on PostgreSQL: transactions whose last statement looks at the lease of the
// run that makes them. The lease is locked only then, so that its heartbeat does not wait for long.

import type { RunId } from "../../runs/rules/run.js";
import { countBatch, foreignRuns } from "../batch-count.js";
import type * as batches from "../batches.js";
import { toBatchRecord, toRunRecords } from "../record.js";
import { statusOrder } from "../rows.js";
import type * as store from "../store.js";
import type { PostgresAudit } from "./audit.js";
import type { Row } from "./connection.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { Send } from "./enqueue-rules.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/batches.js";
import { RETRY_CHILDREN } from "./sql/runs.js";
import type { PostgresTransactions } from "./transactions.js";

/** Rolls back what was written under a fence that is no longer the current one. */
class Stale extends Error {}

export class PostgresBatches implements store.BatchStore {
  readonly #asker: PostgresSession;
  readonly #transactions: PostgresTransactions;
  readonly #enqueue: PostgresEnqueue;
  readonly #wake: () => void;
  readonly #audit: PostgresAudit;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly transactions: PostgresTransactions;
    readonly enqueue: PostgresEnqueue;
    readonly wake: () => void;
    readonly audit: PostgresAudit;
  }) {
    this.#asker = params.asker;
    this.#transactions = params.transactions;
    this.#enqueue = params.enqueue;
    this.#wake = params.wake;
    this.#audit = params.audit;
  }

  async enqueueChildren({
    parent,
    runs,
  }: {
    readonly parent: store.Grant;
    readonly runs: readonly store.NewRun[];
  }): Promise<readonly store.EnqueueAnswer[] | "stale"> {
    await this.#enqueue.rememberAll(runs);
    return this.#underFence("enqueueChildren", parent, (ask) =>
      this.#enqueue.storeChildren(ask, runs, { parent: parent.id, batch: null }),
    );
  }

  async enqueueBatch(batch: store.NewBatch): Promise<batches.BatchAnswer | "stale"> {
    const runs = batch.children.map(({ run }) => run);
    await this.#enqueue.rememberAll(batch.after ? [...runs, batch.after] : runs);
    return this.#underFence("enqueueBatch", batch.parent, async (ask) => {
      const { name } = batch;
      const parent = batch.parent.id;
      const [added] = await ask(sql.ADD_BATCH, {
        parent,
        name,
        ...this.#continuation(batch.after),
      });
      if (!added) {
        const [made] = await ask(sql.MADE_BATCH, { parent, name });
        return toAnswer(made as Row);
      }
      const id = Number(added.id);
      const answers = await this.#enqueue.storeChildren(ask, runs, { parent, batch: id });
      const foreign = foreignRuns(answers);
      const ended = foreign.length === 0 ? [] : await ask(sql.OUTCOMES, { ids: foreign });
      const endedAs = new Map(ended.map((row) => [String(row.id), Number(row.status)]));
      const { scheduled, errors, ...counts } = countBatch(batch, answers, endedAs);
      const refused = errors.length;
      await ask(sql.FILL_BATCH, { batch: id, scheduled, refused, errors: JSON.stringify(errors) });
      await ask(sql.COUNT_BATCH, { batch: id, ...counts });
      return { scheduled, errors };
    });
  }

  #continuation(after: store.NewRun | null): Row {
    const { lane, policy } = after ? this.#enqueue.numbersOf(after) : { lane: null, policy: null };
    return {
      thenRun: after?.id ?? null,
      thenLane: lane,
      thenPolicy: policy,
      thenVersion: after?.version ?? null,
      thenPriority: after?.priority ?? null,
    };
  }

  async batches(run: RunId): Promise<readonly batches.BatchRecord[]> {
    return (await this.#asker.repeat("batches", sql.BATCHES, { run })).map(toBatchRecord);
  }

  async children(filter: batches.ChildFilter): Promise<readonly store.RunRecord[]> {
    const { parent, batch = null, before = null, status, limit } = filter;
    const rows = await this.#asker.repeat("children", sql.CHILDREN, {
      parent,
      batch,
      before,
      status: status === undefined ? null : statusOrder(status),
      limit,
    });
    return toRunRecords(rows);
  }

  async retryChildren(params: batches.RetryChildren): Promise<readonly RunId[]> {
    const { parent, batch = null, after = null, limit } = params;
    const values = { parent, batch, after, limit, isGated: false };
    const row = await this.#audit.change({
      what: "retryChildren",
      template: RETRY_CHILDREN,
      params: values,
      audit: params.audit,
      isDone: (found) => found?.revived != null,
    });
    return (row?.revived ?? []) as RunId[];
  }

  async #underFence<T>(
    what: string,
    { id, fence }: store.Grant,
    work: (ask: Send) => Promise<T>,
  ): Promise<T | "stale"> {
    try {
      const value = await this.#asker.patiently(what, () =>
        this.#transactions.run(async (query) => {
          const ask: Send = (template, params) => this.#asker.within(query, template, params);
          const answer = await work(ask);
          if ((await ask(sql.HELD, { parent: id, fence })).length === 0) throw new Stale();
          return answer;
        }),
      );
      this.#wake();
      return value;
    } catch (error) {
      if (error instanceof Stale) return "stale";
      throw error;
    }
  }
}

function toAnswer(row: Row): batches.BatchAnswer {
  const errors = JSON.parse(String(row.errors)) as batches.BatchError[];
  return { scheduled: Number(row.scheduled), errors };
}
