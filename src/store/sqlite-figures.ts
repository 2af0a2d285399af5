// What metrics ask, on SQLite.

import type { FigureRecord, FiguresStore } from "./figures-store.js";
import { toFigureRecord, toScheduleNames } from "./record-figures.js";
import * as sql from "./sql/sqlite-figures.js";
import type { SqliteFile } from "./sqlite.js";

export class SqliteFigures implements Omit<FiguresStore, "load"> {
  readonly #file: SqliteFile;
  readonly #now: () => number;

  constructor(params: { readonly file: SqliteFile; readonly now: () => number }) {
    this.#file = params.file;
    this.#now = params.now;
  }

  async figures({ limit }: { readonly limit: number }): Promise<readonly FigureRecord[]> {
    const params = () => ({ limit, now: this.#now() });
    const rows = await this.#file.read(() => this.#file.all(sql.FIGURES, params()));
    return rows.map(toFigureRecord);
  }

  async scheduleNames(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const params = { ids: JSON.stringify(ids) };
    return toScheduleNames(await this.#file.read(() => this.#file.all(sql.SCHEDULE_NAMES, params)));
  }
}
