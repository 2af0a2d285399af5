// The store on SQLite: every verb is one short write transaction, so its decisions and its writes
// cannot be interleaved with another's. Where PostgreSQL decides inside a statement, this file
// decides in between, with the same pure functions that the engine uses.

import { MigrationError } from "../core/errors.js";
import type { Chance, Clock } from "../core/ports.js";
import { MODES, type RunId } from "../core/run.js";
import { CANCEL_ERROR, statusCode, toAttemptRecord, toPolicy, toRunRecord } from "./record.js";
import * as sql from "./sql/sqlite.js";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "./sql/sqlite-schema.js";
import { type Dialect, fillIn } from "./sql/template.js";
import { type Row, SqliteFile, type SqliteSource } from "./sqlite.js";
import {
  Books,
  ENDED_CANCELLED,
  ENDED_FAILED,
  isOverItsTime,
  judgeLoss,
  type LeaseRow,
  type Pending,
} from "./sqlite-books.js";
import { Refused, SqliteEnqueue } from "./sqlite-enqueue.js";
import { SqliteLeases } from "./sqlite-leases.js";
import type * as store from "./store.js";

const DATABASE_CLOCK = "cast(unixepoch('subsec') * 1000 as integer)";
export type SqliteStoreParams = {
  readonly source: SqliteSource;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly synchronous: "FULL" | "NORMAL";
  readonly migrate: "auto" | "check" | "off";
  readonly mayCreate: boolean;
  /** Tests and the simulator supply the database's time; production never does. */
  readonly now?: () => number;
};

export class SqliteStore implements store.Store {
  readonly engine = "sqlite";
  readonly #file: SqliteFile;
  readonly #migrate: "auto" | "check" | "off";
  readonly #now: (() => number) | undefined;
  readonly #dialect: Dialect;
  readonly #enqueue: SqliteEnqueue;
  readonly #leases: SqliteLeases;
  readonly #listeners = new Set<store.WakeListener>();

  constructor(params: SqliteStoreParams) {
    this.#migrate = params.migrate;
    this.#now = params.now;
    this.#dialect = { name: (plain) => `holdfast_${plain}`, now: DATABASE_CLOCK };
    this.#file = new SqliteFile({ ...params, dialect: this.#dialect });
    this.#enqueue = new SqliteEnqueue(this.#file);
    this.#leases = new SqliteLeases(this.#file);
  }

