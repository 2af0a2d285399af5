// The pause of everything on SQLite.

import type { Pause } from "../core/pause.js";
import type { PauseStore } from "./pause-store.js";
import { toPause } from "./record-pause.js";
import * as sql from "./sql/sqlite-pause.js";
import type { SqliteFile } from "./sqlite.js";

export class SqlitePause implements PauseStore {
  readonly #file: SqliteFile;
  readonly #write: <T>(what: string, work: (now: number) => T) => Promise<T>;

  constructor(params: {
    readonly file: SqliteFile;
    readonly write: <T>(what: string, work: (now: number) => T) => Promise<T>;
  }) {
    this.#file = params.file;
    this.#write = params.write;
  }

  /** Inside of a transaction that is about to fire or to claim. */
  get isOn(): boolean {
    return this.#file.get(sql.PAUSE_OF_ALL) !== undefined;
  }

  pauseAll(params: Parameters<PauseStore["pauseAll"]>[0]): Promise<Pause> {
    return this.#write("pauseAll", (now) =>
      toPause(this.#file.get(sql.PAUSE_ALL, { ...params, now }) ?? {}),
    );
  }

  resumeAll(): Promise<Pause | null> {
    return this.#write("resumeAll", (now) => {
      const row = this.#file.get(sql.RESUME_ALL, { now });
      return row ? toPause(row) : null;
    });
  }

  pauseOfAll(): Promise<Pause | null> {
    return this.#file.read(() => {
      const row = this.#file.get(sql.PAUSE_OF_ALL);
      return row ? toPause(row) : null;
    });
  }

  prune(keepMs: number, now: number): number {
    return this.#file.run(sql.PRUNE_PAUSES, { keepMs, now });
  }
}
