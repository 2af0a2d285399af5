// Removes rows past their retention on PostgreSQL: history by whole days, the rest row by row. Creates upcoming days
// ahead of time.

import type { Clock } from "../../shared/ports.js";
import { pruneExpiredKeys } from "../access/keys.js";
import { pruneSessions } from "../access/sessions.js";
import { pruneAlerts } from "../alerts/alerts.js";
import { pruneAudit } from "../audit.js";
import { prunePauses } from "../pause.js";
import { type PruneParams, Retention, removeEnded } from "../retention.js";
import { rows, type Statements } from "../session.js";
import type { PostgresSource } from "./connection/connection.js";
import { dropDays, dropDaysOfLogs, makeDays, thinLedger } from "./days.js";
import type { Mutex, PostgresSession } from "./session.js";
import { PRUNE_BATCHES } from "./sql/batches.js";
import { PRUNE_FLOWS } from "./sql/limits.js";

/**
 * Rows that are removed one by one: expired keys, silent instances, statistics. Each chosen row is checked again when
 * it is removed: a key may have been taken again, an instance may have come back.
 */
const PRUNE = /* sql */ `
with now as materialized (select {now} as at),
expired as (
  delete from {key} where ctid = any(array(
    select k.ctid from {key} k, now where k.expires_at <= now.at limit :limit))
    and expires_at <= (select at from now) returning 1
),
instances as (
  delete from {instance} where no = any(array(
    select i.no from {instance} i, now
    where i.seen_at < now.at - :keepMs::bigint - 86400000
      and not exists (select from {lease} k where k.holder = i.no) limit :limit))
    and seen_at < (select at from now) - :keepMs::bigint - 86400000 returning 1
),
rollups as (
  delete from {rollup} where ctid = any(array(
    select r.ctid from {rollup} r, now where r.hour_at < now.at - greatest(:keepMs::bigint, 2678400000) limit :limit)) returning 1
)
select (select count(*) from expired) + (select count(*) from instances)
  + (select count(*) from rollups) as pruned`;

/** The remaining rows of old days. */
const OLD_RUNS = /* sql */ `
select o.id, n.at - :keepMs::bigint as until from {outcome_rest} o cross join (select {now} as at) n
where o.finished_at < n.at - :keepMs::bigint order by o.finished_at limit :limit`;

const PRUNE_SCHEDULES = /* sql */ `
with now as materialized (select {now} as at),
ticks as (
  delete from {tick_rest} where ctid = any(array(
    select t.ctid from {tick_rest} t, now where t.last_at < now.at - greatest(:keepTicksMs::bigint, :keepMs::bigint) limit :limit)) returning 1
),
old as materialized (
  select b.id from {backfill} b, now where b.ended_at < now.at - :keepMs::bigint limit :limit
),
runs as (delete from {backfill_run} where backfill = any(array(select id from old))),
backfills as (delete from {backfill} where id = any(array(select id from old)) returning 1),
deliveries as (
  delete from {delivery} where ctid = any(array(
    select d.ctid from {delivery} d where not exists (select from {run} r where r.id = d.run) limit :limit)) returning 1
)
select (select count(*) from ticks) + (select count(*) from backfills) + (select count(*) from deliveries) as pruned`;

/** Log lines older than their retention, of runs that still exist. */
const PRUNE_OLD_LOGS = /* sql */ `
with old as (
  delete from {log_rest} where ctid = any(array(
    select g.ctid from {log_rest} g where g.at < {now} - :keepLogsMs::bigint limit :limit)) returning 1)
select count(*)::int as pruned from old`;

export class PostgresRetention extends Retention {
  readonly #session: PostgresSession;
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  readonly #schema: string;
  readonly #mutex: Mutex;

  constructor(params: {
    readonly session: PostgresSession;
    readonly source: PostgresSource;
    readonly clock: Clock;
    readonly schema: string;
    readonly mutex: Mutex;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#source = params.source;
    this.#clock = params.clock;
    this.#schema = params.schema;
    this.#mutex = params.mutex;
  }

  /** Ensures that today and the days after it exist. */
  async makeDays(): Promise<void> {
    await makeDays(await this.#days());
  }

  /** History goes by whole days, so `limit` bounds only what is removed row by row. */
  async prune(params: PruneParams): Promise<number> {
    const { keepMs, keepTicksMs, keepLogsMs = keepMs, limit } = params;
    const dropped = await this.#session.retryWhileUnavailable("retention.prune", () =>
      this.#mutex(async () => {
        const days = await this.#days();
        await makeDays(days);
        return (
          (await dropDays(days, keepMs)) +
          (await thinLedger(days, { keepMs, keepTicksMs })) +
          (keepLogsMs < keepMs ? await dropDaysOfLogs(days, keepLogsMs) : 0)
        );
      }),
    );
    const [old] = await this.#session.repeat("retention.prune", PRUNE, { keepMs, limit });
    const [more] = await this.#session.repeat("retention.prune", PRUNE_SCHEDULES, params);
    const [batches] = await this.#session.repeat("retention.prune", PRUNE_BATCHES, {
      keepMs,
      limit,
    });
    const [idle] = await this.#session.repeat("retention.prune", PRUNE_FLOWS, { limit });
    const [lines] = await this.#session.repeat("retention.prune", PRUNE_OLD_LOGS, {
      keepLogsMs,
      limit,
    });
    const prune = (work: () => Statements<number>) =>
      this.#session.transaction("retention.prune", { lost: "repeat" }, work);
    const runs = await prune(() => pruneRuns({ keepMs, limit }));
    const alerts = await prune(() => pruneAlerts({ keepMs, limit }));
    const audits = await prune(() => pruneAudit({ keepMs, limit }));
    const keys = await prune(pruneExpiredKeys);
    const sessions = await prune(pruneSessions);
    const pauses = await prune(() => prunePauses(keepMs));
    const removed = [old, more, batches, idle, lines];
    const pruned = removed.map((each) => Number(each?.pruned ?? 0));
    pruned.push(runs, alerts, audits, keys, sessions, pauses);
    return pruned.reduce((sum, count) => sum + count, dropped);
  }

  async #days() {
    return {
      source: this.#source,
      clock: this.#clock,
      schema: this.#schema,
      dialect: this.#session.dialect,
      now: await this.#session.databaseNow(),
      query: async (text: string, values: readonly unknown[] = []) =>
        (await this.#session.beat.query({ text, values })).rows,
    };
  }
}

function* pruneRuns(params: {
  readonly keepMs: number;
  readonly limit: number;
}): Statements<number> {
  const old = yield* rows(OLD_RUNS, params);
  const ids = old.map(({ id }) => String(id));
  return yield* removeEnded("postgres", { ids, until: Number(old[0]?.until ?? 0) });
}