  async open(): Promise<void> {
    await this.#file.open();
    const isKnown = await this.#file.read(() => this.#isMigrated());
    if (!isKnown) await this.#createSchema();
    const version = await this.#file.read(() => this.#file.get("select * from {schema_version}"));
    if (!version || Number(version.min_compatible) > SCHEMA_VERSION) {
      throw new MigrationError(
        version
          ? `The tables are of version ${version.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`
          : 'The file has no Holdfast tables; run `holdfast migrate` or set migrate: "auto".',
        version ? Number(version.version) : null,
      );
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async announce(params: store.InstanceAnnouncement): Promise<number> {
    return this.#write("announce", (now) => {
      for (const { name, queue, priority, version, policy } of params.jobs) {
        this.#enqueue.lane(queue, name);
        this.#file.run(sql.ANNOUNCE_JOB, {
          name,
          queue,
          priority,
          version,
          policy: this.#enqueue.policy(policy),
          now,
        });
      }
      const row = this.#file.get(sql.ANNOUNCE_INSTANCE, {
        instanceId: params.instanceId,
        app: params.app,
        release: params.release,
        jobs: JSON.stringify(params.jobs.map((job) => job.name)),
        now,
      });
      return Number(row?.no);
    });
  }

  async announcedJob(name: string): Promise<store.JobAnnouncement | null> {
    return (await this.announcedJobs()).find((job) => job.name === name) ?? null;
  }

  async announcedJobs(): Promise<readonly store.JobAnnouncement[]> {
    const rows = await this.#file.read(() => this.#file.all(sql.ANNOUNCED_JOBS));
    return rows.map((row) => ({
      name: String(row.name),
      queue: String(row.queue),
      priority: Number(row.priority),
      version: Number(row.version),
      policy: toPolicy(JSON.parse(String(row.policy)) as number[]),
    }));
  }

  async retire({ holder }: { readonly holder: number }): Promise<void> {
    await this.#write("retire", (now) => this.#file.run(sql.RETIRE_INSTANCE, { holder, now }));
  }

  async enqueue({ runs, isAtomic }: store.EnqueueParams): Promise<readonly store.EnqueueAnswer[]> {
    const storing = this.#write("enqueue", (now) => this.#enqueue.store({ runs, isAtomic }, now));
    return storing.catch((error: unknown) => {
      if (error instanceof Refused) return error.answers;
      throw error;
    });
  }

  async exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    return this.#write("exchange", (now) => {
      const stale =
        params.settlements.length === 0 ? [] : this.#leases.settle(params.settlements, now);
      if (params.limit > 0) this.#leases.claim(params, now);
      const claims = params.limit > 0 ? this.#leases.claimsByToken(params, now) : [];
      return { claims, stale };
    });
  }

  async claimsByToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly store.Claim[]> {
    return this.#file.read(() => this.#leases.claimsByToken(params, this.#databaseNow()));
  }

  async renew(params: store.RenewParams): Promise<store.RenewAnswer> {
    return this.#write("renew", (now) => {
      const rows = this.#file.all(sql.RENEW, {
        holder: params.holder,
        fences: JSON.stringify(params.fences),
        now,
      });
      const held = rows.map((row) => ({
        fence: Number(row.fence),
        leaseMs: Number(row.lease_ms),
        ids: JSON.parse(String(row.ids)) as RunId[],
      }));
      return { held, unknown: [] };
    });
  }

  async markStarted(grants: readonly store.Grant[]): Promise<readonly store.Grant[]> {
    return this.#write("markStarted", () => {
      const leases = this.#leases.leases(grants.map(({ fence }) => fence));
      const valid = grants.filter(({ id, fence }) => leases.get(fence)?.members.has(id));
      for (const [fence, { row }] of leases) {
        const begun = valid.filter((grant) => grant.fence === fence).map(({ id }) => id);
        const started = JSON.stringify([...(JSON.parse(row.started) as RunId[]), ...begun]);
        if (begun.length > 0) this.#file.run(sql.MARK_STARTED, { fence, started });
      }
      return valid;
    });
  }

  async poll({
    holder,
    jobs,
    queues,
  }: store.Appetite & { readonly holder: number }): Promise<store.PollAnswer> {
    return this.#write("poll", (now) => {
      this.#file.run(sql.SEE_INSTANCE, { holder, now });
      const row = this.#file.get(sql.POLL, {
        holder,
        now,
        jobs: JSON.stringify(jobs),
        queues: queues && JSON.stringify(queues),
      }) as Row;
      return {
        now,
        hasReady: row.hasReady === 1,
        hasSuspect: row.hasSuspect === 1,
        hasDue: row.hasDue === 1,
        hasExpired: row.hasExpired === 1,
        cancelRequested: JSON.parse(String(row.cancelRequested)) as RunId[],
        nextWakeAt: row.nextWakeAt === null ? null : Number(row.nextWakeAt),
      };
    });
  }

  async promote({ limit }: { readonly limit: number }): Promise<number> {
    return this.#write("promote", (now) => {
      this.#file.run(sql.PROMOTE, { limit, now });
      return this.#file.run(sql.DELETE_PROMOTED, { limit, now });
    });
  }

  async reclaim({
    limit,
    chance,
  }: {
    readonly limit: number;
    readonly chance: number;
  }): Promise<readonly store.Reclaimed[]> {
    return this.#write("reclaim", (now) => {
      const reclaimed: store.Reclaimed[] = [];
      const books = new Books();
      for (const row of this.#file.all(sql.EXPIRED, { limit, now })) {
        const lease = row as LeaseRow & { job: string; holder_id: string | null } & Row;
        const modes = this.#leases.modesOf(lease.ids);
        for (const id of JSON.parse(lease.ids) as RunId[]) {
          const place = (chance + reclaimed.length * 0.618034) % 1;
          const to = judgeLoss(
            { lease, id, mode: modes.get(id) ?? 0, now, random: () => place },
            books,
          );
          const end = isOverItsTime(lease) ? "timeout" : "lost";
          reclaimed.push({
            id,
            fence: lease.fence,
            job: lease.job,
            attempt: lease.attempt,
            holder: lease.holder_id ?? "unknown",
            end,
            to,
          });
        }
        this.#file.run(sql.DELETE_LEASE, { fence: lease.fence });
      }
      this.#leases.enter(books, now);
      return reclaimed;
    });
  }

  async enforceCancels({ graceMs }: { readonly graceMs: number }): Promise<readonly store.Grant[]> {
    return this.#write("enforceCancels", (now) => {
      const ended: store.Grant[] = [];
      const books = new Books();
      for (const row of this.#file.all(sql.CANCELLING)) {
        const lease = row as unknown as LeaseRow;
        const cancels = JSON.parse(String(lease.cancels)) as Record<RunId, number>;
        const modes = this.#leases.modesOf(lease.ids);
        const ids = JSON.parse(lease.ids) as RunId[];
        const overdue = ids.filter(
          (id) => cancels[id] !== undefined && cancels[id] + graceMs <= now,
        );
        for (const id of overdue) {
          books.finish(lease, {
            id,
            mode: modes.get(id) ?? 0,
            status: statusCode("cancelled"),
            ranMs: now - lease.claimed_at,
            error: CANCEL_ERROR,
          });
          ended.push({ id, fence: lease.fence });
        }
        this.#leases.shrink(lease.fence, ids, new Set(overdue));
      }
      this.#leases.enter(books, now);
      return ended;
    });
  }

  async cancel({ id }: { readonly id: RunId }): Promise<store.CancelAnswer> {
    return this.#write("cancel", (now) => {
      const pending =
        this.#file.get(sql.DELETE_PENDING_READY, { id }) ??
        this.#file.get(sql.DELETE_PENDING_WAITING, { id });
      if (pending) {
        this.#file.run(sql.INSERT_CANCELLED, { ...pending, now });
        return "cancelled";
      }
      const lease = this.#file.get(sql.HOLDING, { id }) as LeaseRow | undefined;
      if (lease) {
        const cancels = {
          [id]: now,
          ...(JSON.parse(lease.cancels ?? "{}") as Record<RunId, number>),
        };
        this.#file.run(sql.SET_CANCELS, { fence: lease.fence, cancels: JSON.stringify(cancels) });
        return "requested";
      }
      return this.#file.get(sql.OUTCOME, { id }) ? "already_terminal" : "not_found";
    });
  }

  async retry({ id }: { readonly id: RunId }): Promise<store.RetryAnswer> {
    return this.#write("retry", (now) => {
      const outcome = this.#file.get(sql.OUTCOME, { id });
      if (!outcome) return this.#file.get(sql.RUN, { id }) ? "not_terminal" : "not_found";
      if (outcome.status === statusCode("completed")) return "completed";
      this.#file.run(sql.DELETE_OUTCOME, { id });
      if (outcome.fence !== null) {
        this.#file.run(sql.KEEP_ATTEMPT, {
          ...outcome,
          ended: outcome.status === statusCode("cancelled") ? ENDED_CANCELLED : ENDED_FAILED,
          startedAt: outcome.started_at,
          endedAt: outcome.finished_at,
        });
      }
      const again: Pending = [
        id,
        0,
        Number(outcome.attempt),
        0,
        0,
        0,
        Number(outcome.extra) + 1,
        0,
      ];
      this.#file.run(sql.INSERT_READY, { rows: JSON.stringify([again]), now });
      return "pending";
    });
  }

  async remove({ id }: { readonly id: RunId }): Promise<"removed" | "not_terminal" | "not_found"> {
    return this.#write("remove", () => {
      if (this.#file.run(sql.DELETE_OUTCOME, { id }) === 0) {
        return this.#file.get(sql.RUN, { id }) ? "not_terminal" : "not_found";
      }
      for (const statement of [sql.DELETE_RUN, sql.DELETE_ATTEMPTS, sql.DELETE_KEYS]) {
        this.#file.run(statement, { id });
      }
      return "removed";
    });
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const row = await this.#file.read(() => this.#file.get(sql.GET_RUN, { id }));
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const rows = await this.#file.read(() =>
      this.#file.all(sql.LIST_RUNS[filter.status ?? "any"], {
        ...filter,
        mode: filter.mode === undefined ? null : MODES.indexOf(filter.mode),
      }),
    );
    return rows.map(toRunRecord);
  }

  async attempts(id: RunId): Promise<readonly store.AttemptRecord[]> {
    return (await this.#file.read(() => this.#file.all(sql.ATTEMPTS, { id }))).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    const rows = await this.#file.read(() =>
      this.#file.all(sql.TERMINAL, { ids: JSON.stringify(ids) }),
    );
    return rows.map((row) => String(row.id));
  }

  async pauseQueue(params: { readonly queue: string; readonly isPaused: boolean }): Promise<void> {
    await this.#write("pauseQueue", (now) => this.#file.run(sql.PAUSE_QUEUE, { ...params, now }));
  }

  async prune({
    keepMs,
    limit,
  }: {
    readonly keepMs: number;
    readonly limit: number;
  }): Promise<number> {
    return this.#write("prune", (now) => {
      const before = firstIdAt(now - keepMs);
      const old = this.#file.all(sql.OLD_RUNS, { keepMs, limit, now, before }).map((row) => row.id);
      for (const statement of sql.PRUNE) this.#file.run(statement, { ids: JSON.stringify(old) });
      const keys = this.#file.run(sql.PRUNE_KEYS, { limit, now });
      const instances = this.#file.run(sql.PRUNE_INSTANCES, { keepMs, now });
      return old.length + keys + instances + this.#file.run(sql.PRUNE_ROLLUPS, { keepMs, now });
    });
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    void this.#file.watch(() => {
      for (const each of this.#listeners) each();
    });
    return () => this.#listeners.delete(listener);
  }

  /** The write itself is what other processes notice. */
  wake(): void {}

  // ── schema and clock ───────────────────────────────────────────────────────────────────────────

  #isMigrated(): boolean {
    const name = this.#dialect.name("schema_version");
    return this.#file.get("select 1 from sqlite_master where name = :name", { name }) !== undefined;
  }

  async #createSchema(): Promise<void> {
    if (this.#migrate !== "auto") {
      throw new MigrationError(
        'The file has no Holdfast tables; run `holdfast migrate` or set migrate: "auto".',
      );
    }
    await this.#file.write("migrate", () => {
      if (this.#isMigrated()) return;
      this.#file.exec(fillIn(CREATE_SCHEMA, this.#dialect));
      const now = this.#databaseNow();
      this.#file.run("insert into {schema_version} values (:version, :version, :now)", {
        version: SCHEMA_VERSION,
        now,
      });
    });
  }

  #databaseNow(): number {
    return this.#now ? this.#now() : Number(this.#file.get(sql.NOW)?.now);
  }

  async #write<T>(what: string, work: (now: number) => T): Promise<T> {
    // Another write may run between this commit and the line after it: each keeps a list of its own.
    let learnt: (() => void)[] = [];
    const value = await this.#file.write(what, () => {
      learnt = this.#enqueue.beginLearning();
      return work(this.#databaseNow());
    });
    for (const remember of learnt) remember();
    return value;
  }
}

/** The smallest UUIDv7 of a moment, as far as sorting needs it. */
function firstIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
