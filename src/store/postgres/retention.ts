// What is past its time on PostgreSQL: history goes by whole days, the rest row by row, and a job may keep its
// runs for less. Days that will be needed are made ahead.

import type { Clock } from "../../shared/ports.js";
import {
  firstIdAt,
  judgeVisited,
  type PrunedJob,
  type PruneJobParams,
  type PruneParams,
  type RetentionStore,
} from "../retention.js";
import { ONE_TOO_MANY, PRUNE_OLD_LOGS, VISIT } from "../sql/retention.js";
import type { PostgresAccess } from "./access.js";
import type { PostgresAudit } from "./audit.js";
import type { PostgresSource } from "./connection.js";
import { dropDays, dropDaysOfLogs, makeDays, thinLedger } from "./days.js";
import type { InTurn } from "./mutex.js";
import type { PostgresSession } from "./session.js";
import { PRUNE_ALERTS } from "./sql/alerts.js";
import { PRUNE_BATCHES } from "./sql/batches.js";
import { PRUNE_FLOWS } from "./sql/flow.js";
import { PRUNE_PAUSES } from "./sql/pause.js";
import { PRUNE, REMOVE_RUNS } from "./sql/retention.js";
import { PRUNE_SCHEDULES } from "./sql/schedules.js";

export class PostgresRetention implements RetentionStore {
  readonly #asker: PostgresSession;
  readonly #audit: PostgresAudit;
  readonly #access: PostgresAccess;
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  readonly #schema: string;
  readonly #inTurn: InTurn;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly audit: PostgresAudit;
    readonly access: PostgresAccess;
    readonly source: PostgresSource;
    readonly clock: Clock;
    readonly schema: string;
    readonly inTurn: InTurn;
  }) {
    this.#asker = params.asker;
    this.#audit = params.audit;
    this.#access = params.access;
    this.#source = params.source;
    this.#clock = params.clock;
    this.#schema = params.schema;
    this.#inTurn = params.inTurn;
  }

  /** Today and the days after it are there. */
  async makeDays(): Promise<void> {
    await makeDays(await this.#days());
  }

  /** History goes by whole days, so `limit` bounds only what is removed row by row. */
  async prune(params: PruneParams): Promise<number> {
    const { keepMs, keepTicksMs, keepLogsMs = keepMs, limit } = params;
    const dropped = await this.#asker.patiently("prune", () =>
      this.#inTurn(async () => {
        const days = await this.#days();
        await makeDays(days);
        return (
          (await dropDays(days, keepMs)) +
          (await thinLedger(days, { keepMs, keepTicksMs })) +
          (keepLogsMs < keepMs ? await dropDaysOfLogs(days, keepLogsMs) : 0)
        );
      }),
    );
    const [row] = await this.#asker.repeat("prune", PRUNE, { keepMs, limit });
    const [more] = await this.#asker.repeat("prune", PRUNE_SCHEDULES, params);
    const [batches] = await this.#asker.repeat("prune", PRUNE_BATCHES, { keepMs, limit });
    const [idle] = await this.#asker.repeat("prune", PRUNE_FLOWS, { limit });
    const [lines] = await this.#asker.repeat("prune", PRUNE_OLD_LOGS.postgres, {
      keepLogsMs,
      limit,
    });
    const [alerts] = await this.#asker.repeat("prune", PRUNE_ALERTS, { keepMs, limit });
    const audits = await this.#audit.prune({ keepMs, limit });
    const sessions = await this.#access.prune();
    const pauses = await this.#asker.repeat("prune", PRUNE_PAUSES, { keepMs });
    const removed = [row, more, batches, idle, lines, alerts];
    const pruned = removed.map((each) => Number(each?.pruned ?? 0));
    return pruned.reduce((sum, count) => sum + count, dropped + pauses.length + audits + sessions);
  }

  async pruneJob(params: PruneJobParams): Promise<PrunedJob> {
    const { job, keepMs, keepCount, after, limit } = params;
    const edge =
      keepCount === null
        ? null
        : ((await this.#asker.repeat("prune", ONE_TOO_MANY.postgres, { job, count: keepCount }))[0]
            ?.id ?? null);
    const until = keepMs === null ? null : (await this.#asker.databaseNow()) - keepMs;
    const before = until === null ? null : firstIdAt(until);
    const given = { job, after, before, edge, until, limit };
    const visited = (await this.#asker.repeat("prune", VISIT.postgres, given)).map((row) => ({
      id: String(row.id),
      isOld: row.is_mine === true && row.is_old === true,
      isYoung: row.is_mine === true && row.is_old !== true,
    }));
    const { ids, answer } = judgeVisited(visited, { after, limit });
    if (ids.length === 0) return answer(0);
    const [row] = await this.#asker.repeat("prune", REMOVE_RUNS, { ids, until, edge });
    return answer(Number(row?.removed));
  }

  async #days() {
    return {
      source: this.#source,
      clock: this.#clock,
      schema: this.#schema,
      dialect: this.#asker.dialect,
      now: await this.#asker.databaseNow(),
      query: async (text: string, values: readonly unknown[] = []) =>
        (await this.#asker.beat.query({ text, values })).rows,
    };
  }
}
