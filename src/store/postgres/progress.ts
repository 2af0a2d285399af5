// How far runs are, on PostgreSQL.

import type { RunId } from "../../runs/rules/run.js";
import { type ProgressParams, type ProgressRecord, toProgressRecord } from "../progress.js";
import type { RenewAnswer } from "../store.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/progress.js";

export class PostgresProgress {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  /** On the connection of the heartbeats, since it is one. */
  async write({ holder, writes, timeoutMs }: ProgressParams): Promise<RenewAnswer> {
    const sent = writes.map(({ stages, ...write }) => ({
      ...write,
      stages: stages.map(({ stage, agoMs }) => [stage, agoMs]),
    }));
    const params = { holder, writes: JSON.stringify(sent) };
    const [row] = await this.#asker.attempt(
      "progress",
      this.#asker.beat,
      sql.PROGRESS,
      params,
      timeoutMs,
    );
    const held = (row?.held ?? []) as [number, number, RunId[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }

  async of(ids: readonly RunId[]): Promise<ProgressRecord[]> {
    return (await this.#asker.repeat("progress", sql.PROGRESS_OF, { ids })).map(toProgressRecord);
  }
}
