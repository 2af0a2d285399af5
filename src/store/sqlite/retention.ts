// What is past its time on SQLite: a bounded number of rows at once, and a job may keep its runs for less.

import {
  firstIdAt,
  judgeVisited,
  type PrunedJob,
  type PruneJobParams,
  type PruneParams,
  type RetentionStore,
} from "../retention.js";
import { ONE_TOO_MANY, PRUNE_OLD_LOGS, VISIT } from "../sql/retention.js";
import type { SqliteAccess } from "./access.js";
import type { SqliteAlerts } from "./alerts.js";
import type { SqliteAudit } from "./audit.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLimits } from "./flow.js";
import { DELETE_ITEMS } from "./items.js";
import { PRUNE_LOGS } from "./logs.js";
import type { SqlitePause } from "./pause.js";
import { PRUNE_PROGRESS } from "./progress.js";
import type { SqliteSession } from "./session.js";
import { PRUNE_BATCHES } from "./sql/batches.js";
import {
  PRUNE_BACKFILLS,
  PRUNE_RUNS_OF_SCHEDULES,
  PRUNE_TICKS,
  THIN_TICKS,
  VISIT_TICKS,
} from "./sql/schedule-changes.js";
import * as sql from "./sql/statements.js";

const REMOVE_RUNS = [
  ...PRUNE_RUNS_OF_SCHEDULES,
  ...DELETE_ITEMS,
  PRUNE_PROGRESS,
  PRUNE_LOGS,
  ...sql.PRUNE,
];

const DAY_MS = 86_400_000;
/** Rows of the ledger that one prune looks at without finding any that goes. */
const VISITED_MAX = 10_000;

/** What has rows of its own that grow old. */
type Parts = {
  readonly asker: SqliteSession;
  readonly flow: SqliteLimits;
  readonly alerts: SqliteAlerts;
  readonly pause: SqlitePause;
  readonly audit: SqliteAudit;
  readonly access: SqliteAccess;
};

export class SqliteRetention implements RetentionStore {
  readonly #parts: Parts;
  /** How far the ledger was gone through. */
  #thinned = { afterAt: -1, afterSchedule: 0 };

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  prune({ keepMs, keepTicksMs, keepLogsMs = keepMs, limit }: PruneParams): Promise<number> {
    const { asker, flow, alerts, pause, audit, access } = this.#parts;
    const { file } = asker;
    return asker.write("prune", (now) => {
      const before = firstIdAt(now - keepMs);
      const old = file.all(sql.OLD_RUNS, { keepMs, limit, now, before }).map((row) => row.id);
      removeRuns(file, old);
      const oldLines = { before: firstIdAt(now - keepLogsMs), keepLogsMs, limit, now };
      const rest = [
        file.run(sql.PRUNE_KEYS, { limit, now }),
        file.run(sql.PRUNE_INSTANCES, { keepMs, now }),
        file.run(sql.PRUNE_ROLLUPS, { keepMs, now }),
        file.run(PRUNE_TICKS, { keepMs: Math.max(keepMs, keepTicksMs), limit, now }),
        keepTicksMs < keepMs ? this.#thinLedger({ keepTicksMs, limit, now }) : 0,
        file.run(PRUNE_BACKFILLS, { keepMs, now }),
        file.run(PRUNE_BATCHES, { keepMs, limit, now }),
        flow.prune(limit, now),
        keepLogsMs < keepMs ? file.run(PRUNE_OLD_LOGS.sqlite, oldLines) : 0,
        alerts.prune({ keepMs, limit }, now),
        pause.prune(keepMs, now),
        audit.prune({ keepMs, limit }, now),
        access.prune(now),
      ];
      return rest.reduce((sum, removed) => sum + removed, old.length);
    });
  }

  /**
   * Inside of a write transaction: of days that are past `keepTicksMs`, what is not kept for as long as runs. Each row is
   * looked at once in the life of this process, until something goes or enough was looked at.
   */
  #thinLedger(params: {
    readonly keepTicksMs: number;
    readonly limit: number;
    readonly now: number;
  }) {
    const { keepTicksMs, limit, now } = params;
    const { file } = this.#parts.asker;
    const untilAt = now - keepTicksMs - ((now - keepTicksMs) % DAY_MS);
    for (let visited = 0; visited < VISITED_MAX; visited += limit) {
      const rows = file.all(VISIT_TICKS, { ...this.#thinned, untilAt, limit });
      const last = rows.at(-1);
      if (!last) return 0;
      this.#thinned = { afterAt: Number(last.at), afterSchedule: Number(last.schedule) };
      const pairs = JSON.stringify(rows.map(({ schedule, at }) => [schedule, at]));
      const removed = file.run(THIN_TICKS, { rows: pairs, keepTicksMs });
      if (removed > 0) return removed;
    }
    return 0;
  }

  pruneJob({ job, keepMs, keepCount, after, limit }: PruneJobParams): Promise<PrunedJob> {
    const { file } = this.#parts.asker;
    return this.#parts.asker.write("prune", (now) => {
      const edge =
        keepCount === null
          ? null
          : (file.get(ONE_TOO_MANY.sqlite, { job, count: keepCount })?.id ?? null);
      const until = keepMs === null ? null : now - keepMs;
      const before = until === null ? null : firstIdAt(until);
      const rows = file.all(VISIT.sqlite, { job, after, before, edge, until, limit });
      const visited = rows.map((row) => ({
        id: String(row.id),
        isOld: row.is_mine === 1 && row.is_old === 1,
        isYoung: row.is_mine === 1 && row.is_old !== 1,
      }));
      const { ids, answer } = judgeVisited(visited, { after, limit });
      removeRuns(file, ids);
      return answer(ids.length);
    });
  }
}

/** Inside of a write transaction: ended runs, with all that is kept of them. */
export function removeRuns(file: SqliteFile, runs: readonly unknown[]): void {
  const ids = JSON.stringify(runs);
  for (const statement of REMOVE_RUNS) file.run(statement, { ids });
}
