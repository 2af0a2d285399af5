// What operators ask, on PostgreSQL.

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
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/operators.js";
import { TIMELINE } from "./sql/operators.js";

export class PostgresOperators implements OperatorStore, TimelineStore {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async expireStale({ respectsLeases = false, ...times }: StaleParams): Promise<number> {
    const params = { ...times, respectsLeases };
    const [row] = await this.#asker.repeat("expireStale", sql.EXPIRE_STALE, params);
    return Number(row?.expired);
  }

  async glance(): Promise<Glance> {
    const [row = {}] = await this.#asker.repeat("glance", sql.GLANCE, {});
    return toGlance(row);
  }

  async instances({ limit, after }: InstanceFilter): Promise<readonly InstanceRecord[]> {
    const params = { limit, isLive: after?.isLive ?? null, no: after?.no ?? null };
    return (await this.#asker.repeat("instances", sql.INSTANCES, params)).map(toInstanceRecord);
  }

  async statistics(filter: StatisticsFilter): Promise<readonly StatisticsRecord[]> {
    const params = { ...filter, ...sinceParams(filter.since) };
    return (await this.#asker.repeat("statistics", sql.STATISTICS, params)).map(toStatisticsRecord);
  }

  async failures({
    since,
    limit,
  }: Parameters<OperatorStore["failures"]>[0]): Promise<readonly FailureRecord[]> {
    const params = { limit, ...sinceParams(since) };
    return (await this.#asker.repeat("failures", sql.FAILURES, params)).map(toFailureRecord);
  }

  async timeline(params: TimelineParams): Promise<readonly TimelineCell[]> {
    return (await this.#asker.repeat("timeline", TIMELINE, params)).map(toTimelineCell);
  }
}
