// Reads schedules for the ticker, for edits and for people. Reading and writing are separate: a decision is made from
// the state that was read, and written only if the schedule is still at that revision. So no lock is held while
// deciding, and of two instances that decide the same tick one writes it. The engines find due schedules and write
// changes in different ways: postgres/schedules.ts, sqlite/schedules.ts.

import type { RunId, RunStatus } from "../../runs/rules/run.js";
import { flag, json, numberOrNull, type Row, statusOf, textOrNull } from "../rows.js";
import type { StoreSession } from "../session.js";
import {
  type BackfillState,
  EDIT_KINDS,
  type EditKind,
  type NewSchedule,
  type ScheduleChange,
  SOURCES,
} from "./changes.js";
import { SCHEDULE_COLUMNS, type ScheduleState, scheduleOf, toBackfillState } from "./state.js";
import { completedTicks, listTicks, type TickFilter, type TickRecord } from "./ticks.js";

// Each engine finds the state of the newest run its own way. On PostgreSQL the view has it, read by the run's id alone.
// On SQLite a run without an outcome that is neither ready nor waiting is held: only then the leases are searched. One
// name is a range of the index there too; an empty blob sorts after every text.
const LIST = {
  postgres: /* sql */ `
select ${SCHEDULE_COLUMNS}, exists (select from {job} j where j.name = s.job) as is_job_known, to_json(s.live) as live_now,
  r.status as last_status, coalesce(r.started_at, r.created_at) as last_run_at
from {schedule} s
left join lateral (select x.status, x.started_at, x.created_at from {run_state} x where x.id = s.last_run offset 0) r on true
where s.deleted_at is null
  and (:name::text is null or s.name = :name::text)
  and (:after::text is null or s.name > :after::text collate "C")
  and (:job::text is null or s.job = :job::text)
  and (:app::text is null or s.app = :app::text)
  and (:state::text is null or :state::text = case
    when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end)
order by s.name limit :limit`,
  sqlite: /* sql */ `
select ${SCHEDULE_COLUMNS},
  exists (select 1 from {job} j where j.name = s.job) as is_job_known,
  (select json_group_array(r.id order by m.key) from json_each(s.live) m cross join {run} r on r.id = m.value
    where not exists (select 1 from {outcome} o where o.id = r.id)) as live_now,
  case
    when r.id is null then null
    when o.id is not null then o.status
    when y.id is not null or w.id is not null then -1
    else 0
  end as last_status,
  case
    when o.id is not null then coalesce(o.started_at, r.created_at)
    when y.id is not null or w.id is not null then r.created_at
    else coalesce((select k.claimed_at from {lease} k
      where exists (select 1 from json_each(k.ids) h where h.value = r.id)), r.created_at)
  end as last_run_at
from {schedule} s
left join {run} r on r.id = s.last_run
left join {outcome} o on o.id = r.id
left join {ready} y on y.id = r.id
left join {waiting} w on w.id = r.id
where s.deleted_at is null
  and s.name >= coalesce(:name, :after, '') and s.name <= coalesce(:name, x'')
  and (:after is null or s.name > +:after)
  and (:job is null or s.job = :job)
  and (:app is null or s.app = :app)
  and (:state is null or :state = case
    when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end)
order by s.name limit (:limit + 0)`,
};

const NAMES = /* sql */ `select s.id, s.name from {schedule} s where s.id {any :ids::int[]}`;

const VERSIONS = /* sql */ `
select v.version, v.kind, v.at, v.by, v.job, v.definition, v.input, v.anchor_at from {schedule_version} v
where v.schedule = (select s.id from {schedule} s where s.name = :name) order by v.version`;

const DELIVERY = /* sql */ `
select run, input_hash from {delivery} where schedule = :schedule and id = :id`;

const BACKFILLS = /* sql */ `
select b.id, b.from_at, b.to_at, b.cursor_at, b.total, b.made, b.passed, b.is_all, b.created_at, b.created_by, b.ended_at,
  b.is_cancelled
from {backfill} b where b.schedule = (select s.id from {schedule} s where s.name = :name)
order by b.created_at desc, b.id desc`;

const SEEN_DEFINITIONS = /* sql */ `
select hash, release, first_seen_at from {declared} where schedule = :schedule order by first_seen_at, hash {bytewise}`;

