// What operators ask, on PostgreSQL.

import type { OperatorStore, StaleParams } from "./operator-store.js";
import type { PostgresAsker } from "./postgres-asker.js";
import * as sql from "./sql/postgres-operators.js";

export class PostgresOperators implements OperatorStore {
  readonly #asker: PostgresAsker;

  constructor(asker: PostgresAsker) {
    this.#asker = asker;
  }

  async expireStale(params: StaleParams): Promise<number> {
    const [row] = await this.#asker.repeat("expireStale", sql.EXPIRE_STALE, params);
    return Number(row?.expired);
  }
}
