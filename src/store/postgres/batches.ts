// Stores the runs that a run makes, on PostgreSQL: in transactions whose last statement checks the lease of the making
// run. The lease is locked only then, so that its heartbeat does not wait for long.

import type { RunId } from "../../runs/rules/run.js";
import { auditedWrite } from "../audit.js";
import {
  addCall,
  type BatchAnswer,
  Batches,
  batchOfCall,
  beginBatch,
  fillBatch,
  isCalled,
  type NewBatch,
  type NewCall,
  type RetryChildren,
} from "../batches.js";
import type { Grant } from "../claims.js";
import type { EnqueueResult, NewRun } from "../enqueue.js";
import type { Statements } from "../session.js";
import { type OpenWaits, readOpenWaits } from "../steps.js";
import type { PostgresTransactions } from "./connection/transactions.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { Send } from "./enqueue-rules.js";
import { RETRY_CHILDREN } from "./runs.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/batches.js";

type Drive = <T>(statements: Statements<T>) => Promise<T>;

/** Rolls back everything that was written under an outdated fence. */
class Stale extends Error {}

export class PostgresBatches extends Batches {
  readonly #session: PostgresSession;
  readonly #transactions: PostgresTransactions;
  readonly #enqueue: PostgresEnqueue;
  readonly #wake: () => void;

  constructor(params: {
    readonly session: PostgresSession;
    readonly transactions: PostgresTransactions;
    readonly enqueue: PostgresEnqueue;
    readonly wake: () => void;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#transactions = params.transactions;
    this.#enqueue = params.enqueue;
    this.#wake = params.wake;
  }

  async enqueueChildren({
    parent,
    runs,
  }: {
    readonly parent: Grant;
    readonly runs: readonly NewRun[];
  }): Promise<readonly EnqueueResult[] | "stale"> {
    await this.#enqueue.rememberAll(runs);
    return this.#underFence("batches.enqueueChildren", parent, (send) =>
      this.#enqueue.storeChildren(send, runs, { parent: parent.id, batch: null }),
    );
  }

  async enqueue(batch: NewBatch): Promise<BatchAnswer | "stale"> {
    const runs = batch.children.map(({ run }) => run);
    await this.#enqueue.rememberAll(batch.after ? [...runs, batch.after] : runs);
    const numbers = batch.after && this.#enqueue.numbersOf(batch.after);
    return this.#underFence("batches.enqueue", batch.parent, async (send, drive) => {
      const begun = await drive(beginBatch(batch, numbers));
      if ("made" in begun) return begun.made;
      const origin = { parent: batch.parent.id, batch: begun.id };
      const stored = await this.#enqueue.storeChildren(send, runs, origin);
      const { answer, counts } = await drive(fillBatch(begun.id, batch, stored));
      await send(sql.COUNT_BATCH, { batch: begun.id, ...counts });
      return answer;
    });
  }

  async call(call: NewCall): Promise<OpenWaits | "stale"> {
    const { parent, child } = call;
    await this.#enqueue.rememberAll([child]);
    return this.#underFence("batches.call", parent, async (send, drive) => {
      const batch = batchOfCall(call);
      if (!(await drive(isCalled(call)))) {
        const begun = await drive(beginBatch(batch, null));
        if ("made" in begun) throw new Stale();
        const origin = { parent: parent.id, batch: begun.id };
        const stored = await this.#enqueue.storeChildren(send, [child], origin);
        const { counts } = await drive(fillBatch(begun.id, batch, stored));
        await send(sql.COUNT_BATCH, { batch: begun.id, ...counts });
        await drive(addCall(call, begun.id));
      }
      return drive(readOpenWaits(parent.id));
    });
  }

  async retryChildren(params: RetryChildren): Promise<readonly RunId[]> {
    const { parent, batch = null, after = null, limit } = params;
    const values = { parent, batch, after, limit, isGated: false };
    const row = await auditedWrite(this.#session, {
      verb: "batches.retryChildren",
      sql: RETRY_CHILDREN,
      params: values,
      audit: params.audit,
      hasChanged: (found) => found?.revived != null,
    });
    return (row?.revived ?? []) as RunId[];
  }

  async #underFence<T>(
    what: string,
    { id, fence }: Grant,
    work: (send: Send, drive: Drive) => Promise<T>,
  ): Promise<T | "stale"> {
    try {
      const value = await this.#session.retryWhileUnavailable(what, () =>
        this.#transactions.run(async (query) => {
          const send: Send = (template, params) => this.#session.within(query, template, params);
          const answer = await work(send, (steps) => this.#session.drive(query, steps));
          if ((await send(sql.HELD, { parent: id, fence })).length === 0) throw new Stale();
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
