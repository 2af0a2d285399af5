// Who takes part on SQLite, and which jobs they announce.

import {
  instanceColumns,
  limitColumns,
  policyDigest,
  remoteColumns,
  toAnnouncement,
} from "../record.js";
import type * as store from "../store.js";
import type { InstanceVerbs } from "../store-of-parts.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/statements.js";

export class SqliteInstances implements InstanceVerbs {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #enqueue: SqliteEnqueue;
  readonly #flow: SqliteLimits;

  constructor(params: {
    readonly asker: SqliteSession;
    readonly enqueue: SqliteEnqueue;
    readonly flow: SqliteLimits;
  }) {
    this.#asker = params.asker;
    this.#file = params.asker.file;
    this.#enqueue = params.enqueue;
    this.#flow = params.flow;
  }

  announce(params: store.InstanceAnnouncement): Promise<number> {
    return this.#asker.write("announce", (now) => {
      this.#announceJobs(params.jobs, now);
      const row = this.#file.get(sql.ANNOUNCE_INSTANCE, { ...instanceColumns(params), now });
      return Number(row?.no);
    });
  }

  announceRemote(params: store.RemoteAnnouncement): Promise<number | null> {
    return this.#asker.write("announceRemote", (now) => {
      const row = this.#file.get(sql.ANNOUNCE_REMOTE, { ...remoteColumns(params), now });
      return row === undefined ? null : Number(row.no);
    });
  }

  async localJobs(names: readonly string[]): Promise<readonly string[]> {
    const asked = { names: JSON.stringify(names) };
    const rows = await this.#asker.read((now) => this.#file.all(sql.LOCAL_JOBS, { ...asked, now }));
    return rows.map(({ job }) => String(job));
  }

  announceJobs(jobs: readonly store.JobAnnouncement[]): Promise<void> {
    return this.#asker.write("announceJobs", (now) => this.#announceJobs(jobs, now));
  }

  #announceJobs(jobs: readonly store.JobAnnouncement[], now: number): void {
    // Every start announces all of them, and hardly ever anything new.
    const names = JSON.stringify(jobs.map(({ name }) => name));
    const known = new Set(this.#file.all(sql.ANNOUNCED_TEXTS, { names }).map(({ text }) => text));
    for (const { name, queue, priority, version, limits, ...job } of jobs) {
      const inputSchema = job.inputSchema ?? null;
      const limited = limitColumns(limits);
      const digest = policyDigest(job.policy);
      const own = [name, queue, priority, version, digest, inputSchema, ...Object.values(limited)];
      if (known.has(JSON.stringify(own))) continue;
      this.#enqueue.lane(queue, name);
      const policy = this.#enqueue.policy(job.policy);
      const row = { name, queue, priority, version, policy, inputSchema, ...limited, now };
      if (this.#file.run(sql.ANNOUNCE_JOB, row) > 0) this.#flow.reopen(name, limits, now);
    }
  }

  async announcedJobs(): Promise<readonly store.JobAnnouncement[]> {
    const rows = await this.#file.read(() => this.#file.all(sql.ANNOUNCED_JOBS));
    return rows.map((row) =>
      toAnnouncement(row, JSON.parse(String(row.policy)) as readonly number[]),
    );
  }

  async retire({ holder }: { readonly holder: number }): Promise<void> {
    await this.#asker.write("retire", (now) =>
      this.#file.run(sql.RETIRE_INSTANCE, { holder, now }),
    );
  }
}
