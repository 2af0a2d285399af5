// What operators ask, on SQLite.

import {
  type FailureRecord,
  type Glance,
  type InstanceFilter,
  type InstanceRecord,
  type OperatorStore,
  type StaleParams,
  type StatisticsFilter,
  type StatisticsRecord,
  sinceParams,
  toFailureRecord,
  toGlance,
  toInstanceRecord,
  toStatisticsRecord,
} from "../operators.js";
import {
  type TimelineCell,
  type TimelineParams,
  type TimelineStore,
  toTimelineCell,
} from "../timeline.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/operators.js";
import { TIMELINE } from "./sql/timeline.js";

export class SqliteOperators implements OperatorStore, TimelineStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;

  constructor(asker: SqliteSession) {
    this.#asker = asker;
    this.#file = asker.file;
  }

  async expireStale({ respectsLeases = false, ...times }: StaleParams): Promise<number> {
    const params = { ...times, respectsLeases: Number(respectsLeases) };
    return this.#asker.write("expireStale", (now) =>
      this.#file.run(sql.EXPIRE_STALE, { ...params, now }),
    );
  }

  async glance(): Promise<Glance> {
    const [row = {}] = await this.#read(sql.GLANCE, {});
    return toGlance(row);
  }

  async instances({ limit, after }: InstanceFilter): Promise<readonly InstanceRecord[]> {
    const params = { limit, isLive: after?.isLive ?? null, no: after?.no ?? null };
    return (await this.#read(sql.INSTANCES, params)).map(toInstanceRecord);
  }

  async statistics({ since, ...rest }: StatisticsFilter): Promise<readonly StatisticsRecord[]> {
    const rows = await this.#read(sql.STATISTICS, { ...rest, ...sinceParams(since) });
    return rows.map(toStatisticsRecord);
  }

  async failures({
    since,
    limit,
  }: Parameters<OperatorStore["failures"]>[0]): Promise<readonly FailureRecord[]> {
    return (await this.#read(sql.FAILURES, { limit, ...sinceParams(since) })).map(toFailureRecord);
  }

  async timeline({ names, ...rest }: TimelineParams): Promise<readonly TimelineCell[]> {
    const params = { ...rest, names: JSON.stringify(names) };
    return (await this.#file.read(() => this.#file.all(TIMELINE, params))).map(toTimelineCell);
  }

  #read(template: string, params: Row): Promise<Row[]> {
    return this.#asker.read((now) => this.#file.all(template, { ...params, now }));
  }
}
