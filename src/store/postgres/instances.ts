// Who takes part on PostgreSQL, and which jobs they announce.

import { isLimited, NO_LIMITS } from "../../worker/rules/limits.js";
import { instanceColumns, limitColumns, remoteColumns, toAnnouncement } from "../record.js";
import type * as store from "../store.js";
import type { InstanceVerbs } from "../store-of-parts.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { PostgresSession } from "./session.js";
import * as flows from "./sql/flow.js";
import * as sql from "./sql/instances.js";

export class PostgresInstances implements InstanceVerbs {
  readonly #asker: PostgresSession;
  readonly #enqueue: Pick<PostgresEnqueue, "policy" | "lane">;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly enqueue: Pick<PostgresEnqueue, "policy" | "lane">;
  }) {
    this.#asker = params.asker;
    this.#enqueue = params.enqueue;
  }

  async announceJobs(jobs: readonly store.JobAnnouncement[]): Promise<void> {
    await Promise.all(
      jobs.map(async (job) => {
        const { name, queue, priority, version, policy, limits = NO_LIMITS } = job;
        const [id] = await Promise.all([
          this.#enqueue.policy(policy),
          this.#enqueue.lane(queue, name),
        ]);
        await this.#asker.repeat("announce", sql.ANNOUNCE_JOB, {
          name,
          queue,
          priority,
          version,
          policy: id,
          ...limitColumns(limits),
          inputSchema: job.inputSchema ?? null,
        });
        const isNowLimited = isLimited(limits);
        if (
          isNowLimited ||
          (await this.#asker.repeat("announce", flows.HAS_FLOWS, { name })).length > 0
        )
          await this.#asker.repeat("announce", flows.REOPEN_JOB, { name, isLimited: isNowLimited });
      }),
    );
  }

  async announce(params: store.InstanceAnnouncement): Promise<number> {
    await this.announceJobs(params.jobs);
    const columns = instanceColumns(params);
    const [row] = await this.#asker.repeat("announce", sql.ANNOUNCE_INSTANCE, columns);
    return Number(row?.no);
  }

  async announceRemote(params: store.RemoteAnnouncement): Promise<number | null> {
    const columns = remoteColumns(params);
    const [row] = await this.#asker.repeat("announceRemote", sql.ANNOUNCE_REMOTE, columns);
    return row === undefined ? null : Number(row.no);
  }

  async localJobs(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#asker.repeat("localJobs", sql.LOCAL_JOBS, { names });
    return rows.map(({ job }) => String(job));
  }

  async announcedJobs(): Promise<readonly store.JobAnnouncement[]> {
    const rows = await this.#asker.repeat("announcedJobs", sql.ANNOUNCED_JOBS, {});
    return rows.map((row) => toAnnouncement(row, row.policy as number[]));
  }

  async retire({ holder }: { readonly holder: number }): Promise<void> {
    await this.#asker.attempt("retire", this.#asker.beat, sql.RETIRE_INSTANCE, { holder });
  }
}
