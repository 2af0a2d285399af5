// What metrics ask, on SQLite.

import {
  type FigureRecord,
  type FiguresStore,
  toFigureRecord,
  toScheduleNames,
} from "../figures.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/figures.js";

export class SqliteFigures implements Omit<FiguresStore, "load"> {
  readonly #asker: SqliteSession;

  constructor(asker: SqliteSession) {
    this.#asker = asker;
  }

  async figures({ limit }: { readonly limit: number }): Promise<readonly FigureRecord[]> {
    const { file } = this.#asker;
    const rows = await this.#asker.read((now) => file.all(sql.FIGURES, { limit, now }));
    return rows.map(toFigureRecord);
  }

  async scheduleNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const { file } = this.#asker;
    const params = { ids: JSON.stringify(ids) };
    return toScheduleNames(await file.read(() => file.all(sql.SCHEDULE_NAMES, params)));
  }
}
