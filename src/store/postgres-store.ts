// The store on PostgreSQL: every verb is one statement on one of two connections. `work` carries
// enqueues and exchanges, `beat` renewals, polls and the reaper, and listens; a second exchange at
// the same time goes to whichever is less busy (docs/decisions/0002-two-connections.md).

import { MigrationError, OutcomeUnknownError, StoreUnavailableError } from "../core/errors.js";
import { type Clock, delay } from "../core/ports.js";
import { ATTEMPT_ENDS, MODES, ON_LOST, type Policy, type RunId } from "../core/run.js";
import { resolveKeys, type KeyHolder } from "./keys.js";
import {
  inTransaction, isWorthRepeating, LinkFailure, PostgresLink, type PostgresSource, type Row, unavailable,
} from "./postgres.js";
import {
  modeCode, policyDigest, statusOf, toAttemptRecord, toClaim, toPolicy, toRunRecord, toSettlementRow,
} from "./record.js";
import * as sql from "./sql/postgres.js";
import { CREATE_SCHEMA, PARTITIONED, SCHEMA_VERSION } from "./sql/postgres-schema.js";
import { type Dialect, fillIn, numbered, type Statement } from "./sql/template.js";
import type * as store from "./store.js";

const DATABASE_CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
const DAY_MS = 86_400_000;
const DAYS_AHEAD = 3;
/** How long a verb that may be repeated is repeated before its caller hears of it. */
const PATIENCE_MS = 30_000;

export type PostgresStoreParams = {
  readonly source: PostgresSource;
  readonly schema: string;
  readonly clock: Clock;
  readonly migrate: "auto" | "check" | "off";
  /** Tests supply the database's time; production never does. */
  readonly now?: () => number;
};

export class PostgresStore implements store.Store {
  readonly engine = "postgres";
  readonly #source: PostgresSource;
  readonly #schema: string;
  readonly #clock: Clock;
  readonly #migrate: "auto" | "check" | "off";
  readonly #now: (() => number) | undefined;
  readonly #dialect: Dialect;
  readonly #statements = new Map<string, Statement & { readonly name: string }>();
  readonly #lanes = new Map<string, Promise<number>>();
  readonly #policies = new Map<string, Promise<number>>();
  readonly #listeners = new Set<store.WakeListener>();
  readonly #work: PostgresLink;
  readonly #beat: PostgresLink;
  #isClosed = false;

  constructor({ source, schema, clock, migrate, now }: PostgresStoreParams) {
    this.#source = source;
    this.#schema = schema;
    this.#clock = clock;
    this.#migrate = migrate;
    this.#now = now;
    this.#dialect = {
      name: (plain) => `"${schema}".${plain}`,
      now: now ? ":now::bigint" : DATABASE_CLOCK,
    };
    const onNotice = () => {
      for (const listener of this.#listeners) listener();
    };
    this.#work = new PostgresLink({ source, listenTo: null, onNotice });
    this.#beat = new PostgresLink({ source, listenTo: this.#channel, onNotice });
  }

