// What operators ask, on SQLite.

import type { OperatorStore, StaleParams } from "./operator-store.js";
import * as sql from "./sql/sqlite-operators.js";
import type { SqliteFile } from "./sqlite.js";

export class SqliteOperators implements OperatorStore {
  readonly #file: SqliteFile;
  readonly #write: <T>(what: string, work: (now: number) => T) => Promise<T>;

  constructor(params: {
    readonly file: SqliteFile;
    readonly write: <T>(what: string, work: (now: number) => T) => Promise<T>;
  }) {
    this.#file = params.file;
    this.#write = params.write;
  }

  async expireStale(params: StaleParams): Promise<number> {
    return this.#write("expireStale", (now) =>
      this.#file.run(sql.EXPIRE_STALE, { ...params, now }),
    );
  }
}
