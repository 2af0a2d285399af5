// Pauses on SQLite: of everything, of an instance, of a queue.

import type { Pause } from "../../operations/rules/pause.js";
import { type PauseStore, toPause } from "../pause.js";
import { toQueueRecord } from "../record.js";
import type { Store } from "../store.js";
import type { SqliteAudit } from "./audit.js";
import type { SqliteFile } from "./connection.js";
import { PAUSE_QUEUE, QUEUES } from "./sql/flow.js";
import * as sql from "./sql/pause.js";

type Queues = Pick<Store, "pauseQueue" | "queues">;

export class SqlitePause implements PauseStore, Queues {
  readonly #file: SqliteFile;
  readonly #audit: SqliteAudit;

  constructor(file: SqliteFile, audit: SqliteAudit) {
    this.#file = file;
    this.#audit = audit;
  }

  /** Inside of a transaction that is about to fire or to claim. */
  get isOn(): boolean {
    return this.#file.get(sql.PAUSE_OF_ALL) !== undefined;
  }

  readonly pauseAll: PauseStore["pauseAll"] = async ({ audit, ...params }) => {
    const { pause } = await this.#audit.change({
      what: "pauseAll",
      audit,
      work: (now) => {
        const row = this.#file.get(sql.PAUSE_ALL, { ...params, now });
        const pause = toPause(row ?? this.#file.get(sql.PAUSE_OF_ALL) ?? {});
        return { pause, isNew: row !== undefined };
      },
      isDone: ({ isNew }) => isNew,
    });
    return pause;
  };

  readonly resumeAll: PauseStore["resumeAll"] = ({ audit } = {}) =>
    this.#audit.change<Pause | null>({
      what: "resumeAll",
      audit,
      work: (now) => {
        const row = this.#file.get(sql.RESUME_ALL, { now });
        return row ? toPause(row) : null;
      },
      isDone: (lifted) => lifted !== null,
    });

  readonly quietInstance: PauseStore["quietInstance"] = ({ audit, ...params }) =>
    this.#audit.change({
      what: "quietInstance",
      audit,
      work: (now) => this.#file.get(sql.QUIET_INSTANCE, { ...params, now }) !== undefined,
      isDone: (isKnown) => isKnown,
    });

  pauseOfAll(): Promise<Pause | null> {
    return this.#file.read(() => {
      const row = this.#file.get(sql.PAUSE_OF_ALL);
      return row ? toPause(row) : null;
    });
  }

  readonly pauseQueue: Queues["pauseQueue"] = async ({ note = null, audit, ...params }) => {
    await this.#audit.change({
      what: "pauseQueue",
      audit,
      work: (now) => this.#file.run(PAUSE_QUEUE, { ...params, note, now }),
      isDone: (changed) => changed > 0,
    });
  };

  readonly queues: Queues["queues"] = () =>
    this.#file.read(() => this.#file.all(QUEUES).map(toQueueRecord));

  prune(keepMs: number, now: number): number {
    return this.#file.run(sql.PRUNE_PAUSES, { keepMs, now });
  }
}
