// Announces jobs on PostgreSQL: each by statements of its own, all jobs at once. Every statement may be repeated.

import { isLimited, NO_LIMITS } from "../../worker/rules/limits.js";
import { ANNOUNCE_JOB, type JobAnnouncement, Jobs, jobColumns } from "../jobs.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { PostgresSession } from "./session.js";
import { HAS_FLOWS, REOPEN_JOB } from "./sql/limits.js";

const VERB = "jobs.announce";

export class PostgresJobs extends Jobs {
  readonly #session: PostgresSession;
  readonly #enqueue: Pick<PostgresEnqueue, "policy" | "lane">;

  constructor(session: PostgresSession, enqueue: Pick<PostgresEnqueue, "policy" | "lane">) {
    super(session);
    this.#session = session;
    this.#enqueue = enqueue;
  }

  async announce(jobs: readonly JobAnnouncement[]): Promise<void> {
    await Promise.all(jobs.map((job) => this.#announce(job)));
  }

  async #announce(job: JobAnnouncement): Promise<void> {
    const { name, queue, limits = NO_LIMITS } = job;
    const [policy] = await Promise.all([
      this.#enqueue.policy(job.policy),
      this.#enqueue.lane(queue, name),
    ]);
    const params = { ...jobColumns(job), policy };
    await this.#session.write({ verb: VERB, sql: ANNOUNCE_JOB, params, lost: "repeat" });
    const isNowLimited = isLimited(limits);
    if (isNowLimited || (await this.#session.repeat(VERB, HAS_FLOWS, { name })).length > 0)
      await this.#session.repeat(VERB, REOPEN_JOB, { name, isLimited: isNowLimited });
  }
}
