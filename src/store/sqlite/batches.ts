// Runs that a run makes, on SQLite: children, and batches of them.

import type { RunId } from "../../runs/rules/run.js";
import { countBatch, foreignRuns } from "../batch-count.js";
import type * as batches from "../batches.js";
import { toBatchRecord, toRunRecords } from "../record.js";
import { statusOrder } from "../rows.js";
import type * as store from "../store.js";
import type { SqliteAudit } from "./audit.js";
import { changeBatch } from "./child-counts.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteLeases } from "./leases.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/batches.js";

export class SqliteBatches implements store.BatchStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #audit: SqliteAudit;
  readonly #enqueue: SqliteEnqueue;
  readonly #leases: SqliteLeases;
  readonly #flow: SqliteLimits;

  constructor(params: {
    readonly asker: SqliteSession;
    readonly audit: SqliteAudit;
    readonly enqueue: SqliteEnqueue;
    readonly leases: SqliteLeases;
    readonly flow: SqliteLimits;
  }) {
    this.#asker = params.asker;
    this.#file = params.asker.file;
    this.#audit = params.audit;
    this.#enqueue = params.enqueue;
    this.#leases = params.leases;
    this.#flow = params.flow;
  }

  enqueueChildren({
    parent,
    runs,
  }: {
    readonly parent: store.Grant;
    readonly runs: readonly store.NewRun[];
  }): Promise<readonly store.EnqueueAnswer[] | "stale"> {
    return this.#asker.write("enqueueChildren", (now) => {
      if (!this.#isHeld(parent)) return "stale";
      const origin = { parent: parent.id, batch: null };
      return this.#enqueue.store({ runs, isAtomic: false }, now, origin);
    });
  }

  enqueueBatch(batch: store.NewBatch): Promise<batches.BatchAnswer | "stale"> {
    return this.#asker.write("enqueueBatch", (now) => this.#enqueueBatch(batch, now));
  }

  #enqueueBatch(batch: store.NewBatch, now: number): batches.BatchAnswer | "stale" {
    if (!this.#isHeld(batch.parent)) return "stale";
    const { name, after } = batch;
    const parent = batch.parent.id;
    const added = this.#file.get(sql.ADD_BATCH, {
      parent,
      name,
      now,
      ...this.#continuation(after),
    });
    if (!added) {
      const made = this.#file.get(sql.MADE_BATCH, { parent, name }) as Row;
      const errors = JSON.parse(String(made.errors)) as batches.BatchError[];
      return { scheduled: Number(made.scheduled), errors };
    }
    const id = Number(added.id);
    const runs = batch.children.map(({ run }) => run);
    const answers = this.#enqueue.store({ runs, isAtomic: false }, now, { parent, batch: id });
    const ids = JSON.stringify(foreignRuns(answers));
    const ended = this.#file.all(sql.OUTCOMES, { ids });
    const endedAs = new Map(ended.map((row) => [String(row.id), Number(row.status)]));
    const { scheduled, errors, ...counts } = countBatch(batch, answers, endedAs);
    this.#file.run(sql.FILL_BATCH, {
      batch: id,
      scheduled,
      refused: errors.length,
      errors: JSON.stringify(errors),
    });
    changeBatch({ file: this.#file, flow: this.#flow }, { batch: id, ...counts }, now);
    return { scheduled, errors };
  }

  async batches(run: RunId): Promise<readonly batches.BatchRecord[]> {
    const rows = await this.#file.read(() => this.#file.all(sql.BATCHES, { run }));
    return rows.map(toBatchRecord);
  }

  async children(filter: batches.ChildFilter): Promise<readonly store.RunRecord[]> {
    const { parent, batch = null, before = null, limit } = filter;
    const status = filter.status === undefined ? null : statusOrder(filter.status);
    const asked = { parent, batch, before, status, limit };
    return toRunRecords(await this.#file.read(() => this.#file.all(sql.CHILDREN, asked)));
  }

  retryChildren({ audit, ...params }: batches.RetryChildren): Promise<readonly RunId[]> {
    const { parent, batch = null, after = null, limit } = params;
    const work = (now: number): readonly RunId[] => {
      const rows = this.#file.all(sql.FAILED_CHILDREN, { parent, batch, after, limit });
      const ids = rows.map((row) => String(row.id));
      for (const id of ids) this.#leases.revive({ id, isGated: false }, now);
      return ids;
    };
    const isDone = (revived: readonly RunId[]) => revived.length > 0;
    return this.#audit.change({ what: "retryChildren", audit, work, isDone });
  }

  #isHeld({ id, fence }: store.Grant): boolean {
    return this.#file.get(sql.HELD, { fence, parent: id }) !== undefined;
  }

  #continuation(after: store.NewRun | null): Row {
    return {
      thenRun: after?.id ?? null,
      thenLane: after && this.#enqueue.lane(after.queue, after.job),
      thenPolicy: after && this.#enqueue.policy(after.policy),
      thenVersion: after?.version ?? null,
      thenPriority: after?.priority ?? null,
    };
  }
}
