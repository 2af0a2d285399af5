// Repairs the tables after damage, continues after a restored backup, and reads a few figures about the database's state.
// Every statement looks for its damage itself: a second execution changes nothing more.

import type { StaleParams } from "../leases.js";
import { numberOrNull, type Row } from "../rows.js";
import type { BoundStatement, StoreSession } from "../session.js";
import { STRANGERS } from "./check-statements.js";
import { REPAIRS } from "./repair-statements.js";

const IS_LIVE = /* sql */ `i.retired_at is null
    and (i.seen_at > {now} - 60000 or i.seen_at > {now} - 3 * i.poll_ms)`;
/** A lease names its holder by number. */
const isLiveHolder = (number: string) =>
  `exists (\n  select 1 from {instance} i where i.no = ${number} and ${IS_LIVE})`;
/** A lock names its holder by text. */
const isLiveLocker = (id: string) =>
  `exists (\n  select 1 from {instance} i where i.id = ${id} and ${IS_LIVE})`;

/**
 * What the backup contains of former processes: leases and locks of holders that no longer exist, deliveries, and keys.
 */
const GONE = /* sql */ `
select
  (select count(*) from {lease} k where not ${isLiveHolder("k.holder")}) as leases,
  (select count(*) from {live_run} p join {lease} k on k.fence = p.fence where not ${isLiveHolder("k.holder")}) as runs,
  (select count(*) from {held_lock} l where not ${isLiveLocker("l.holder")}) as locks,
  (select count(*) from {instance} i where ${IS_LIVE}) as live_instances,
  (select count(*) from {alert_delivery} d where d.state = 'pending') as deliveries,
  (select count(*) from {access_key}) as keys`;

/** The runs that start as soon as there is a worker, by job. */
const WAITING_BY_JOB = /* sql */ `
select l.job, sum(case when p.place = 'ready' then 1 else 0 end) as ready,
  sum(case when p.place = 'waiting' then 1 else 0 end) as waiting,
  sum(case when p.place = 'lease' then 1 else 0 end) as held
from {live_run} p join {lane} l on l.id = p.lane group by l.job order by l.job`;

const EXPOSE = "select f.name from {expose_functions}(:into::text) f (name)";

// On PostgreSQL fences come from sequences. On SQLite they come from rows of sqlite_sequence, which exist only after a
// row of the table was stored.
const RAISE_FENCES = {
  postgres: [
    "select setval('{lease_fence_seq}', (select s.last_value from {lease_fence_seq} s) + :jump::bigint)",
    "select setval('{lock_fence}', (select s.last_value from {lock_fence} s) + :jump::bigint)",
  ],
  sqlite: [
    `insert into sqlite_sequence (name, seq) select '{lease}', 0
     where not exists (select 1 from sqlite_sequence s where s.name = '{lease}')`,
    `insert into sqlite_sequence (name, seq) select '{lock}', 0
     where not exists (select 1 from sqlite_sequence s where s.name = '{lock}')`,
    "update sqlite_sequence set seq = seq + :jump where name in ('{lease}', '{lock}')",
  ],
} as const;

/** A session that was ended after the backup would be valid again, so all end: people sign in again. */
const END_SESSIONS = "delete from {session}";

/** Ends the lease now, as if its holder had fallen silent. */
const FREE_LEASES = /* sql */ `
update {lease} set until = {now}, deadline_at = case when deadline_at <= {now} then {now} + 1 else deadline_at end
where until > {now} and not ${isLiveHolder("{lease}.holder")}`;

// PostgreSQL keeps the rows of released locks; SQLite has only held ones.
const freeLocks = (isHeld: string) => /* sql */ `
update {lock} set until = {now} where ${isHeld} and until > {now} and not ${isLiveLocker("{lock}.holder")}`;
const FREE_LOCKS = { postgres: freeLocks("state = 0"), sqlite: freeLocks("true") };

const IS_SKEWED =
  "i.retired_at is null and i.seen_at > {now} - 60000 and i.skew_ms is not null and i.skew_ms <> 0";
// A monitor's tick may be recorded before its time, by an early check-in.
const VITALS = /* sql */ `
select {now} as now,
  (select count(*) from {live_run} p where p.place = 'lease') as running,
  (select count(*) from {live_run} p join {lease} k on k.fence = p.fence where k.until <= {now}) as silent,
  (select count(*) from {live_run} p join {lease} k on k.fence = p.fence
    where k.renewed_at <= {now} - :silentMs or k.claimed_at <= {now} - :ranMs) as stale,
  (select max(i.polled_at) from {instance} i where i.retired_at is null) as polled_at,
  (select count(*) from {schedule} s where s.next_at is not null) as schedules,
  (select max(s.cursor_at) from {schedule} s where s.deleted_at is null and s.definition not like '%"monitor"%') as recorded_until,
  (select i.id from {instance} i where ${IS_SKEWED} order by abs(i.skew_ms) desc, i.no limit 1) as skewed,
  (select i.skew_ms from {instance} i where ${IS_SKEWED} order by abs(i.skew_ms) desc, i.no limit 1) as skew_ms`;

/** The result of repairing the damage of one check. */
type Repaired = { readonly name: string; readonly changed: number };

