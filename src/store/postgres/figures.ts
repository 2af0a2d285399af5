// What metrics ask, on PostgreSQL.

import {
  type FigureRecord,
  type FiguresStore,
  toFigureRecord,
  toScheduleNames,
} from "../figures.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/figures.js";

export class PostgresFigures implements Omit<FiguresStore, "load"> {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async figures(params: { readonly limit: number }): Promise<readonly FigureRecord[]> {
    return (await this.#asker.repeat("figures", sql.FIGURES, params)).map(toFigureRecord);
  }

  async scheduleNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const params = { ids: [...ids] };
    return toScheduleNames(await this.#asker.repeat("scheduleNames", sql.SCHEDULE_NAMES, params));
  }
}
