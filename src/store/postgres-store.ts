// The store on PostgreSQL: every verb is one statement on one of two connections. `work` carries
// enqueues and exchanges, `beat` renewals, polls and the reaper, and listens; a second exchange at
// the same time goes to whichever is less busy (docs/decisions/0002-two-connections.md).

import { MigrationError, OutcomeUnknownError, StoreUnavailableError } from "../core/errors.js";
import { type Clock, delay } from "../core/ports.js";
import { ATTEMPT_ENDS, MODES, ON_LOST, type Policy, type RunId } from "../core/run.js";
import { answersOf, firstOfEachKey, type KeyHolder } from "./keys.js";
import {
  checkPool,
  inTransaction,
  isWorthRepeating,
  LinkFailure,
  PostgresLink,
  type PostgresSource,
  type Query,
  type Row,
  unavailable,
} from "./postgres.js";
import { plainArray, textArray } from "./postgres-array.js";
import { ClaimBound, FROM_THE_START } from "./postgres-bound.js";
import { dropDays, firstDays, makeDays } from "./postgres-days.js";
import {
  isSameEnd,
  modeCode,
  policyDigest,
  statusOf,
  toAttemptRecord,
  toClaim,
  toPolicy,
  toRunRecord,
  toSettlementRow,
} from "./record.js";
import * as sql from "./sql/postgres.js";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "./sql/postgres-schema.js";
import { type Dialect, fillIn, numbered, type Statement } from "./sql/template.js";
import type * as store from "./store.js";

