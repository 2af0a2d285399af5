// Stores the runs that a run makes, on SQLite: children, and batches of them.

import type { RunId } from "../../runs/rules/run.js";
import {
  addCall,
  type BatchAnswer,
  Batches,
  batchOfCall,
  beginBatch,
  FAILED_CHILDREN,
  fillBatch,
  isCalled,
  type NewBatch,
  type NewCall,
  type RetryChildren,
} from "../batches.js";
import type { Grant } from "../claims.js";
import type { EnqueueResult, NewRun } from "../enqueue.js";
import { rows, type Statements } from "../session.js";
import { type OpenWaits, readOpenWaits } from "../steps.js";
import { changeBatch } from "./child-counts.js";
import type { SqliteFile } from "./connection/connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { LeaseRows } from "./lease-rows.js";
import type { SqliteLimits } from "./limits.js";
import type { SqliteSession } from "./session.js";

export const HELD = /* sql */ `
select 1 from {lease} k where k.fence = :fence and exists (select 1 from json_each(k.ids) m where m.value = :parent)`;

export class SqliteBatches extends Batches {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #enqueue: SqliteEnqueue;
  readonly #leases: LeaseRows;
  readonly #limits: SqliteLimits;

  constructor(params: {
    readonly session: SqliteSession;
    readonly enqueue: SqliteEnqueue;
    readonly leases: LeaseRows;
    readonly limits: SqliteLimits;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#file = params.session.file;
    this.#enqueue = params.enqueue;
    this.#leases = params.leases;
    this.#limits = params.limits;
  }

  enqueueChildren({
    parent,
    runs,
  }: {
    readonly parent: Grant;
    readonly runs: readonly NewRun[];
  }): Promise<readonly EnqueueResult[] | "stale"> {
    return this.#session.transact("batches.enqueueChildren", (now) => {
      if (!this.#isHeld(parent)) return "stale";
      const origin = { parent: parent.id, batch: null };
      return this.#enqueue.store({ runs, isAtomic: false }, now, origin);
    });
  }

  enqueue(batch: NewBatch): Promise<BatchAnswer | "stale"> {
    return this.#session.transact("batches.enqueue", (now) => this.#enqueueBatch(batch, now));
  }

  #enqueueBatch(batch: NewBatch, now: number): BatchAnswer | "stale" {
    if (!this.#isHeld(batch.parent)) return "stale";
    const { after } = batch;
    const numbers = after && {
      lane: this.#enqueue.lane(after.queue, after.job),
      policy: this.#enqueue.policy(after.policy),
    };
    const begun = this.#session.drive(beginBatch(batch, numbers), now);
    if ("made" in begun) return begun.made;
    const runs = batch.children.map(({ run }) => run);
    const origin = { parent: batch.parent.id, batch: begun.id };
    const stored = this.#enqueue.store({ runs, isAtomic: false }, now, origin);
    const { answer, counts } = this.#session.drive(fillBatch(begun.id, batch, stored), now);
    changeBatch({ file: this.#file, limits: this.#limits }, { batch: begun.id, ...counts }, now);
    return answer;
  }

  call(call: NewCall): Promise<OpenWaits | "stale"> {
    const { parent, child } = call;
    return this.#session.transact("batches.call", (now) => {
      if (!this.#isHeld(parent)) return "stale";
      const drive = <T>(statements: Statements<T>) => this.#session.drive(statements, now);
      if (!drive(isCalled(call))) {
        const batch = batchOfCall(call);
        const begun = drive(beginBatch(batch, null));
        if ("made" in begun) return "stale";
        const origin = { parent: parent.id, batch: begun.id };
        const stored = this.#enqueue.store({ runs: [child], isAtomic: false }, now, origin);
        const { counts } = drive(fillBatch(begun.id, batch, stored));
        changeBatch(
          { file: this.#file, limits: this.#limits },
          { batch: begun.id, ...counts },
          now,
        );
        drive(addCall(call, begun.id));
      }
      return drive(readOpenWaits(parent.id));
    });
  }

  retryChildren({ audit, ...params }: RetryChildren): Promise<readonly RunId[]> {
    const { parent, batch = null, after = null, limit } = params;
    const work = (now: number): readonly RunId[] => {
      const which = { parent, batch, after, limit };
      const failed = this.#session.drive(rows(FAILED_CHILDREN, which), now);
      const ids = failed.map((row) => String(row.id));
      for (const id of ids) this.#leases.revive({ id, isGated: false }, now);
      return ids;
    };
    const hasChanged = (revived: readonly RunId[]) => revived.length > 0;
    return this.#session.audited({ verb: "batches.retryChildren", audit, work, hasChanged });
  }

  #isHeld({ id, fence }: Grant): boolean {
    return this.#file.get(HELD, { fence, parent: id }) !== undefined;
  }
}
