// Pauses on PostgreSQL: of everything, of an instance, of a queue.

import type { Pause } from "../../operations/rules/pause.js";
import type { Audited } from "../audit.js";
import { type PauseStore, toPause } from "../pause.js";
import { toQueueRecord } from "../record.js";
import type { Store } from "../store.js";
import type { PostgresAudit } from "./audit.js";
import type { PostgresSession } from "./session.js";
import { PAUSE_QUEUE, QUEUES } from "./sql/flow.js";
import * as sql from "./sql/pause.js";

type Queues = Pick<Store, "pauseQueue" | "queues">;

export class PostgresPause implements PauseStore, Queues {
  readonly #asker: PostgresSession;
  readonly #audit: PostgresAudit;

  constructor(asker: PostgresSession, audit: PostgresAudit) {
    this.#asker = asker;
    this.#audit = audit;
  }

  async pauseAll({ audit, ...params }: Parameters<PauseStore["pauseAll"]>[0]): Promise<Pause> {
    const change = { what: "pauseAll", template: sql.PAUSE_ALL, params, audit };
    for (;;) {
      const row = await this.#change(change);
      // No row: it is on already, unless somebody has lifted it since.
      const pause = row ? toPause(row) : await this.pauseOfAll();
      if (pause) return pause;
    }
  }

  async resumeAll({ audit }: Audited = {}): Promise<Pause | null> {
    const change = { what: "resumeAll", template: sql.RESUME_ALL, params: {}, audit };
    const row = await this.#change(change);
    return row ? toPause(row) : null;
  }

  async quietInstance({
    audit,
    ...params
  }: Parameters<PauseStore["quietInstance"]>[0]): Promise<boolean> {
    const change = { what: "quietInstance", template: sql.QUIET_INSTANCE, params, audit };
    return (await this.#change(change)) !== undefined;
  }

  async pauseQueue(given: Parameters<Queues["pauseQueue"]>[0]): Promise<void> {
    const { note = null, audit, ...rest } = given;
    const params = { ...rest, note };
    const template = PAUSE_QUEUE;
    await this.#change({ what: "pauseQueue", template, params, audit });
  }

  async queues(): ReturnType<Queues["queues"]> {
    return (await this.#asker.repeat("queues", QUEUES, {})).map(toQueueRecord);
  }

  #change(change: Omit<Parameters<PostgresAudit["change"]>[0], "isDone">) {
    return this.#audit.change({ ...change, isDone: (row) => row !== undefined });
  }

  async pauseOfAll(): Promise<Pause | null> {
    const [row] = await this.#asker.repeat("pauseOfAll", sql.PAUSE_OF_ALL, {});
    return row ? toPause(row) : null;
  }
}