/** Announced names have no `is_paused`. */
const DECLARED_NAMES = /* sql */ `
select distinct n.value {bytewise} as name, null::text as paused_by, null::boolean as is_paused
from {instance} i, {members i.schedules as n}
where i.app is not distinct from :app::text and i.retired_at is null
  and i.seen_at > {now} - {greatest}(60000, 3 * i.poll_ms)
union all
select s.name, s.paused_by, s.paused_at is not null from {schedule} s
where s.app is not distinct from :app::text and s.source = ${SOURCES.indexOf("code")} and s.deleted_at is null
order by name`;

/** Of the known instances, live or not, the one that declared a name and was seen last. */
const LAST_DECLARED_BY = /* sql */ `
select x.name, x.program from (
  select n.value as name, i.program, row_number() over (partition by n.value order by i.seen_at desc, i.no desc) as place
  from {instance} i, {members i.schedules as n}
  where i.app is not distinct from :app::text and n.value {any :names::text[]}
) x where x.place = 1`;

const BY_TZDATA = /* sql */ `
select s.name from {schedule} s where s.next_at is not null and s.tzdata <> :not order by s.name limit :limit`;

/** A schedule as people see it. */
export type ScheduleRecord = Omit<ScheduleState, "live" | "backfill" | "pauses"> & {
  readonly live: readonly RunId[];
  /** The status of the run of its newest fired tick. */
  readonly lastStatus: RunStatus | null;
  readonly lastRunAt: number | null;
};

export type ScheduleFilter = {
  readonly name?: string;
  readonly job?: string;
  readonly app?: string;
  readonly state?: "active" | "paused" | "ended" | "broken";
  /** In the order of names; continues after this one. */
  readonly after?: string;
  readonly limit: number;
};

export type ScheduleVersion = {
  readonly version: number;
  readonly kind: EditKind;
  readonly at: number;
  readonly by: string | null;
  readonly job: string;
  readonly definition: string;
  readonly input: string;
  readonly anchorAt: number;
};

export type BackfillRecord = BackfillState & {
  readonly createdAt: number;
  readonly createdBy: string | null;
  readonly endedAt: number | null;
  readonly isCancelled: boolean;
};

/** Definitions in code that were seen for a schedule. */
type SeenDefinition = {
  readonly hash: string;
  readonly release: string | null;
  readonly firstSeenAt: number;
};

export abstract class Schedules {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * Schedules whose next tick is due, or that must be evaluated because one of their runs ended; the most overdue
   * first. `hasMore`: the limit was reached. `only: "gates"` leaves out those for which only a tick is due.
   */
  abstract due(params: { readonly limit: number; readonly only?: "gates" }): Promise<{
    readonly now: number;
    readonly schedules: readonly ScheduleState[];
    readonly hasMore: boolean;
  }>;

  /** These schedules, deleted ones too, and the database's now. Unknown names are left out. */
  abstract states(params: { readonly names: readonly string[] }): Promise<{
    readonly now: number;
    readonly schedules: readonly ScheduleState[];
  }>;

  /**
   * Applies changes, each whole or not at all: progress, ledger, runs and the rest are one commit. Returns the ids of
   * the applied ones; the others were changed by another instance (or are being changed at this moment) and have to be
   * read again. While everything is paused, changes of the cadence are not applied: scheduled runs, runs of a backfill,
   * and check-ins of a monitor.
   */
  abstract write(params: {
    readonly holder: number | null;
    readonly changes: readonly ScheduleChange[];
  }): Promise<readonly number[]>;

  /** Creates a schedule; null if the name is taken, also by a deleted one. */
  abstract create(params: NewSchedule): Promise<number | null>;

  async list(filter: ScheduleFilter): Promise<readonly ScheduleRecord[]> {
    const { name = null, after = null, job = null, app = null, state = null, limit } = filter;
    const params = { name, after, job, app, state, limit };
    const found = await this.#session.read({ verb: "schedules.list", sql: LIST, params });
    return found.map(toScheduleRecord);
  }