  get #channel(): string {
    return `holdfast_${this.#schema}`;
  }

  async open(): Promise<void> {
    try {
      if ((await this.#version()) === null) await this.#createSchema();
      const version = await this.#version();
      if (version === null || version.minCompatible > SCHEMA_VERSION) {
        throw new MigrationError(
          version === null
            ? `The schema "${this.#schema}" has no Holdfast tables; run \`holdfast migrate\` or set migrate: "auto".`
            : `The tables are of version ${version.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`,
        );
      }
      if (this.#migrate === "auto") await this.#makePartitions();
    } catch (error) {
      if (error instanceof MigrationError) throw error;
      throw unavailable(this.#source, error instanceof LinkFailure ? error.cause : error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#work.close(), this.#beat.close()]);
  }

  async announce(params: store.InstanceAnnouncement): Promise<number> {
    for (const job of params.jobs) {
      const policy = await this.#policyId(job.policy);
      await this.#lane(job.queue, job.name);
      const { name, queue, priority, version } = job;
      await this.#repeat(sql.ANNOUNCE_JOB, { name, queue, priority, version, policy });
    }
    const [row] = await this.#repeat(sql.ANNOUNCE_INSTANCE, {
      instanceId: params.instanceId,
      app: params.app,
      release: params.release,
      jobs: JSON.stringify(params.jobs.map((job) => job.name)),
    });
    return Number(row?.no);
  }

  async announcedJob(name: string): Promise<store.JobAnnouncement | null> {
    return (await this.announcedJobs()).find((job) => job.name === name) ?? null;
  }

  async announcedJobs(): Promise<readonly store.JobAnnouncement[]> {
    const rows = await this.#repeat(sql.ANNOUNCED_JOBS, {});
    return rows.map((row) => ({
      name: String(row.name),
      queue: String(row.queue),
      priority: Number(row.priority),
      version: Number(row.version),
      policy: toPolicy(row.policy as number[]),
    }));
  }

  async retire({ holder }: { readonly holder: number }): Promise<void> {
    await this.#once(this.#beat, sql.RETIRE_INSTANCE, { holder });
  }

  async enqueue(runs: readonly store.NewRun[]): Promise<readonly store.EnqueueAnswer[]> {
    const rows = await Promise.all(runs.map((run) => this.#enqueueRow(run)));
    if (runs.every((run) => run.key === null)) {
      await this.#storeOnce(rows);
      return runs.map(({ id }) => ({ id, deduplicated: false }));
    }
    return resolveKeys(runs, async (fresh) => {
      const isFresh = new Set(fresh.map((run) => run.id));
      const chosen = rows.filter((row) => isFresh.has(String(row.id)));
      return this.#storeKeyed(chosen);
    });
  }

  async exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    const link = this.#beat.inFlight < this.#work.inFlight ? this.#beat : this.#work;
    const [row] = await this.#once(link, sql.EXCHANGE, {
      settlements: JSON.stringify(params.settlements.map(toSettlementRow)),
      holder: params.holder,
      shard: params.holder * 2 + (link === this.#beat ? 1 : 0),
      token: params.token,
      jobs: params.jobs,
      queues: params.queues,
      limit: params.limit,
      suspect: params.wantsSuspect,
    });
    return {
      claims: claimsOf(row),
      stale: ((row?.stale ?? []) as [string, number][]).map(([id, fence]) => ({ id, fence })),
    };
  }

  async claimsByToken(params: { readonly holder: number; readonly token: string }): Promise<readonly store.Claim[]> {
    const [row] = await this.#repeat(sql.CLAIMS_BY_TOKEN, params);
    return claimsOf(row);
  }

  async renew({ holder, fences }: { readonly holder: number; readonly fences: readonly number[] }): Promise<store.RenewAnswer> {
    const [row] = await this.#once(this.#beat, sql.RENEW, { holder, fences });
    const held = (row?.held ?? []) as [number, number, string[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }

  async markStarted(grants: readonly store.Grant[]): Promise<readonly store.Grant[]> {
    const rows = await this.#repeat(sql.MARK_STARTED, { grants: JSON.stringify(grants) });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async poll(params: store.Appetite & { readonly holder: number }): Promise<store.PollAnswer> {
    const [row = {}] = await this.#once(this.#beat, sql.POLL, params);
    return {
      now: Number(row.now),
      hasReady: row.hasReady === true,
      hasSuspect: row.hasSuspect === true,
      hasDue: row.hasDue === true,
      hasExpired: row.hasExpired === true,
      cancelRequested: (row.cancelRequested ?? []) as RunId[],
      nextWakeAt: row.nextWakeAt === null ? null : Number(row.nextWakeAt),
    };
  }

  async promote({ limit }: { readonly limit: number }): Promise<number> {
    const statement = this.#statement(sql.PROMOTE);
    const { rowCount } = await this.#beat.query({ ...statement, values: this.#values(statement, { limit }) });
    return rowCount;
  }

  async reclaim(params: { readonly limit: number; readonly chance: number }): Promise<readonly store.Reclaimed[]> {
    const rows = await this.#once(this.#beat, sql.RECLAIM, params);
    return rows.map((row) => ({
      id: String(row.id),
      fence: Number(row.fence),
      job: String(row.job),
      attempt: Number(row.attempt),
      holder: String(row.holder),
      end: ATTEMPT_ENDS[Number(row.ended)] as "lost" | "timeout",
      to: Number(row.verdict) < 0 ? "pending" : statusOf(Number(row.verdict)),
    }));
  }

  async enforceCancels(params: { readonly graceMs: number }): Promise<readonly store.Grant[]> {
    const rows = await this.#once(this.#beat, sql.ENFORCE_CANCELS, params);
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async cancel({ id }: { readonly id: RunId }): Promise<store.CancelAnswer> {
    return this.#untilSettled(async () => {
      const [row = {}] = await this.#repeat(sql.CANCEL, { id });
      if (row.cancelled) return "cancelled";
      if (row.requested) return "requested";
      if (row.terminal) return "already_terminal";
      return row.known ? null : "not_found";
    });
  }

  async retry({ id }: { readonly id: RunId }): Promise<store.RetryAnswer> {
    const [row = {}] = await this.#repeat(sql.RETRY, { id });
    if (row.reopened) return "pending";
    if (!row.known) return "not_found";
    return row.status === null ? "not_terminal" : "completed";
  }

  async remove({ id }: { readonly id: RunId }): Promise<"removed" | "not_terminal" | "not_found"> {
    const [row = {}] = await this.#repeat(sql.REMOVE, { id });
    if (row.removed) return "removed";
    return row.known ? "not_terminal" : "not_found";
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const [row] = await this.#repeat(sql.GET_RUN, { id });
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const rows = await this.#repeat(sql.LIST_RUNS[filter.status ?? "any"], {
      before: filter.before ?? null,
      job: filter.job ?? null,
      mode: filter.mode === undefined ? null : MODES.indexOf(filter.mode),
      tag: filter.tag ?? null,
      text: filter.text ?? null,
      limit: filter.limit,
    });
    return rows.map(toRunRecord);
  }

  async attempts(id: RunId): Promise<readonly store.AttemptRecord[]> {
    return (await this.#repeat(sql.ATTEMPTS, { id })).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    return (await this.#repeat(sql.TERMINAL, { ids })).map((row) => String(row.id));
  }

  async pauseQueue(params: { readonly queue: string; readonly isPaused: boolean }): Promise<void> {
    await this.#repeat(sql.PAUSE_QUEUE, params);
  }

  /** History goes by whole days, so `limit` bounds only what is removed row by row. */
  async prune({ keepMs, limit }: { readonly keepMs: number; readonly limit: number }): Promise<number> {
    await this.#makePartitions();
    const dropped = await this.#dropPartitions(keepMs);
    const [row] = await this.#repeat(sql.PRUNE, { keepMs, limit });
    return dropped + Number(row?.pruned ?? 0);
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    // Right behind the enqueue on the same connection: sent after its commit, without waiting for it.
    this.#work.query({ text: `notify "${this.#channel}"` }).catch(() => undefined);
  }

  // ── enqueue ────────────────────────────────────────────────────────────────────────────────────

  async #enqueueRow(run: store.NewRun): Promise<Row> {
    const lane = await this.#lane(run.queue, run.job);
    const policy = await this.#policyId(run.policy);
    return {
      id: run.id,
      lane,
      policy,
      version: run.version,
      priority: run.priority,
      mode: modeCode(run.mode),
      dueAt: run.dueAt,
      delayMs: run.delayMs,
      tags: run.tags.length === 0 ? null : run.tags,
      input: run.input,
      job: run.job,
      key: run.key?.key,
      inputHash: run.key?.inputHash,
    };
  }

  /** A duplicate id means that these very rows were committed before and the answer was lost. */
  async #storeOnce(rows: readonly Row[]): Promise<void> {
    let isRepeat = false;
    await this.#patiently("enqueue", async () => {
      try {
        await this.#once(this.#work, sql.ENQUEUE, { runs: JSON.stringify(rows) });
      } catch (error) {
        if (isRepeat && error instanceof LinkFailure && error.code === "23505") return;
        isRepeat = true;
        throw error;
      }
    });
  }

  /**
   * Keyed runs are all stored or none, also when one of their keys is taken by another input; so
   * they are written in a transaction that looks at the keys before it commits.
   */
  async #storeKeyed(rows: readonly Row[]): Promise<readonly KeyHolder[]> {
    const keyless = rows.filter((row) => row.key === undefined);
    const keyed = rows.filter((row) => row.key !== undefined);
    const keys = JSON.stringify(keyed.map((row, at) => ({ at, job: row.job, key: row.key })));
    return this.#patiently("enqueue", () =>
      inTransaction(this.#source, async (query) => {
        const ask = (template: string, params: Row) => {
          const statement = this.#statement(template);
          return query(statement.text, this.#values(statement, params));
        };
        await ask(sql.ENQUEUE_KEYED, { runs: JSON.stringify(keyed) });
        const holders = (await ask(sql.KEY_HOLDERS, { keys })).map((row) => ({
          id: String(keyed[Number(row.at)]?.id),
          run: String(row.run),
          inputHash: String(row.input_hash),
        }));
        if (keyless.length > 0) await ask(sql.ENQUEUE, { runs: JSON.stringify(keyless) });
        return holders;
      }),
    );
  }

  #lane(queue: string, job: string): Promise<number> {
    return this.#remembered(this.#lanes, JSON.stringify([queue, job]), sql.ENSURE_LANE, { queue, job });
  }

  #policyId(policy: Policy): Promise<number> {
    const { leaseMs, timeoutMs, retry } = policy;
    const digest = policyDigest(policy);
    return this.#remembered(this.#policies, digest, sql.ENSURE_POLICY, {
      digest, leaseMs, timeoutMs, ...retry, onLost: ON_LOST.indexOf(policy.onLost),
    });
  }

  #remembered(known: Map<string, Promise<number>>, key: string, template: string, params: Row): Promise<number> {
    let id = known.get(key);
    if (!id) {
      id = this.#repeat(template, params).then(([row]) => Number(row?.id));
      id.catch(() => known.delete(key));
      known.set(key, id);
    }
    return id;
  }

  // ── schema ─────────────────────────────────────────────────────────────────────────────────────

  async #version(): Promise<{ version: number; minCompatible: number } | null> {
    const table = `${this.#dialect.name("schema_version")}`;
    const { rows } = await this.#work.query({ text: `select to_regclass('${table}') is not null as known` });
    if (rows[0]?.known !== true) return null;
    const found = await this.#work.query({ text: `select version, min_compatible from ${table}` });
    const row = found.rows[0];
    return row ? { version: Number(row.version), minCompatible: Number(row.min_compatible) } : null;
  }

  async #createSchema(): Promise<void> {
    if (this.#migrate !== "auto") return;
    await inTransaction(this.#source, async (query) => {
      await query("set local lock_timeout = '20s'");
      await query("select pg_advisory_xact_lock(hashtext($1))", [`holdfast:${this.#schema}`]);
      const [row] = await query(`select to_regclass('${this.#dialect.name("schema_version")}') is not null as known`);
      if (row?.known === true) return;
      await query(`create schema if not exists "${this.#schema}"`);
      await query(fillIn(CREATE_SCHEMA, this.#dialect));
      await query(
        `insert into ${this.#dialect.name("schema_version")} values (${SCHEMA_VERSION}, ${SCHEMA_VERSION}, ${DATABASE_CLOCK})`,
      );
    });
  }

  /** Days are attached one by one, and only where missing: attaching takes no lock that stops claims. */
  async #makePartitions(): Promise<void> {
    const today = Math.floor((await this.#databaseNow()) / DAY_MS);
    const days = Array.from({ length: DAYS_AHEAD }, (_, ahead) => today + ahead);
    const { rows } = await this.#beat.query({ text: fillIn(sql.PARTITIONS, this.#dialect), values: [this.#schema] });
    const known = new Set(rows.map((row) => String(row.name)));
    const missing = days.flatMap((day) => PARTITIONED.map((table) => ({ table, day }))).filter(
      ({ table, day }) => !known.has(partitionName(table, day)),
    );
    if (missing.length === 0) return;
    await inTransaction(this.#source, async (query) => {
      await query("set local lock_timeout = '5s'");
      await query("select pg_advisory_xact_lock(hashtext($1))", [`holdfast:${this.#schema}`]);
      for (const { table, day } of missing) {
        const name = this.#dialect.name(partitionName(table, day));
        await query(
          `create table if not exists ${name} partition of ${this.#dialect.name(table)}
           for values from ('${firstIdOf(day)}') to ('${firstIdOf(day + 1)}')`,
        );
      }
    });
  }

  /** A day goes as a whole; what of it still lives moves to the rest partition first. */
  async #dropPartitions(keepMs: number): Promise<number> {
    const now = await this.#databaseNow();
    const oldest = Math.floor((now - keepMs) / DAY_MS) - 1;
    const { rows } = await this.#beat.query({ text: fillIn(sql.PARTITIONS, this.#dialect), values: [this.#schema] });
    const days = new Set<number>();
    for (const row of rows) {
      const [, day] = /^run_day_(\d+)$/.exec(String(row.name)) ?? [];
      if (day !== undefined && Number(day) <= oldest) days.add(Number(day));
    }
    for (const day of days) await this.#dropDay(day);
    return days.size;
  }

  async #dropDay(day: number): Promise<void> {
    await inTransaction(this.#source, async (query) => {
      await query("set local lock_timeout = '5s'");
      for (const text of sql.dropDay(PARTITIONED.map((table) => ({ table, day: partitionName(table, day) })))) {
        await query(fillIn(text, this.#dialect));
      }
    });
  }

  async #databaseNow(): Promise<number> {
    if (this.#now) return this.#now();
    const { rows } = await this.#beat.query({ text: `select ${DATABASE_CLOCK} as now` });
    return Number(rows[0]?.now);
  }

  // ── asking ─────────────────────────────────────────────────────────────────────────────────────

  #statement(template: string): Statement & { readonly name: string } {
    let statement = this.#statements.get(template);
    if (!statement) {
      const filled = numbered(template, this.#dialect);
      statement = { ...filled, name: `holdfast_${digest(filled.text)}` };
      this.#statements.set(template, statement);
    }
    return statement;
  }

  #values(statement: Statement, params: Row): unknown[] {
    return statement.parameters.map((name) => (name === "now" ? this.#now?.() : params[name]));
  }

  /** One try: the caller decides what a lost answer means. */
  async #once(link: PostgresLink, template: string, params: Row): Promise<Row[]> {
    const statement = this.#statement(template);
    const { name, text } = statement;
    return (await link.query({ name, text, values: this.#values(statement, params) })).rows;
  }

  /** For reads and for statements that change nothing more when they are repeated. */
  #repeat(template: string, params: object): Promise<Row[]> {
    return this.#patiently("a statement", () => this.#once(this.#work, template, params as Row));
  }

  async #patiently<T>(what: string, ask: () => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonicMs();
    let wasUnknown = false;
    for (let tries = 1; ; tries += 1) {
      try {
        return await ask();
      } catch (error) {
        if (error instanceof LinkFailure) wasUnknown ||= !error.isCertain;
        const isOver = this.#isClosed || this.#clock.monotonicMs() - startedAt > PATIENCE_MS;
        if (!isWorthRepeating(asFailure(error))) throw error instanceof LinkFailure ? error.cause : error;
        if (isOver) {
          throw wasUnknown
            ? new OutcomeUnknownError(what, { cause: error })
            : new StoreUnavailableError({ tried: what, cause: error });
        }
        await delay(this.#clock, Math.min(1_000, 20 * 2 ** Math.min(tries, 6)));
      }
    }
  }

  /** A run that is moving from one table to the next is looked at again. */
  async #untilSettled<T>(look: () => Promise<T | null>): Promise<T> {
    for (let tries = 1; tries <= 100; tries += 1) {
      const answer = await look();
      if (answer !== null) return answer;
      await delay(this.#clock, tries);
    }
    throw new OutcomeUnknownError("cancel");
  }
}

function claimsOf(row: Row | undefined): readonly store.Claim[] {
  return ((row?.claims ?? []) as Parameters<typeof toClaim>[0][]).map(toClaim);
}

/** Errors of a transaction come from the driver as they are; a code tells what the server said. */
function asFailure(error: unknown): unknown {
  if (error instanceof LinkFailure) return error;
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  if (typeof code !== "string") {
    return error instanceof Error && /Connection terminated|closed|timeout/i.test(error.message)
      ? new LinkFailure(error, "UNKNOWN", false)
      : error;
  }
  return new LinkFailure(error, code, severity === "ERROR");
}

function partitionName(table: string, day: number): string {
  return `${table}_day_${day}`;
}

/** The smallest UUIDv7 of a day. */
function firstIdOf(day: number): string {
  const hex = (day * DAY_MS).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

function digest(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let at = 0; at < text.length; at += 1) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x100000001b3n);
  }
  return hash.toString(36);
}
