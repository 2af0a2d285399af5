// The store on SQLite: every verb is one short write transaction, so its decisions and its writes
// cannot be interleaved with another's. Where PostgreSQL decides inside a statement, this file
// decides in between, with the same pure functions that the engine uses.

import { MigrationError } from "../core/errors.js";
import type { Chance, Clock } from "../core/ports.js";
import { MODES, ON_LOST, type Policy, PRIORITY_STEP_MS, type RunId } from "../core/run.js";
import { answersOf, firstOfEachKey, type KeyHolder } from "./keys.js";
import {
  CANCEL_ERROR,
  isSameEnd,
  modeCode,
  policyDigest,
  statusCode,
  toAttemptRecord,
  toClaim,
  toPolicy,
  toRunRecord,
} from "./record.js";
import * as sql from "./sql/sqlite.js";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "./sql/sqlite-schema.js";
import { type Dialect, fillIn } from "./sql/template.js";
import { type Row, SqliteFile, type SqliteSource, sqliteCode } from "./sqlite.js";
import {
  Books,
  ENDED_CANCELLED,
  ENDED_FAILED,
  isOverItsTime,
  judgeLoss,
  type LeaseRow,
  type Pending,
} from "./sqlite-books.js";
import type * as store from "./store.js";

const DATABASE_CLOCK = "cast(unixepoch('subsec') * 1000 as integer)";
/** SQLITE_CONSTRAINT. */
const CONSTRAINT = 19;
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
  readonly #lanes = new Map<string, number>();
  /** By identity: a policy is made once with its job. */
  readonly #policies = new WeakMap<Policy, number>();
  readonly #listeners = new Set<store.WakeListener>();

  constructor(params: SqliteStoreParams) {
    this.#migrate = params.migrate;
    this.#now = params.now;
    this.#dialect = { name: (plain) => `holdfast_${plain}`, now: DATABASE_CLOCK };
    this.#file = new SqliteFile({ ...params, dialect: this.#dialect });
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
        this.#lane(queue, name);
        this.#file.run(sql.ANNOUNCE_JOB, {
          name,
          queue,
          priority,
          version,
          policy: this.#policy(policy),
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
    const first = firstOfEachKey(runs);
    const storing = this.#write("enqueue", (now) => {
      const holders: KeyHolder[] = [];
      const fresh: store.NewRun[] = [];
      const chosen = new Set(first.values());
      for (const run of runs) {
        if (run.key === null) fresh.push(run);
        else if (chosen.has(run)) {
          const holder = this.#takeKey(run, run.key, now);
          holders.push(holder);
          if (holder.run === run.id) fresh.push(run);
        }
      }
      const answers = answersOf(runs, holders);
      if (isAtomic && answers.some((answer) => "conflict" in answer)) throw new Refused(answers);
      this.#insert(fresh, now);
      return answers;
    });
    return storing.catch((error: unknown) => {
      if (error instanceof Refused) return error.answers;
      throw error;
    });
  }

  async exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    return this.#write("exchange", (now) => {
      const stale = params.settlements.length === 0 ? [] : this.#settle(params.settlements, now);
      if (params.limit > 0) this.#claim(params, now);
      const claims = params.limit > 0 ? this.#claimsByToken(params, now) : [];
      return { claims, stale };
    });
  }

  async claimsByToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly store.Claim[]> {
    return this.#file.read(() => this.#claimsByToken(params, this.#databaseNow()));
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
      const leases = this.#leases(grants.map(({ fence }) => fence));
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
        const modes = this.#modesOf(lease.ids);
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
      this.#enter(books, now);
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
        const modes = this.#modesOf(lease.ids);
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
        this.#shrink(lease.fence, ids, new Set(overdue));
      }
      this.#enter(books, now);
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

  // ── settle and claim ───────────────────────────────────────────────────────────────────────────

  #settle(settlements: readonly store.Settlement[], now: number): store.Grant[] {
    const leases = this.#leases(settlements.map(({ fence }) => fence));
    const books = new Books();
    const stale: store.Grant[] = [];
    const settled = new Map<number, Set<RunId>>();
    for (const settlement of settlements) {
      const { id, fence } = settlement;
      const lease = leases.get(fence);
      if (settled.get(fence)?.has(id)) continue;
      if (!lease?.members.has(id)) {
        if (!this.#wasApplied(settlement)) stale.push({ id, fence });
        continue;
      }
      settled.set(fence, (settled.get(fence) ?? new Set()).add(id));
      books.settle(lease.row, settlement, lease.cancels.has(id));
    }
    for (const [fence, ids] of settled) {
      this.#shrink(fence, [...(leases.get(fence)?.members ?? [])], ids);
    }
    this.#enter(books, now);
    return stale;
  }

  /** What was applied before, its answer lost, is not stale; only history can tell. */
  #wasApplied(settlement: store.Settlement): boolean {
    const { id, fence } = settlement;
    const ending = this.#file.get(sql.ENDING, { id, fence });
    const error = (ending?.error ?? null) as string | null;
    return ending !== undefined && isSameEnd(settlement, { ended: Number(ending.ended), error });
  }

  #leases(fences: readonly number[]) {
    const rows = this.#file.all(sql.LEASES, { fences: JSON.stringify([...new Set(fences)]) });
    return new Map(
      rows.map((each) => {
        const row = each as unknown as LeaseRow;
        const members = new Set(JSON.parse(row.ids) as RunId[]);
        const cancels = new Set(Object.keys(JSON.parse(row.cancels ?? "{}") as object));
        return [row.fence, { row, members, cancels }];
      }),
    );
  }

  #shrink(fence: number, ids: readonly RunId[], gone: ReadonlySet<RunId>): void {
    if (gone.size === 0) return;
    const left = ids.filter((id) => !gone.has(id));
    if (left.length === 0) this.#file.run(sql.DELETE_LEASE, { fence });
    else this.#file.run(sql.SHRINK_LEASE, { fence, ids: JSON.stringify(left) });
  }

  #claim(
    { holder, token, jobs, queues, limit, wantsSuspect }: store.ExchangeParams,
    now: number,
  ): void {
    const suspect = wantsSuspect ? 1 : 0;
    let left = wantsSuspect ? Math.min(limit, 1) : limit;
    const heads = this.#file.all(sql.HEADS, {
      suspect,
      jobs: JSON.stringify(jobs),
      queues: queues && JSON.stringify(queues),
    });
    for (const { lane } of heads) {
      if (left === 0) return;
      const taken = this.#file.get(sql.READY_ROWS, { lane, suspect, limit: left })?.rows;
      const rows = JSON.parse(String(taken)) as [RunId, ...number[]][];
      const last = rows.at(-1);
      if (!last) continue;
      this.#file.run(sql.DELETE_READY, { lane, suspect, sortAt: last[1], id: last[0] });
      left -= rows.length;
      for (const { ids, policy, attempt, losses, refunds, laters, extra } of groupsOf(rows)) {
        this.#file.get(sql.INSERT_LEASE, {
          holder,
          token,
          lane,
          policy,
          losses,
          refunds,
          laters,
          extra,
          suspect,
          now,
          attempt: attempt + 1,
          ids: JSON.stringify(ids),
        });
      }
    }
  }

  #claimsByToken(
    { holder, token }: { readonly holder: number; readonly token: string },
    now: number,
  ): store.Claim[] {
    return this.#file
      .all(sql.CLAIMED, { holder, token, now })
      .map((row) => toClaim(JSON.parse(String(row.claim)) as Parameters<typeof toClaim>[0]));
  }

  #modesOf(ids: string): Map<RunId, number> {
    return new Map(
      this.#file.all(sql.MODES_OF, { ids }).map((row) => [String(row.id), Number(row.mode)]),
    );
  }

  #enter(books: Books, now: number): void {
    const { finished, counted, attempts, pending } = books.rows();
    if (finished.length > 0) {
      this.#file.run(sql.INSERT_OUTCOMES, { rows: JSON.stringify(finished), now });
      this.#file.run(sql.COUNT_OUTCOMES, { rows: JSON.stringify(counted), now });
    }
    if (attempts.length > 0)
      this.#file.run(sql.INSERT_ATTEMPTS, { rows: JSON.stringify(attempts), now });
    if (pending.length > 0) {
      const rows = JSON.stringify(pending);
      this.#file.run(sql.INSERT_WAITING, { rows, now });
      this.#file.run(sql.INSERT_READY, { rows, now });
    }
  }

  // ── enqueue ────────────────────────────────────────────────────────────────────────────────────

  #takeKey(run: store.NewRun, key: store.NewKey, now: number): KeyHolder {
    const { job } = run;
    this.#file.run(sql.TAKE_KEY, { job, key: key.key, run: run.id, inputHash: key.inputHash, now });
    const holder = this.#file.get(sql.KEY_HOLDER, { job, key: key.key }) as Row;
    return { id: run.id, run: String(holder.run), inputHash: String(holder.input_hash) };
  }

  #insert(runs: readonly store.NewRun[], now: number): void {
    const rows = runs.map((run) => [
      run.id,
      run.dueAt ?? now + run.delayMs,
      this.#lane(run.queue, run.job),
      this.#policy(run.policy),
      run.version,
      run.priority,
      modeCode(run.mode),
      run.key?.key ?? null,
      run.tags.length === 0 ? null : JSON.stringify(run.tags),
      run.input,
    ]);
    const isStored = this.#insertRows(rows, now);
    const ready: unknown[] = [];
    const delayed: unknown[] = [];
    for (const [id, dueAt, lane, policy, , priority] of rows as [
      RunId,
      number,
      number,
      number,
      number,
      number,
    ][]) {
      if (!isStored(id)) continue;
      if (dueAt <= now) ready.push([id, dueAt - priority * PRIORITY_STEP_MS, lane, policy]);
      else delayed.push([id, dueAt, lane, policy, priority]);
    }
    if (ready.length > 0) this.#file.run(sql.READY_NEW_RUNS, { rows: JSON.stringify(ready) });
    if (delayed.length > 0) this.#file.run(sql.DELAY_NEW_RUNS, { rows: JSON.stringify(delayed) });
  }

  /** Answers which of the rows are new; as ids are made once, that is nearly always all of them. */
  #insertRows(rows: readonly unknown[], now: number): (id: RunId) => boolean {
    const params = { rows: JSON.stringify(rows), now };
    try {
      this.#file.run(sql.INSERT_RUNS, params);
      return () => true;
    } catch (error) {
      if (sqliteCode(error) !== CONSTRAINT) throw error;
      const stored = new Set(this.#file.all(sql.INSERT_MISSING_RUNS, params).map((row) => row.id));
      return (id) => stored.has(id);
    }
  }

  #lane(queue: string, job: string): number {
    const key = `${queue}\n${job}`;
    const known = this.#lanes.get(key);
    return known ?? this.#remembered(this.#lanes, key, sql.ENSURE_LANE, { queue, job });
  }

  #policy(policy: Policy): number {
    const known = this.#policies.get(policy);
    if (known !== undefined) return known;
    const { leaseMs, timeoutMs, retry, onLost } = policy;
    return this.#remembered(this.#policies, policy, sql.ENSURE_POLICY, {
      digest: policyDigest(policy),
      leaseMs,
      timeoutMs,
      ...retry,
      onLost: ON_LOST.indexOf(onLost),
    });
  }

  /** Remembered only once committed: an id from a transaction that was rolled back is nobody's. */
  #remembered<Key>(known: Cache<Key>, key: Key, template: string, params: Row): number {
    const id = Number(this.#file.get(template, params)?.id);
    this.#toRemember.push(() => known.set(key, id));
    return id;
  }

  #toRemember: (() => void)[] = [];

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
    let toRemember: (() => void)[] = [];
    const value = await this.#file.write(what, () => {
      toRemember = [];
      this.#toRemember = toRemember;
      return work(this.#databaseNow());
    });
    for (const remember of toRemember) remember();
    return value;
  }
}

type Cache<Key> = { set(key: Key, id: number): unknown };

/** The smallest UUIDv7 of a moment, as far as sorting needs it. */
function firstIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** Rolls a batch back that is to be stored whole or not at all. */
class Refused extends Error {
  constructor(readonly answers: readonly store.EnqueueAnswer[]) {
    super("refused");
  }
}

/** Rows of one lane by what a lease has in common, in the order in which they were ready. */
function groupsOf(rows: readonly [RunId, ...number[]][]) {
  const groups = new Map<
    string,
    {
      ids: RunId[];
      policy: number;
      attempt: number;
      losses: number;
      refunds: number;
      laters: number;
      extra: number;
    }
  >();
  for (const [id, , ...common] of rows) {
    const key = common.join();
    const group = groups.get(key);
    if (group) group.ids.push(id);
    else {
      const [policy, attempt, losses, refunds, laters, extra] = common as [
        number,
        number,
        number,
        number,
        number,
        number,
      ];
      groups.set(key, { ids: [id], policy, attempt, losses, refunds, laters, extra });
    }
  }
  return groups.values();
}
