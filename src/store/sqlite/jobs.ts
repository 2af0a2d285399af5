// Announces jobs on SQLite: all in one transaction, which writes only those that have changed.

import { ANNOUNCE_JOB, type JobAnnouncement, Jobs, jobColumns, policyDigest } from "../jobs.js";
import { row } from "../session.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { SqliteLimits } from "./limits.js";
import type { SqliteSession } from "./session.js";

/** Jobs as an announcement writes them, each as one text to compare. */
const ANNOUNCED_TEXTS = /* sql */ `
select json_array(j.name, j.queue, j.priority, j.version, j.input_schema, j.concurrency_limit, j.concurrency_key,
  j.rate_limit, j.rate_per_ms, j.rate_key, p.digest) as text
from {job} j join {policy} p on p.id = j.policy where j.name in (select value from json_each(:names))`;

export class SqliteJobs extends Jobs {
  readonly #session: SqliteSession;
  readonly #enqueue: SqliteEnqueue;
  readonly #limits: SqliteLimits;

  constructor(params: {
    readonly session: SqliteSession;
    readonly enqueue: SqliteEnqueue;
    readonly limits: SqliteLimits;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#enqueue = params.enqueue;
    this.#limits = params.limits;
  }

  announce(jobs: readonly JobAnnouncement[]): Promise<void> {
    return this.#session.transact("jobs.announce", (now) => {
      // Every start announces all of them, and hardly ever a changed one.
      const names = JSON.stringify(jobs.map(({ name }) => name));
      const found = this.#session.file.all(ANNOUNCED_TEXTS, { names });
      const known = new Set(found.map(({ text }) => text));
      for (const job of jobs) {
        const columns = jobColumns(job);
        const text = JSON.stringify([...Object.values(columns), policyDigest(job.policy)]);
        if (!known.has(text)) this.#announce(job, columns, now);
      }
    });
  }

  #announce({ name, queue, limits, policy }: JobAnnouncement, columns: object, now: number): void {
    this.#enqueue.lane(queue, name);
    const params = { ...columns, policy: this.#enqueue.policy(policy) };
    const changed = this.#session.drive(row(ANNOUNCE_JOB, params), now);
    if (changed) this.#limits.reopen(name, limits, now);
  }
}