const DATABASE_CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
const UNIQUE_VIOLATION = "23505";
const COMPLETED = 1;
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
  readonly #lanes = new Map<string, number>();
  /** By identity first, which is fast: a policy is usually made once with its job. */
  readonly #policies = new WeakMap<Policy, number>();
  readonly #policiesByDigest = new Map<string, number>();
  readonly #listeners = new Set<store.WakeListener>();
  readonly #work: PostgresLink;
  readonly #beat: PostgresLink;
  readonly #bound: ClaimBound;
  #isClosed = false;

  constructor({ source, schema, clock, migrate, now }: PostgresStoreParams) {
    this.#source = source;
    this.#schema = schema;
    this.#clock = clock;
    this.#bound = new ClaimBound(clock);
    this.#migrate = migrate;
    this.#now = now;
    this.#dialect = {
      name: (plain) => `"${schema}".${plain}`,
      now: now ? ":now::bigint" : DATABASE_CLOCK,
    };
    const onNotice = () => {
      for (const listener of this.#listeners) listener();
    };
    this.#work = new PostgresLink({ source, clock, listenTo: null, onNotice });
    this.#beat = new PostgresLink({ source, clock, listenTo: this.#channel, onNotice });
  }

  get #channel(): string {
    return `holdfast_${this.#schema}`;
  }

  async open(): Promise<void> {
    checkPool(this.#source);
    try {
      if ((await this.#version()) === null) await this.#createSchema();
      const version = await this.#version();
      if (version === null || version.minCompatible > SCHEMA_VERSION) {
        throw new MigrationError(
          version === null
            ? `The schema "${this.#schema}" has no Holdfast tables; run \`holdfast migrate\` or set migrate: "auto".`
            : `The tables are of version ${version.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`,
          version?.version ?? null,
        );
      }
      if (this.#migrate === "auto") await makeDays(await this.#days());
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
    await Promise.all(
      params.jobs.map(async ({ name, queue, priority, version, policy }) => {
        const [id] = await Promise.all([this.#policyId(policy), this.#lane(queue, name)]);
        await this.#repeat("announce", sql.ANNOUNCE_JOB, {
          name,
          queue,
          priority,
          version,
          policy: id,
        });
      }),
    );
    const [row] = await this.#repeat("announce", sql.ANNOUNCE_INSTANCE, {
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
    const rows = await this.#repeat("announcedJobs", sql.ANNOUNCED_JOBS, {});
    return rows.map((row) => ({
      name: String(row.name),
      queue: String(row.queue),
      priority: Number(row.priority),
      version: Number(row.version),
      policy: toPolicy(row.policy as number[]),
    }));
  }

  async retire({ holder }: { readonly holder: number }): Promise<void> {
    await this.#try("retire", this.#beat, sql.RETIRE_INSTANCE, { holder });
  }

  async enqueue(params: store.EnqueueParams): Promise<readonly store.EnqueueAnswer[]> {
    const { runs } = params;
    await this.#rememberAll(runs);
    const rows = runs.map((run) => this.#enqueueRow(run));
    const isKeyless = runs.every((run) => run.key === null);
    const answers = isKeyless
      ? this.#storeOnce(rows).then(() => runs.map(({ id }) => ({ id, deduplicated: false })))
      : this.#storeKeyed(runs, rows, params.isAtomic);
    // Right behind the enqueue on the same connection: it arrives after the commit, at no extra wait.
    // What takes several statements, or a transaction of its own, is not committed by then.
    if (params.tellsOthers && isKeyless) this.wake();
    else if (params.tellsOthers) answers.then(() => this.wake()).catch(() => undefined);
    return answers;
  }

  async exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    const link = this.#beat.inFlight < this.#work.inFlight ? this.#beat : this.#work;
    const { holder, token, jobs, queues, wantsSuspect } = params;
    const limit = wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    const appetite = `${wantsSuspect} ${queues} ${jobs}`;
    const low = this.#bound.low(appetite);
    const [row] = await this.#try("exchange", link, exchangeText(params.settlements), {
      ...settlementArrays(onceEach(params.settlements)),
      holder,
      token,
      jobs,
      queues,
      limit,
      low,
      shard: holder * 2 + (link === this.#beat ? 1 : 0),
      suspect: wantsSuspect,
    });
    const unapplied = ((row?.unapplied ?? []) as [string, number][]).map(([id, fence]) => ({
      id,
      fence,
    }));
    const stale = await this.#staleAmong(unapplied, params.settlements);
    const claims = claimsOf(row);
    const count = claims.reduce((sum, { runs }) => sum + runs.length, 0);
    const head = row?.head === null || row?.head === undefined ? null : String(row.head);
    if (limit > 0) this.#bound.saw({ appetite, low, limit, count, head });
    if (count === limit || low === FROM_THE_START) return { claims, stale };
    const rest = await this.exchange({ ...params, settlements: [], limit: limit - count });
    return { claims: [...claims, ...rest.claims], stale };
  }

  /** What was applied before, its answer lost, is not stale; only history can tell. */
  async #staleAmong(
    unapplied: readonly store.Grant[],
    settlements: readonly store.Settlement[],
  ): Promise<readonly store.Grant[]> {
    if (unapplied.length === 0) return [];
    const rows = await this.#repeat("exchange", sql.ENDINGS, { grants: JSON.stringify(unapplied) });
    const endings = new Map(rows.map((row) => [`${row.id} ${row.fence}`, row]));
    const sent = new Map(settlements.map((each) => [`${each.id} ${each.fence}`, each]));
    return unapplied.filter(({ id, fence }) => {
      const ending = endings.get(`${id} ${fence}`);
      const settlement = sent.get(`${id} ${fence}`);
      const error = (ending?.error ?? null) as string | null;
      return !(
        ending &&
        settlement &&
        isSameEnd(settlement, { ended: Number(ending.ended), error })
      );
    });
  }

  async claimsByToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly store.Claim[]> {
    const [row] = await this.#repeat("claimsByToken", sql.CLAIMS_BY_TOKEN, params);
    return claimsOf(row);
  }

  async renew({ holder, fences, timeoutMs }: store.RenewParams): Promise<store.RenewAnswer> {
    const [row] = await this.#try("renew", this.#beat, sql.RENEW, { holder, fences }, timeoutMs);
    const held = (row?.held ?? []) as [number, number, string[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }

  async markStarted(grants: readonly store.Grant[]): Promise<readonly store.Grant[]> {
    const rows = await this.#repeat("markStarted", sql.MARK_STARTED, {
      grants: JSON.stringify(grants),
    });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async poll(params: store.Appetite & { readonly holder: number }): Promise<store.PollAnswer> {
    const [row = {}] = await this.#try("poll", this.#beat, sql.POLL, params);
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
    const [row] = await this.#try("promote", this.#beat, sql.PROMOTE, { limit });
    return Number(row?.promoted);
  }

  async reclaim(params: {
    readonly limit: number;
    readonly chance: number;
  }): Promise<readonly store.Reclaimed[]> {
    const rows = await this.#try("reclaim", this.#beat, sql.RECLAIM, params);
    return rows.map((row) => ({
      id: String(row.id),
      fence: Number(row.fence),
      job: String(row.job),
      attempt: Number(row.attempt),
      holder: String(row.holder ?? "unknown"),
      end: ATTEMPT_ENDS[Number(row.ended)] as "lost" | "timeout",
      to: Number(row.verdict) < 0 ? "pending" : statusOf(Number(row.verdict)),
    }));
  }

  async enforceCancels(params: { readonly graceMs: number }): Promise<readonly store.Grant[]> {
    const rows = await this.#try("enforceCancels", this.#beat, sql.ENFORCE_CANCELS, params);
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async cancel({ id }: { readonly id: RunId }): Promise<store.CancelAnswer> {
    return this.#untilSettled(async () => {
      const [row = {}] = await this.#repeat("cancel", sql.CANCEL, { id });
      if (row.cancelled) return "cancelled";
      if (row.requested) return "requested";
      if (row.terminal) return "already_terminal";
      return row.known ? null : "not_found";
    });
  }

  async retry({ id }: { readonly id: RunId }): Promise<store.RetryAnswer> {
    const [row = {}] = await this.#repeat("retry", sql.RETRY, { id });
    if (row.reopened) return "pending";
    if (!row.known) return "not_found";
    return row.status === COMPLETED ? "completed" : "not_terminal";
  }

  async remove({ id }: { readonly id: RunId }): Promise<"removed" | "not_terminal" | "not_found"> {
    const [row = {}] = await this.#repeat("remove", sql.REMOVE, { id });
    if (row.removed) return "removed";
    return row.known ? "not_terminal" : "not_found";
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const [row] = await this.#repeat("run", sql.GET_RUN, { id });
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const rows = await this.#repeat("runs", sql.LIST_RUNS[filter.status ?? "any"], {
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
    return (await this.#repeat("attempts", sql.ATTEMPTS, { id })).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    return (await this.#repeat("terminal", sql.TERMINAL, { ids })).map((row) => String(row.id));
  }

  async pauseQueue(params: { readonly queue: string; readonly isPaused: boolean }): Promise<void> {
    await this.#repeat("pauseQueue", sql.PAUSE_QUEUE, params);
  }

  /** History goes by whole days, so `limit` bounds only what is removed row by row. */
  async prune({
    keepMs,
    limit,
  }: {
    readonly keepMs: number;
    readonly limit: number;
  }): Promise<number> {
    const dropped = await this.#patiently("prune", async () => {
      const days = await this.#days();
      await makeDays(days);
      return dropDays(days, keepMs);
    });
    const [row] = await this.#repeat("prune", sql.PRUNE, { keepMs, limit });
    return dropped + Number(row?.pruned ?? 0);
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    this.#work.query({ text: `notify "${this.#channel}"` }).catch(() => undefined);
  }

  // ── enqueue ────────────────────────────────────────────────────────────────────────────────────

  #enqueueRow(run: store.NewRun): Row {
    return {
      id: run.id,
      lane: this.#lanes.get(laneKey(run)),
      policy: this.#policies.get(run.policy),
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

  /** A duplicate id means that some of these were committed before and the answer was lost. */
  async #storeOnce(rows: readonly Row[]): Promise<void> {
    const runs = runArrays(rows);
    await this.#patiently("enqueue", async () => {
      try {
        await this.#once(this.#work, sql.ENQUEUE, runs);
      } catch (error) {
        if (!(error instanceof LinkFailure && error.code === UNIQUE_VIOLATION)) throw error;
        await this.#once(this.#work, sql.ENQUEUE_MISSING, runs);
      }
    });
  }

  /**
   * Stores runs of which some have keys. If they are to be all or none, a key that is taken by
   * another input undoes the rest; so they are then written in a transaction of their own.
   */
  async #storeKeyed(
    runs: readonly store.NewRun[],
    rows: readonly Row[],
    isAtomic: boolean,
  ): Promise<readonly store.EnqueueAnswer[]> {
    const first = new Set([...firstOfEachKey(runs).values()].map(({ id }) => id));
    const keyless = rows.filter((row) => row.key === undefined);
    const keyed = rows.filter((row) => first.has(String(row.id)));
    const holders = await this.#patiently("enqueue", () =>
      isAtomic
        ? inTransaction({ source: this.#source, clock: this.#clock }, async (query) => {
            const ask = (template: string, params: Row) => this.#ask(query, template, params);
            const found = await this.#takeKeys(keyed, ask);
            const isRefused = answersOf(runs, found).some((answer) => "conflict" in answer);
            if (isRefused) await query("rollback");
            else if (keyless.length > 0) await ask(sql.ENQUEUE_MISSING, runArrays(keyless));
            return found;
          })
        : this.#takeKeys(keyed, (template, params) => this.#once(this.#work, template, params)),
    );
    if (!isAtomic && keyless.length > 0) await this.#storeOnce(keyless);
    return answersOf(runs, holders);
  }

  /** Whose the keys are afterwards. A key may vanish between the two statements: then once more. */
  async #takeKeys(
    keyed: readonly Row[],
    ask: (template: string, params: Row) => Promise<Row[]>,
  ): Promise<readonly KeyHolder[]> {
    const holders: KeyHolder[] = [];
    for (let open = keyed; open.length > 0; ) {
      const stored = await ask(sql.ENQUEUE_KEYED, { runs: JSON.stringify(open) });
      const isStored = new Set(stored.map((row) => String(row.id)));
      for (const { id, inputHash } of open.filter((row) => isStored.has(String(row.id)))) {
        holders.push({ id: String(id), run: String(id), inputHash: String(inputHash) });
      }
      const taken = open.filter((row) => !isStored.has(String(row.id)));
      if (taken.length === 0) return holders;
      const keys = JSON.stringify(taken.map((row, at) => ({ at, job: row.job, key: row.key })));
      const found = await ask(sql.KEY_HOLDERS, { keys });
      for (const { at, run, input_hash } of found) {
        const id = String(taken[Number(at)]?.id);
        holders.push({ id, run: String(run), inputHash: String(input_hash) });
      }
      const isFound = new Set(found.map((row) => Number(row.at)));
      open = taken.filter((_, at) => !isFound.has(at));
    }
    return holders;
  }

  #ask(query: Query, template: string, params: Row): Promise<Row[]> {
    const statement = this.#statement(template);
    return query(statement.text, this.#values(statement, params));
  }

  /** Numbers of lanes and policies never change, so each is asked for once in a process. */
  async #rememberAll(
    runs: readonly { queue: string; job: string; policy: Policy }[],
  ): Promise<void> {
    for (const run of runs) {
      if (!this.#lanes.has(laneKey(run))) await this.#lane(run.queue, run.job);
      if (!this.#policies.has(run.policy)) await this.#policyId(run.policy);
    }
  }

  async #lane(queue: string, job: string): Promise<number> {
    const [row] = await this.#repeat("enqueue", sql.ENSURE_LANE, { queue, job });
    this.#lanes.set(laneKey({ queue, job }), Number(row?.id));
    return Number(row?.id);
  }

  async #policyId(policy: Policy): Promise<number> {
    const { leaseMs, timeoutMs, retry } = policy;
    const digest = policyDigest(policy);
    let id = this.#policiesByDigest.get(digest);
    if (id === undefined) {
      const [row] = await this.#repeat("enqueue", sql.ENSURE_POLICY, {
        digest,
        leaseMs,
        timeoutMs,
        ...retry,
        onLost: ON_LOST.indexOf(policy.onLost),
      });
      id = Number(row?.id);
      this.#policiesByDigest.set(digest, id);
    }
    this.#policies.set(policy, id);
    return id;
  }

  // ── schema ─────────────────────────────────────────────────────────────────────────────────────

  async #version(): Promise<{ version: number; minCompatible: number } | null> {
    const table = `${this.#dialect.name("schema_version")}`;
    const { rows } = await this.#work.query({
      text: `select to_regclass('${table}') is not null as known`,
    });
    if (rows[0]?.known !== true) return null;
    const found = await this.#work.query({ text: `select version, min_compatible from ${table}` });
    const row = found.rows[0];
    return row ? { version: Number(row.version), minCompatible: Number(row.min_compatible) } : null;
  }

  async #createSchema(): Promise<void> {
    if (this.#migrate !== "auto") return;
    await inTransaction({ source: this.#source, clock: this.#clock }, async (query) => {
      await query("set local lock_timeout = '20s'");
      await query("select pg_advisory_xact_lock(hashtext($1))", [`holdfast:${this.#schema}`]);
      const [row] = await query(
        `select to_regclass('${this.#dialect.name("schema_version")}') is not null as known`,
      );
      if (row?.known === true) return;
      await query(`create schema if not exists "${this.#schema}"`);
      const now = await this.#databaseNow();
      const days = firstDays({ now, dialect: this.#dialect });
      await query([fillIn(CREATE_SCHEMA, this.#dialect), ...days].join(";\n"));
      await query(
        `insert into ${this.#dialect.name("schema_version")} values (${SCHEMA_VERSION}, ${SCHEMA_VERSION}, ${DATABASE_CLOCK})`,
      );
    });
  }

  async #days() {
    return {
      source: this.#source,
      clock: this.#clock,
      schema: this.#schema,
      dialect: this.#dialect,
      now: await this.#databaseNow(),
      query: async (text: string, values: readonly unknown[] = []) =>
        (await this.#beat.query({ text, values })).rows,
    };
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
  async #once(
    link: PostgresLink,
    template: string,
    params: Row,
    timeoutMs?: number,
  ): Promise<Row[]> {
    const statement = this.#statement(template);
    const { name, text } = statement;
    const values = this.#values(statement, params);
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    return (await link.query({ name, text, values, ...limit })).rows;
  }

  /** One try, its failure in the words of the store. */
  async #try(
    what: string,
    link: PostgresLink,
    template: string,
    params: object,
    timeoutMs?: number,
  ): Promise<Row[]> {
    try {
      return await this.#once(link, template, params as Row, timeoutMs);
    } catch (error) {
      throw describe(what, error, { wasUnknown: false });
    }
  }

  /** For reads and for statements that change nothing more when they are repeated. */
  #repeat(what: string, template: string, params: object): Promise<Row[]> {
    return this.#patiently(what, () => this.#once(this.#work, template, params as Row));
  }

  async #patiently<T>(what: string, ask: () => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonicMs();
    let wasUnknown = false;
    for (let tries = 1; ; tries += 1) {
      try {
        return await ask();
      } catch (error) {
        wasUnknown ||= error instanceof LinkFailure && !error.isCertain;
        const isOver = this.#isClosed || this.#clock.monotonicMs() - startedAt > PATIENCE_MS;
        if (isOver || !isWorthRepeating(error)) throw describe(what, error, { wasUnknown });
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

/** The same run settled twice in one exchange would be written twice. */
function onceEach(settlements: readonly store.Settlement[]): readonly store.Settlement[] {
  const seen = new Set(settlements.map(({ id, fence }) => `${id} ${fence}`));
  if (seen.size === settlements.length) return settlements;
  return settlements.filter(({ id, fence }) => seen.delete(`${id} ${fence}`));
}

function claimsOf(row: Row | undefined): readonly store.Claim[] {
  return ((row?.claims ?? []) as Parameters<typeof toClaim>[0][]).map(toClaim);
}

/** What a caller hears: a lost answer is neither success nor failure. */
function describe(what: string, error: unknown, { wasUnknown }: { wasUnknown: boolean }): unknown {
  if (!(error instanceof LinkFailure)) return error;
  if (wasUnknown || !error.isCertain) return new OutcomeUnknownError(what, { cause: error.cause });
  return isWorthRepeating(error) || error.code === "CLOSED"
    ? new StoreUnavailableError({ tried: what, cause: error.cause })
    : error.cause;
}

function laneKey({ queue, job }: { readonly queue: string; readonly job: string }): string {
  return `${queue}\n${job}`;
}

function digest(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let at = 0; at < text.length; at += 1) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x100000001b3n);
  }
  return hash.toString(36);
}

function exchangeText(settlements: readonly store.Settlement[]): string {
  if (settlements.length === 0) return sql.CLAIM;
  return settlements.every(({ to }) => to !== "pending")
    ? sql.FINISH_AND_CLAIM
    : sql.SETTLE_AND_CLAIM;
}

function settlementArrays(settlements: readonly store.Settlement[]): Row {
  const { plain, texts } = columnsOf(settlements.map(toSettlementRow));
  return {
    ids: plain("id"),
    fences: plain("fence"),
    statuses: plain("status"),
    ends: plain("ended"),
    modes: plain("mode"),
    ranMs: plain("ranMs"),
    delayMs: plain("delayMs"),
    refunds: plain("refund"),
    results: texts("result"),
    errors: texts("error"),
  };
}

function runArrays(rows: readonly Row[]): Row {
  const { plain, texts } = columnsOf(rows);
  return {
    ids: plain("id"),
    lanes: plain("lane"),
    policies: plain("policy"),
    versions: plain("version"),
    priorities: plain("priority"),
    modes: plain("mode"),
    dueAt: plain("dueAt"),
    delayMs: plain("delayMs"),
    tags: textArray(rows.map(({ tags }) => (tags === null ? null : textArray(tags as string[])))),
    inputs: texts("input"),
  };
}

function columnsOf(rows: readonly Row[]) {
  return {
    plain: (member: string) =>
      plainArray(rows.map((row) => (row[member] ?? null) as number | string | null)),
    texts: (member: string) => textArray(rows.map((row) => (row[member] ?? null) as string | null)),
  };
}
