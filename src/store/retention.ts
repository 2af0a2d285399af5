// Removes rows past their retention. One call removes a bounded number of rows; the next call continues. How everything
// old is found differs by engine: PostgreSQL drops whole days of history, SQLite removes rows (postgres/retention.ts,
// sqlite/retention.ts). A job that keeps its runs for less is pruned here: ids begin with the time of creation, so history
// is read in its order from where the last call stopped, and no index by job is needed for it.

import { RETENTION_COUNT_MAX } from "../operations/rules/retention.js";
import type { RunId } from "../runs/rules/run.js";
import { flag, type Row, textOrNull } from "./rows.js";
import { row, rows, run, type Statements, type StoreSession } from "./session.js";

/** This many of the newest ticks of each schedule are kept for as long as runs. */
export const TICKS_KEPT = 200;

const LANES = "(select l.id from {lane} l where l.job = :job)";

const NOW = /* sql */ `select {now} as now`;

/** The newest surplus run among the newest runs of the job. */
const ONE_TOO_MANY = /* sql */ `
select x.id from (select o.id, o.lane from {outcome} o order by o.id desc limit ${RETENTION_COUNT_MAX}) x
where x.lane in ${LANES} order by x.id desc limit 1 offset :count`;

// SQLite's max() of a null is null, so both bounds stand in for each other.
const VISIT = /* sql */ `
select o.id, o.lane in ${LANES} as is_mine, o.finished_at < :until::bigint or o.id <= :edge::uuid as is_old
from {outcome} o
where o.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
  and o.id <= {greatest}(coalesce(:before::uuid, :edge::uuid), coalesce(:edge::uuid, :before::uuid))
order by o.id limit :limit`;

/** Checked again when they are removed: a run may have been retried and have ended again since the visit. */
const REMOVE_OUTCOMES = /* sql */ `
delete from {outcome} where id {any :ids::uuid[]}
  and ((:until::bigint is null and :edge::uuid is null) or finished_at < :until::bigint or id <= :edge::uuid)
returning id`;

/**
 * The other tables with rows of a run. A table with rows of runs adds a line here, and on PostgreSQL a partition to the
 * days (schema/schema.ts). The run is removed last: by then no row refers to it.
 */
const REMOVE_RUNS = [
  "delete from {attempt} where run {any :ids::uuid[]}",
  "delete from {item} where run {any :ids::uuid[]}",
  "delete from {item_count} where run {any :ids::uuid[]}",
  "delete from {progress} where run {any :ids::uuid[]}",
  "delete from {log} where run {any :ids::uuid[]}",
  "delete from {key} where run {any :ids::uuid[]}",
  "delete from {run} where id {any :ids::uuid[]}",
];

/**
 * Before the runs themselves, since a backfill's run is found by its tick. PostgreSQL drops whole days of runs, and so finds
 * deliveries without a run and runs of old backfills by themselves.
 */
const REMOVE_MARKS_OF_SCHEDULES = {
  postgres: [],
  sqlite: [
    /* sql */ `
delete from {backfill_run} where (schedule, at) in (
    select r.schedule, r.nominal_at from json_each(:ids) m cross join {run} r on r.id = m.value
    where r.schedule is not null)
  and run in (select value from json_each(:ids))`,
    /* sql */ `delete from {delivery} where run in (select value from json_each(:ids))`,
  ],
} as const;

export type PruneParams = {
  readonly keepMs: number;
  readonly keepTicksMs: number;
  /** For log lines that are kept with runs; they are removed with their runs at the latest. @default keepMs */
  readonly keepLogsMs?: number;
  readonly limit: number;
};

type PruneJobParams = {
  readonly job: string;
  /** Ended runs older than this are removed; null: only their number counts. */
  readonly keepMs: number | null;
  /** Only this many of the newest stay; null: only their age counts. */
  readonly keepCount: number | null;
  /** The position of the last call: earlier runs are not visited again. */
  readonly after: RunId | null;
  /** How many runs are visited. */
  readonly limit: number;
};

type PrunedJob = {
  readonly removed: number;
  readonly after: RunId | null;
  /** Nothing is left for now. */
  readonly isDone: boolean;
};

/** Ended runs to remove: with bounds only those up to `edge`, and those that ended before `until`. */
type EndedRuns = {
  readonly ids: readonly RunId[];
  readonly until?: number | null;
  readonly edge?: RunId | null;
};

export abstract class Retention {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Removes rows past their retention, a bounded number; returns how many. */
  abstract prune(params: PruneParams): Promise<number>;

  /** The same for one job with a shorter retention. A repetition removes nothing more. */
  pruneJob({ job, keepMs, keepCount, after, limit }: PruneJobParams): Promise<PrunedJob> {
    const { engine } = this.#session;
    return this.#session.transaction("retention.pruneJob", { lost: "repeat" }, function* () {
      const tooMany = keepCount !== null && (yield* row(ONE_TOO_MANY, { job, count: keepCount }));
      const edge = tooMany ? textOrNull(tooMany.id) : null;
      const until = keepMs === null ? null : Number((yield* row(NOW))?.now) - keepMs;
      const before = until === null ? null : firstIdAt(until);
      const visited = yield* rows(VISIT, { job, after, before, edge, until, limit });
      const { ids, answer } = judgeVisited(visited.map(toVisited), { after, limit });
      return answer(ids.length === 0 ? 0 : yield* removeEnded(engine, { ids, until, edge }));
    });
  }
}

/** Runs inside a transaction: removes those of these runs that have ended, with all their rows; returns how many. */
export function* removeEnded(
  engine: StoreSession["engine"],
  { ids, until = null, edge = null }: EndedRuns,
): Statements<number> {
  const removed = yield* rows(REMOVE_OUTCOMES, { ids, until, edge });
  if (removed.length === 0) return 0;
  const gone = removed.map(({ id }) => String(id));
  for (const sql of [...REMOVE_MARKS_OF_SCHEDULES[engine], ...REMOVE_RUNS])
    yield* run(sql, { ids: gone });
  return gone.length;
}

type Visited = {
  readonly id: RunId;
  /** It belongs to the job in question, and is past its retention. */
  readonly isOld: boolean;
  /** It belongs to the job in question, but ended too recently: it is visited again. */
  readonly isYoung: boolean;
};

/** The runs to remove, and the position for the next call. */
function judgeVisited(
  visited: readonly Visited[],
  { after, limit }: { readonly after: RunId | null; readonly limit: number },
): { readonly ids: readonly RunId[]; readonly answer: (removed: number) => PrunedJob } {
  const firstYoung = visited.findIndex(({ isYoung }) => isYoung);
  const passed = firstYoung < 0 ? visited : visited.slice(0, firstYoung);
  return {
    ids: visited.filter(({ isOld }) => isOld).map(({ id }) => id),
    answer: (removed) => ({
      removed,
      after: passed.at(-1)?.id ?? after,
      isDone: visited.length < limit || passed.length === 0,
    }),
  };
}

/** The smallest UUIDv7 of a moment. */
export function firstIdAt(ms: number): RunId {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

function toVisited(row: Row): Visited {
  const [isMine, isOld] = [flag(row.is_mine), flag(row.is_old)];
  return { id: String(row.id), isOld: isMine && isOld, isYoung: isMine && !isOld };
}
