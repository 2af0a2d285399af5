// The pause of everything on PostgreSQL.

import type { Pause } from "../core/pause.js";
import type { PauseStore } from "./pause-store.js";
import type { PostgresAsker } from "./postgres-asker.js";
import { toPause } from "./record-pause.js";
import * as sql from "./sql/postgres-pause.js";

export class PostgresPause implements PauseStore {
  readonly #asker: PostgresAsker;

  constructor(asker: PostgresAsker) {
    this.#asker = asker;
  }

  async pauseAll(params: Parameters<PauseStore["pauseAll"]>[0]): Promise<Pause> {
    const [row = {}] = await this.#asker.repeat("pauseAll", sql.PAUSE_ALL, params);
    return toPause(row);
  }

  async resumeAll(): Promise<Pause | null> {
    const [row] = await this.#asker.repeat("resumeAll", sql.RESUME_ALL, {});
    return row ? toPause(row) : null;
  }

  async pauseOfAll(): Promise<Pause | null> {
    const [row] = await this.#asker.repeat("pauseOfAll", sql.PAUSE_OF_ALL, {});
    return row ? toPause(row) : null;
  }
}
