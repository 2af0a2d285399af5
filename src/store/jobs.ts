// Keeps jobs as instances announce them, and maps their policies and limits to columns and back.

import { ON_LOST, type Policy } from "../runs/rules/run.js";
import { isLimited, type Limits, NO_LIMITS } from "../worker/rules/limits.js";
import { json, numberOrNull, type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";

/** One row if this has changed the job. */
export const ANNOUNCE_JOB = /* sql */ `
insert into {job} as j (name, queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit,
  rate_per_ms, rate_key, input_schema, announced_at)
values (:name, :queue, :priority, :version, :policy, :concurrencyLimit::int, :concurrencyKey::text, :rateLimit::int,
  :ratePerMs::bigint, :rateKey::text, :inputSchema::text, {now})
on conflict (name) do update
set queue = excluded.queue, priority = excluded.priority, version = excluded.version,
  policy = excluded.policy, concurrency_limit = excluded.concurrency_limit, concurrency_key = excluded.concurrency_key,
  rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, rate_key = excluded.rate_key,
  input_schema = excluded.input_schema, announced_at = excluded.announced_at
where (j.queue, j.priority, j.version, j.policy, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
    j.rate_key, j.input_schema) is distinct from
  (excluded.queue, excluded.priority, excluded.version, excluded.policy, excluded.concurrency_limit,
    excluded.concurrency_key, excluded.rate_limit, excluded.rate_per_ms, excluded.rate_key,
    excluded.input_schema)
returning name`;

const LIST = /* sql */ `
select j.name, j.queue, j.priority, j.version, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
  j.rate_key, j.input_schema,
  {json_array}(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost) as policy
from {job} j join {policy} p on p.id = j.policy order by j.name`;

/** Those of these jobs that a live instance executes, or sends to a target. */
export const LOCAL_JOBS = /* sql */ `
select distinct w.value as job from {instance} i cross join (select {now} as at) n cross join {members i.works as w}
where i.remote_by is null and i.retired_at is null and i.seen_at > n.at - {greatest}(60000, 3 * i.poll_ms)
  and w.value {any :names::text[]}`;

const KNOWN = /* sql */ `
select name from {job} where name {any :names::text[]}
union select job from {lane} where job {any :names::text[]} order by 1`;

export type JobAnnouncement = {
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly version: number;
  readonly policy: Policy;
  /** Left out: none. */
  readonly limits?: Limits;
  /** The schema of the input, as JSON Schema in JSON text. Left out or null: unknown. */
  readonly inputSchema?: string | null;
};

export abstract class Jobs {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Stores jobs without an instance: for schedules that are made where nothing was started. */
  abstract announce(jobs: readonly JobAnnouncement[]): Promise<void>;

  /** Jobs as the newest instance announced them. */
  async list(): Promise<readonly JobAnnouncement[]> {
    return (await this.#session.read({ verb: "jobs.list", sql: LIST })).map(toAnnouncement);
  }

  /** Those of these jobs that live instances execute or send to a target. */
  async local(names: readonly string[]): Promise<readonly string[]> {
    const found = await this.#session.read({
      verb: "jobs.local",
      sql: LOCAL_JOBS,
      params: { names },
    });
    return found.map(({ job }) => String(job));
  }

  /** Those of these jobs that an instance has announced or that have had a run, by name. */
  async known(names: readonly string[]): Promise<readonly string[]> {
    const found = await this.#session.read({ verb: "jobs.known", sql: KNOWN, params: { names } });
    return found.map(({ name }) => String(name));
  }
}

/** The columns of a job without its policy: each engine finds the policy's number its own way. */
export function jobColumns({ name, queue, priority, version, ...job }: JobAnnouncement): Row {
  const { concurrency, rate } = job.limits ?? NO_LIMITS;
  return {
    name,
    queue,
    priority,
    version,
    inputSchema: job.inputSchema ?? null,
    concurrencyLimit: concurrency?.limit ?? null,
    concurrencyKey: concurrency?.key ?? null,
    rateLimit: rate?.limit ?? null,
    ratePerMs: rate?.perMs ?? null,
    rateKey: rate?.key ?? null,
  };
}

/** The limits of a job, as its row has them. */
export function toLimits(row: Row): Limits {
  const concurrencyLimit = numberOrNull(row.concurrency_limit);
  const rateLimit = numberOrNull(row.rate_limit);
  return {
    concurrency:
      concurrencyLimit === null
        ? null
        : { limit: concurrencyLimit, key: textOrNull(row.concurrency_key) },
    rate:
      rateLimit === null
        ? null
        : { limit: rateLimit, perMs: Number(row.rate_per_ms), key: textOrNull(row.rate_key) },
  };
}

/** Equal policies share one row, which is found by this text. */
export function policyDigest({ leaseMs, timeoutMs, retry, onLost }: Policy): string {
  const { attempts, delayMs, factor, maxMs, jitter } = retry;
  const onLostCode = ON_LOST.indexOf(onLost);
  return JSON.stringify([leaseMs, timeoutMs, attempts, delayMs, factor, maxMs, jitter, onLostCode]);
}

/** From the columns in the order of the digest. */
export function toPolicy(values: readonly number[]): Policy {
  const [leaseMs = 0, timeoutMs = 0, attempts = 0, delayMs = 0, factor = 0, maxMs = 0] = values;
  const [jitter = 0, onLost = 0] = values.slice(6);
  return {
    leaseMs,
    timeoutMs,
    retry: { attempts, delayMs, factor, maxMs, jitter },
    onLost: ON_LOST[onLost] ?? "retry",
  };
}

function toAnnouncement(row: Row): JobAnnouncement {
  const limits = toLimits(row);
  return {
    name: String(row.name),
    queue: String(row.queue),
    priority: Number(row.priority),
    version: Number(row.version),
    policy: toPolicy(json<number[]>(row.policy) ?? []),
    ...(isLimited(limits) ? { limits } : {}),
    ...(row.input_schema === null ? {} : { inputSchema: String(row.input_schema) }),
  };
}
