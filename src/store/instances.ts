// Keeps instances: which take part, which jobs each executes, when each was last seen, and which are quiet.

import { type Audited, auditedWrite } from "./audit.js";
import type { JobAnnouncement, Jobs } from "./jobs.js";
import { flag, json, numberOrNull, type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";

const ANNOUNCE = /* sql */ `
insert into {instance} as i (id, app, program, release, jobs, schedules, is_scheduler, works, queues, poll_ms,
  started_at, seen_at)
select :instanceId, :app, :program, :release, :jobs::json, :schedules::json, :isScheduler::boolean, :works::json, :queues::json,
  :pollMs::bigint, n.at, n.at
from (select {now} as at) n where true
on conflict (id) do update set jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = excluded.is_scheduler, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = null
returning no`;

/**
 * Returns no row if a live instance of another owner has the name. The SQL function that acquires due runs uses it too.
 */
export const ANNOUNCE_REMOTE = /* sql */ `
insert into {instance} as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
select :instanceId, '[]', '[]', false, :works::json, :queues::json, :pollMs::bigint, n.at, n.at, :by::text
from (select {now} as at) n where true
on conflict (id) do update set app = null, program = null, release = null, jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = false, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = excluded.remote_by
where i.remote_by = excluded.remote_by or i.retired_at is not null
  or i.seen_at <= excluded.seen_at - {greatest}(60000, 3 * i.poll_ms)
returning no`;

const RETIRE = /* sql */ `update {instance} set retired_at = {now}, seen_at = {now} where no = :holder`;

/** Sums up leases once, not once per instance. */
const LIST = /* sql */ `
with now as materialized (select {now} as at),
known as materialized (
  select i.no, i.id, i.app, i.release, i.jobs, i.is_scheduler, i.started_at, i.seen_at, i.retired_at, i.quiet_at,
    i.quiet_by, i.quiet_note, i.skew_ms,
    i.retired_at is null and i.seen_at > now.at - {greatest}(60000, 3 * i.poll_ms) as is_live
  from {instance} i cross join now
),
page as materialized (
  select * from known
  where :isLive::boolean is null or (is_live = :isLive::boolean and no < :no::int) or (:isLive::boolean and not is_live)
  order by is_live desc, no desc limit :limit
),
holding as materialized (
  select k.holder, sum({length}(k.ids)) as runs from {lease} k where k.holder {any select no from page} group by k.holder
)
select p.no, p.id, p.app, p.release, p.jobs, p.is_scheduler, p.is_live, p.started_at, p.seen_at, p.retired_at, p.quiet_at,
  p.quiet_by, p.quiet_note, p.skew_ms, coalesce((select h.runs from holding h where h.holder = p.no), 0) as held
from page p order by p.is_live desc, p.no desc`;

const SET_QUIET = /* sql */ `
update {instance} set
  quiet_at = case when :isQuiet::boolean then coalesce(quiet_at, {now}) end,
  quiet_by = case when :isQuiet::boolean then coalesce(quiet_by, :by::text) end,
  quiet_note = case when :isQuiet::boolean then coalesce(:note::text, quiet_note) end
where id = :id returning no`;

export type InstanceAnnouncement = {
  readonly instanceId: string;
  readonly app: string | null;
  /** The file that its process was started with. Left out: unknown. */
  readonly program?: string | null;
  readonly release: string | null;
  readonly jobs: readonly JobAnnouncement[];
  /** Names of the schedules that its code declares. */
  readonly schedules: readonly string[];
  readonly isScheduler: boolean;
  /** The jobs that it executes. Left out: none. */
  readonly works?: ClaimScope;
  /** An instance that was not seen for several of these intervals counts as gone. */
  readonly pollMs: number;
};

/** A remote worker that takes part as an instance. */
type RemoteAnnouncement = {
  readonly instanceId: string;
  /** The owner of its credential: a live name belongs to its owner. */
  readonly by: string;
  readonly works: ClaimScope;
  readonly pollMs: number;
};

/** The jobs and queues that this instance may claim; null: all. */
export type ClaimScope = {
  readonly jobs: readonly string[];
  readonly queues: readonly string[] | null;
};

export type InstanceRecord = {
  /** Its number: newer instances have larger ones. */
  readonly no: number;
  readonly id: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly jobs: readonly string[];
  readonly isScheduler: boolean;
  /** Not retired, and seen lately. */
  readonly isLive: boolean;
  readonly startedAt: number;
  readonly seenAt: number;
  readonly retiredAt: number | null;
  /** How many runs it holds. */
  readonly held: number;
  /** The certain part of its clock's offset from the database's; null before the first measurement. */
  readonly skewMs: number | null;
  /** Since when it is quiet, by whom and why. */
  readonly quietAt: number | null;
  readonly quietBy: string | null;
  readonly quietNote: string | null;
};

type InstanceFilter = {
  readonly limit: number;
  /** The last instance of the previous page. */
  readonly after?: Pick<InstanceRecord, "isLive" | "no">;
};

type QuietParams = {
  readonly id: string;
  readonly isQuiet: boolean;
  readonly by: string | null;
  readonly note: string | null;
} & Audited;

export class Instances {
  readonly #session: StoreSession;
  readonly #jobs: Jobs;

  constructor(session: StoreSession, jobs: Jobs) {
    this.#session = session;
    this.#jobs = jobs;
  }

  /** Stores this instance and its jobs; returns the number that identifies it as a holder. */
  async announce(instance: InstanceAnnouncement): Promise<number> {
    // Stored first: a reader that finds the instance also finds its jobs.
    await this.#jobs.announce(instance.jobs);
    const [found] = await this.#session.write({
      ...{ verb: "instances.announce", sql: ANNOUNCE, params: instanceColumns(instance) },
      lost: "repeat",
    });
    return Number(found?.no);
  }

  /** The number of a remote worker's instance; null if a live instance of another owner has the name. */
  async announceRemote(worker: RemoteAnnouncement): Promise<number | null> {
    const [found] = await this.#session.write({
      ...{ verb: "instances.announceRemote", sql: ANNOUNCE_REMOTE, params: remoteColumns(worker) },
      lost: "repeat",
    });
    return numberOrNull(found?.no);
  }

  /** Marks the instance as stopped. Does not wait for the result: other instances notice its silence anyway. */
  async retire(params: { readonly holder: number }): Promise<void> {
    await this.#session.write({
      ...{ verb: "instances.retire", sql: RETIRE, params },
      ...{ lost: "report", connection: "beat" },
    });
  }

  /** Live ones first, then the newest. */
  async list({ limit, after }: InstanceFilter): Promise<readonly InstanceRecord[]> {
    const params = { limit, isLive: after?.isLive ?? null, no: after?.no ?? null };
    const found = await this.#session.read({ verb: "instances.list", sql: LIST, params });
    return found.map(toInstanceRecord);
  }

  /**
   * Makes an instance claim and fire nothing until it is woken; its own poll reads this. False if there is no such
   * instance. A second call keeps the time, and the note if none is given.
   */
  async setQuiet({ audit, ...params }: QuietParams): Promise<boolean> {
    const statement = { verb: "instances.setQuiet", sql: SET_QUIET, params };
    return (await auditedWrite(this.#session, { ...statement, audit })) !== undefined;
  }
}

function instanceColumns({ jobs, schedules, works, ...plain }: InstanceAnnouncement): Row {
  return {
    ...plain,
    program: plain.program ?? null,
    jobs: JSON.stringify(jobs.map(({ name }) => name)),
    schedules: JSON.stringify(schedules),
    works: JSON.stringify(works?.jobs ?? []),
    queues: works?.queues ? JSON.stringify(works.queues) : null,
  };
}

function remoteColumns({ works, ...plain }: RemoteAnnouncement): Row {
  const queues = works.queues && JSON.stringify(works.queues);
  return { ...plain, works: JSON.stringify(works.jobs), queues };
}

function toInstanceRecord(row: Row): InstanceRecord {
  return {
    no: Number(row.no),
    id: String(row.id),
    app: textOrNull(row.app),
    release: textOrNull(row.release),
    jobs: json<string[]>(row.jobs) ?? [],
    isScheduler: flag(row.is_scheduler),
    isLive: flag(row.is_live),
    startedAt: Number(row.started_at),
    seenAt: Number(row.seen_at),
    retiredAt: numberOrNull(row.retired_at),
    held: Number(row.held),
    skewMs: numberOrNull(row.skew_ms),
    quietAt: numberOrNull(row.quiet_at),
    quietBy: textOrNull(row.quiet_by),
    quietNote: textOrNull(row.quiet_note),
  };
}