/** What a restored backup contains of processes that were live when it was made. */
export type Remains = {
  /** Leases of holders that no longer exist, and the runs in them. */
  readonly leases: number;
  readonly runs: number;
  readonly locks: number;
  /** Waiting deliveries of alerts; some may have been sent since the backup was made. */
  readonly deliveries: number;
  /** Named keys in the backup; a key that was revoked since then works again. */
  readonly keys: number;
  /** Instances that were seen lately: there should be none. */
  readonly liveInstances: number;
  readonly jobs: readonly {
    readonly job: string;
    readonly ready: number;
    readonly waiting: number;
    readonly held: number;
  }[];
};

type Vitals = {
  readonly now: number;
  readonly running: number;
  /** Running runs whose lease has expired and that no instance has reclaimed yet. */
  readonly silent: number;
  /** Runs that were silent, or ran, for at least the given time. */
  readonly stale: number;
  /** When an instance with the scheduler on polled last. */
  readonly polledAt: number | null;
  /** Schedules that have a next tick. */
  readonly schedules: number;
  /** Up to when ticks are recorded; later than now only if the database's clock went back. */
  readonly recordedUntil: number | null;
  /** The live instance with the largest clock offset, as it measured it itself. */
  readonly skew: { readonly instance: string; readonly skewMs: number } | null;
};

export abstract class Repairs {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * Runs all statements in one commit, while no claim, settlement or tick is written; returns how many rows each has
   * changed.
   */
  protected abstract whileStill(
    verb: string,
    steps: readonly BoundStatement[],
  ): Promise<readonly number[]>;

  /** Repairs the damage of these checks. */
  async apply({ checks }: { readonly checks: readonly string[] }): Promise<readonly Repaired[]> {
    const repairs = checks.map((name) => ({ name, steps: repairSteps(name) }));
    const steps = repairs.flatMap((each) => each.steps);
    const changed = [...(await this.whileStill("repairs.apply", steps))];
    return repairs.map(({ name, steps: own }) => ({
      name,
      changed: changed.splice(0, own.length).reduce((sum, count) => sum + count, 0),
    }));
  }

  /** Makes the SQL functions once more in another schema, under longer names; returns these. Null: SQLite has none. */
  async exposeFunctions({ into }: { readonly into: string }): Promise<readonly string[] | null> {
    if (this.#session.engine === "sqlite") return null;
    const verb = "repairs.exposeFunctions";
    const params = { into };
    const made = await this.#session.write({ verb, sql: EXPOSE, params, lost: "repeat" });
    return made.map(({ name }) => String(name));
  }

  async remains(): Promise<Remains> {
    const verb = "repairs.remains";
    const [gone = {}] = await this.#session.read({ verb, sql: GONE });
    return toRemains(gone, await this.#session.read({ verb, sql: WAITING_BY_JOB }));
  }

  /**
   * Raises every fence by this much, and ends the leases and locks of holders that no longer exist, and all sessions of
   * the dashboard.
   */
  async recover({ jump }: { readonly jump: number }): Promise<{
    readonly leases: number;
    readonly locks: number;
  }> {
    const raised = RAISE_FENCES[this.#session.engine].map((sql) => ({ sql, params: { jump } }));
    const ended = [END_SESSIONS, FREE_LEASES, FREE_LOCKS].map((sql) => ({ sql, params: {} }));
    const changed = await this.whileStill("repairs.recover", [...raised, ...ended]);
    const [leases = 0, locks = 0] = changed.slice(-2);
    return { leases, locks };
  }

  async vitals({ silentMs, ranMs }: StaleParams): Promise<Vitals> {
    const params = { silentMs, ranMs };
    const [found = {}] = await this.#session.read({ verb: "repairs.vitals", sql: VITALS, params });
    return toVitals(found);
  }

  /** Roles that own the schema or a part of it, other than this role; none on SQLite. */
  async strangers(): Promise<readonly string[]> {
    const found = await this.#session.read({ verb: "repairs.strangers", sql: STRANGERS });
    return found.map(({ what }) => String(what));
  }
}

/** How the damage of a check is repaired, or the steps to take by hand; null: neither is known. */
export function repairOf(check: string): {
  readonly action: string | null;
  readonly advice: string | null;
} | null {
  const repair = REPAIRS[check];
  if (!repair) return null;
  return "says" in repair
    ? { action: repair.says, advice: null }
    : { action: null, advice: repair.advice };
}

function repairSteps(check: string): readonly BoundStatement[] {
  const repair = REPAIRS[check];
  return repair && "sql" in repair ? repair.sql.map((sql) => ({ sql, params: {} })) : [];
}

function toRemains(gone: Row, jobs: readonly Row[]): Remains {
  return {
    leases: Number(gone.leases),
    runs: Number(gone.runs),
    locks: Number(gone.locks),
    deliveries: Number(gone.deliveries),
    keys: Number(gone.keys),
    liveInstances: Number(gone.live_instances),
    jobs: jobs.map((row) => ({
      job: String(row.job),
      ready: Number(row.ready),
      waiting: Number(row.waiting),
      held: Number(row.held),
    })),
  };
}

function toVitals(row: Row): Vitals {
  return {
    now: Number(row.now),
    running: Number(row.running),
    silent: Number(row.silent),
    stale: Number(row.stale),
    polledAt: numberOrNull(row.polled_at),
    schedules: Number(row.schedules),
    recordedUntil: numberOrNull(row.recorded_until),
    skew:
      row.skewed === null ? null : { instance: String(row.skewed), skewMs: Number(row.skew_ms) },
  };
}