  /** The names of these schedules, by their numbers. */
  async names(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const found = await this.#session.read({
      verb: "schedules.names",
      sql: NAMES,
      params: { ids },
    });
    return new Map(found.map(({ id, name }) => [Number(id), String(name)]));
  }

  ticks(filter: TickFilter): Promise<readonly TickRecord[]> {
    return listTicks(this.#session, filter);
  }

  /** Of these ticks, those with a completed run, by the ledger or by a backfill. */
  completedTicks(params: {
    readonly schedule: number;
    readonly ticks: readonly number[];
  }): Promise<readonly number[]> {
    return completedTicks(this.#session, params);
  }

  async versions(params: { readonly name: string }): Promise<readonly ScheduleVersion[]> {
    const found = await this.#session.read({ verb: "schedules.versions", sql: VERSIONS, params });
    return found.map(toScheduleVersion);
  }

  /** The run that this delivery made before. */
  async delivery(params: { readonly schedule: number; readonly id: string }): Promise<{
    readonly run: RunId;
    readonly inputHash: string;
  } | null> {
    const verb = "schedules.delivery";
    const [found] = await this.#session.read({ verb, sql: DELIVERY, params });
    return found ? { run: String(found.run), inputHash: String(found.input_hash) } : null;
  }

  /** Newest first. */
  async backfills(params: { readonly name: string }): Promise<readonly BackfillRecord[]> {
    const found = await this.#session.read({ verb: "schedules.backfills", sql: BACKFILLS, params });
    return found.map(toBackfillRecord);
  }

  /** Every definition in code that was seen for a schedule. */
  async seenDefinitions(params: { readonly schedule: number }): Promise<readonly SeenDefinition[]> {
    const verb = "schedules.seenDefinitions";
    const found = await this.#session.read({ verb, sql: SEEN_DEFINITIONS, params });
    return found.map((row) => ({
      hash: String(row.hash),
      release: textOrNull(row.release),
      firstSeenAt: Number(row.first_seen_at),
    }));
  }

  /** Names of live instances' declared schedules in this app, and of stored ones that came from its code. */
  async declaredNames(params: { readonly app: string | null }): Promise<{
    readonly announced: readonly string[];
    readonly stored: readonly {
      readonly name: string;
      readonly pausedBy: string | null;
      readonly isPaused: boolean;
    }[];
  }> {
    const verb = "schedules.declaredNames";
    const found = await this.#session.read({ verb, sql: DECLARED_NAMES, params });
    const [announced, stored] = [[] as string[], [] as Row[]];
    for (const row of found)
      if (row.is_paused === null) announced.push(String(row.name));
      else stored.push(row);
    return {
      announced,
      stored: stored.map((row) => ({
        name: String(row.name),
        pausedBy: textOrNull(row.paused_by),
        isPaused: flag(row.is_paused),
      })),
    };
  }

  /** The program that declared each schedule last; none for a schedule whose instances are no longer known. */
  async lastDeclaredBy(params: {
    readonly app: string | null;
    readonly names: readonly string[];
  }): Promise<ReadonlyMap<string, string | null>> {
    const verb = "schedules.lastDeclaredBy";
    const found = await this.#session.read({ verb, sql: LAST_DECLARED_BY, params });
    return new Map(found.map((row) => [String(row.name), textOrNull(row.program)]));
  }

  /** Cron schedules whose next tick was computed by other time zone rules. */
  async byTzdata(params: {
    readonly not: string;
    readonly limit: number;
  }): Promise<readonly string[]> {
    const found = await this.#session.read({ verb: "schedules.byTzdata", sql: BY_TZDATA, params });
    return found.map(({ name }) => String(name));
  }
}

/** A row of `schedule` with `is_job_known`, `live_now`, `last_status` (code or null) and `last_run_at`. */
function toScheduleRecord(row: Row): ScheduleRecord {
  return {
    ...scheduleOf(row),
    live: json<RunId[]>(row.live_now) ?? [],
    lastStatus: row.last_status === null ? null : statusOf(Number(row.last_status)),
    lastRunAt: numberOrNull(row.last_run_at),
  };
}

function toBackfillRecord(row: Row): BackfillRecord {
  return {
    ...toBackfillState(row),
    createdAt: Number(row.created_at),
    createdBy: textOrNull(row.created_by),
    endedAt: numberOrNull(row.ended_at),
    isCancelled: flag(row.is_cancelled),
  };
}

function toScheduleVersion(row: Row): ScheduleVersion {
  return {
    version: Number(row.version),
    kind: EDIT_KINDS[Number(row.kind)] as EditKind,
    at: Number(row.at),
    by: textOrNull(row.by),
    job: String(row.job),
    definition: String(row.definition),
    input: String(row.input),
    anchorAt: Number(row.anchor_at),
  };
}
