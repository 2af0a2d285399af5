// The store on PostgreSQL: every verb is one statement on one of two connections. `work` carries
// enqueues and exchanges, `beat` renewals, polls and the reaper, and listens; a second exchange at
// the same time goes to whichever is less busy (docs/decisions/0002-two-connections.md).

import type { AuditEntry } from "../core/audit.js";
import { MigrationError, OutcomeUnknownError } from "../core/errors.js";
import { isLimited, NO_LIMITS } from "../core/flow.js";
import { type Clock, delay } from "../core/ports.js";
import { ATTEMPT_ENDS, CANCEL_GRACE_MS, MODES, type RunId } from "../core/run.js";
import { checkPool, LinkFailure, type PostgresSource, type Row, unavailable } from "./postgres.js";
import { PostgresAlerts } from "./postgres-alerts.js";
import { columnsOf } from "./postgres-array.js";
import { PostgresAsker } from "./postgres-asker.js";
import { PostgresAudit } from "./postgres-audit.js";
import { PostgresBatches } from "./postgres-batches.js";
import { ClaimBound, FROM_THE_START } from "./postgres-bound.js";
import { PostgresChecks } from "./postgres-checks.js";
import { dropDays, dropDaysBy, makeDays } from "./postgres-days.js";
import { PostgresEnqueue } from "./postgres-enqueue.js";
import { PostgresFigures } from "./postgres-figures.js";
import { PostgresItems } from "./postgres-items.js";
import { PostgresLocks } from "./postgres-locks.js";
import { PostgresLogs } from "./postgres-logs.js";
import { channelOf, createSchema, schemaVersion } from "./postgres-migrate.js";
import { PostgresOperators } from "./postgres-operators.js";
import { PostgresPause } from "./postgres-pause.js";
import { PostgresProgress } from "./postgres-progress.js";
import { PostgresRepairs } from "./postgres-repairs.js";
import { PostgresSchedules } from "./postgres-schedules.js";
import { PostgresTransactions, TRANSACTIONS_MAX } from "./postgres-transactions.js";
import { newTurns } from "./postgres-turns.js";
import { PostgresWithin } from "./postgres-within.js";
import { firstIdAt, judgeVisited } from "./pruning.js";
import {
  isSameEnd,
  limitColumns,
  statusOf,
  toAnnouncement,
  toAttemptRecord,
  toClaim,
  toQueueRecord,
  toRunRecord,
  toSettlementRow,
  toWaiting,
} from "./record.js";
import { heeding, toHalt } from "./record-pause.js";
import type { HeldRun } from "./remote-store.js";
import type { PrunedJob, PruneJobParams, PruneParams } from "./retention-store.js";
import * as sql from "./sql/postgres.js";
import { PRUNE_ALERTS } from "./sql/postgres-alerts.js";
import { PRUNE_BATCHES } from "./sql/postgres-batches.js";
import * as flows from "./sql/postgres-flow.js";
import { PRUNE_PAUSES } from "./sql/postgres-pause.js";
import * as reads from "./sql/postgres-reads.js";
import { PRUNE_SCHEDULES } from "./sql/postgres-schedules.js";
import { SCHEMA_VERSION } from "./sql/postgres-schema.js";
import { ONE_TOO_MANY, PRUNE_OLD_LOGS, REMOVE_RUNS, VISIT } from "./sql/retention.js";
import type * as store from "./store.js";

const COMPLETED = 1;
/** How often a limit is asked again that others were changing meanwhile; then the next poll does. */
const CONTENDED_TRIES_MAX = 5;
/** How many limited runs are lined up before they are claimed. */
const NEWCOMERS_MAX = 1_000;
const NOTHING = { claims: [], limitedInMs: null };

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
  readonly #asker: PostgresAsker;
  readonly #transactions: PostgresTransactions;
  readonly #enqueue: PostgresEnqueue;
  readonly #within: PostgresWithin;
  readonly #schedules: PostgresSchedules;
  readonly #locks: PostgresLocks;
  readonly #batches: PostgresBatches;
  readonly #items: PostgresItems;
  readonly #progress: PostgresProgress;
  readonly #logs: PostgresLogs;
  readonly #operators: PostgresOperators;
  readonly #inTurn = newTurns();
  readonly #checks: PostgresChecks;
  readonly #repairs: PostgresRepairs;
  readonly #alerts: PostgresAlerts;
  readonly #pause: PostgresPause;
  readonly #audit: PostgresAudit;
  readonly #figures: PostgresFigures;
  readonly #bound: ClaimBound;
  readonly #listeners = new Set<store.WakeListener>();

  constructor({ source, schema, clock, migrate, now }: PostgresStoreParams) {
    this.#source = source;
    this.#schema = schema;
    this.#clock = clock;
    this.#bound = new ClaimBound(clock);
    this.#migrate = migrate;
    const onNotice = () => {
      for (const listener of this.#listeners) listener();
    };
    const channel = this.#channel;
    this.#asker = new PostgresAsker({ source, schema, clock, channel, onNotice, now });
    const wake = () => this.wake();
    const asker = this.#asker;
    const transactions = new PostgresTransactions({ source, clock });
    const enqueue = new PostgresEnqueue({ asker, transactions, channel, wake });
    this.#transactions = transactions;
    this.#progress = new PostgresProgress(asker);
    this.#logs = new PostgresLogs(asker);
    this.#operators = new PostgresOperators(asker);
    const inTurn = this.#inTurn;
    this.#repairs = new PostgresRepairs({ asker, source, clock, inTurn });
    this.#checks = new PostgresChecks({ asker, source, clock, inTurn });
    const audit = new PostgresAudit(asker, transactions);
    this.#alerts = new PostgresAlerts(asker, audit);
    this.#audit = audit;
    this.#pause = new PostgresPause(asker, audit);
    this.#figures = new PostgresFigures(asker);
    this.#enqueue = enqueue;
    this.#within = new PostgresWithin({ asker, enqueue });
    this.#schedules = new PostgresSchedules({ asker, transactions, channel, enqueue, audit });
    this.#locks = new PostgresLocks({ asker, clock, audit });
    this.#batches = new PostgresBatches({ asker, transactions, enqueue, wake, audit });
    this.#items = new PostgresItems({ asker, source, clock, settlementArrays });
  }

  get #channel(): string {
    return channelOf(this.#schema);
  }

  async open(): Promise<void> {
    checkPool(this.#source);
    try {
      const found = this.#migrate === "auto" ? await schemaVersion(this.#asker) : undefined;
      if (found === null || (found && found.version < SCHEMA_VERSION))
        await createSchema({
          asker: this.#asker,
          source: this.#source,
          clock: this.#clock,
          schema: this.#schema,
        });
      const version = await schemaVersion(this.#asker);
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
    await Promise.all([this.#asker.close(), this.#transactions.close(), this.#items.close()]);
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
    const [row] = await this.#asker.repeat("announce", sql.ANNOUNCE_INSTANCE, {
      instanceId: params.instanceId,
      app: params.app,
      release: params.release,
      jobs: JSON.stringify(params.jobs.map((job) => job.name)),
      schedules: JSON.stringify(params.schedules),
      isScheduler: params.isScheduler,
      works: JSON.stringify(params.works?.jobs ?? []),
      queues: params.works?.queues ? JSON.stringify(params.works.queues) : null,
      pollMs: params.pollMs,
    });
    return Number(row?.no);
  }

  async announcedJobs(): Promise<readonly store.JobAnnouncement[]> {
    const rows = await this.#asker.repeat("announcedJobs", sql.ANNOUNCED_JOBS, {});
    return rows.map((row) => toAnnouncement(row, row.policy as number[]));
  }

  async retire({ holder }: { readonly holder: number }): Promise<void> {
    await this.#asker.attempt("retire", this.#asker.beat, sql.RETIRE_INSTANCE, { holder });
  }

  enqueue(params: store.EnqueueParams): Promise<readonly store.EnqueueAnswer[]> {
    return this.#enqueue.enqueue(params);
  }

  enqueueWithin: store.Store["enqueueWithin"] = (params) => this.#within.enqueueWithin(params);
  enqueueWithinSync: store.Store["enqueueWithinSync"] = () => this.#within.enqueueWithinSync();

  /**
   * What limits let through is claimed by a statement of its own: it has to see what the settlements
   * before it gave back. All carry the same token, so a lost answer is read back as a whole.
   */
  async exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    const { limited, ...plain } = params;
    if (limited === undefined || params.limit === 0) return this.#exchange(plain);
    const isFirst = limited === "first";
    const settled =
      isFirst && params.settlements.length === 0
        ? { claims: [], stale: [], hasContinued: false }
        : await this.#exchange(isFirst ? { ...plain, limit: 0 } : plain);
    const room = params.limit - countOf(settled.claims);
    const { claims: letThrough, limitedInMs } =
      room > 0 ? await this.#claimLimited({ ...params, limit: room }) : NOTHING;
    const rest = room - countOf(letThrough);
    const last =
      isFirst && rest > 0
        ? (await this.#exchange({ ...plain, settlements: [], limit: rest })).claims
        : [];
    return {
      claims: [...settled.claims, ...letThrough, ...last],
      stale: settled.stale,
      hasContinued: settled.hasContinued,
      limitedInMs,
    };
  }

  /** A flow that somebody else is changing at this moment is asked for again. */
  async #claimLimited(params: store.ExchangeParams): Promise<{
    readonly claims: readonly store.Claim[];
    readonly limitedInMs: number | null;
  }> {
    const { holder, token, jobs, queues, wantsSuspect, apart = [] } = params;
    const text = apart.length === 0 ? sql.EXCHANGE.claimLimited : sql.EXCHANGE_APART.claimLimited;
    const claims: store.Claim[] = [];
    let left = wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    for (let tries = 1; ; tries += 1) {
      const [row] = await this.#asker.attempt("exchange", this.#asker.work, text, {
        apart,
        holder,
        token,
        jobs,
        queues,
        limit: left,
        suspect: wantsSuspect,
      });
      const taken = claimsOf(row);
      claims.push(...taken);
      left -= countOf(taken);
      const mayFindMore =
        Number(row?.contended) > 0 ||
        (row?.newcomers === true && (await this.#lineUp(NEWCOMERS_MAX)) > 0);
      if (left === 0 || !mayFindMore || tries === CONTENDED_TRIES_MAX) {
        const limitedInMs = row?.limitedInMs == null ? null : Number(row.limitedInMs);
        return { claims, limitedInMs };
      }
      await delay(this.#clock, tries);
    }
  }

  async #exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    const link =
      this.#asker.beat.inFlight < this.#asker.work.inFlight ? this.#asker.beat : this.#asker.work;
    const { holder, token, jobs, queues, wantsSuspect, apart = [] } = params;
    const limit = wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    const appetite = `${wantsSuspect} ${queues} ${jobs}`;
    const low = this.#bound.low(appetite);
    const sentMs = this.#clock.monotonicMs();
    const [row] = await this.#asker.attempt("exchange", link, exchangeText(params), {
      ...settlementArrays(onceEach(params.settlements)),
      holder,
      token,
      jobs,
      queues,
      limit,
      low,
      shard: holder * 2 + (link === this.#asker.beat ? 1 : 0),
      suspect: wantsSuspect,
      chance: params.chance,
      apart,
    });
    const unapplied = ((row?.unapplied ?? []) as [string, number][]).map(([id, fence]) => ({
      id,
      fence,
    }));
    const stale = await this.#staleAmong(unapplied, params.settlements);
    const claims = claimsOf(row);
    const count = countOf(claims);
    const head = row?.head === null || row?.head === undefined ? null : String(row.head);
    const tookMs = this.#clock.monotonicMs() - sentMs;
    if (limit > 0) this.#bound.saw({ appetite, low, limit, count, head, tookMs });
    const hasContinued = Number(row?.continued ?? 0) > 0;
    if (count === limit || low === FROM_THE_START) return { claims, stale, hasContinued };
    const rest = await this.#exchange({ ...params, settlements: [], limit: limit - count });
    return { claims: [...claims, ...rest.claims], stale, hasContinued };
  }

  /** What was applied before, its answer lost, is not stale; only history can tell. */
  async #staleAmong(
    unapplied: readonly store.Grant[],
    settlements: readonly store.Settlement[],
  ): Promise<readonly store.Grant[]> {
    if (unapplied.length === 0) return [];
    const rows = await this.#asker.repeat("exchange", sql.ENDINGS, {
      grants: JSON.stringify(unapplied),
    });
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
    const [row] = await this.#asker.repeat("claimsByToken", sql.CLAIMS_BY_TOKEN, params);
    return claimsOf(row);
  }

  async heldRun(grant: store.Grant): Promise<HeldRun<store.Claim> | null> {
    const [row] = await this.#asker.repeat("heldRun", sql.HELD, grant);
    const [claim] = claimsOf(row);
    if (!row || !claim) return null;
    return {
      holder: Number(row.holder),
      claim: { ...claim, runs: claim.runs.filter(({ id }) => id === grant.id) },
      heldMs: Number(row.held_ms),
      isCancelRequested: row.is_cancel_requested === true,
    };
  }

  async renew({ holder, fences, timeoutMs }: store.RenewParams): Promise<store.RenewAnswer> {
    const [row] = await this.#asker.attempt(
      "renew",
      this.#asker.beat,
      sql.RENEW,
      { holder, fences },
      timeoutMs,
    );
    const held = (row?.held ?? []) as [number, number, string[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }

  async markStarted(grants: readonly store.Grant[]): Promise<readonly store.Grant[]> {
    const rows = await this.#asker.repeat("markStarted", sql.MARK_STARTED, {
      grants: JSON.stringify(grants),
    });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async poll(params: store.PollParams): Promise<store.PollAnswer> {
    const [row = {}] = await this.#asker.attempt("poll", this.#asker.beat, sql.POLL, {
      ...params,
      cancelGraceMs: CANCEL_GRACE_MS,
    });
    return heeding({
      now: Number(row.now),
      halt: toHalt(row),
      hasReady: row.hasReady === true,
      hasSuspect: row.hasSuspect === true,
      hasLimited: row.hasLimited === true,
      hasDue: row.hasDue === true,
      hasExpired: row.hasExpired === true,
      hasDueSchedule: row.hasDueSchedule === true,
      hasGated: row.hasGated === true,
      lastPolledAt: row.lastPolledAt === null ? null : Number(row.lastPolledAt),
      hasOverdueCancel: row.hasOverdueCancel === true,
      cancelRequested: (row.cancelRequested ?? []) as RunId[],
      nextWakeAt: row.nextWakeAt === null ? null : Number(row.nextWakeAt),
    });
  }

  async promote({ limit }: { readonly limit: number }): Promise<number> {
    const [row] = await this.#asker.attempt("promote", this.#asker.beat, sql.PROMOTE, { limit });
    const promoted = Number(row?.promoted);
    return row?.newcomers === true ? Math.max(promoted, await this.#lineUp(limit)) : promoted;
  }

  /** Limited runs that came in transactions which stay open for long: their flows are touched only now. */
  async #lineUp(limit: number): Promise<number> {
    const [row] = await this.#asker.attempt("promote", this.#asker.beat, sql.LINE_UP, { limit });
    return Number(row?.promoted);
  }

  async reclaim(params: {
    readonly limit: number;
    readonly chance: number;
  }): Promise<readonly store.Reclaimed[]> {
    const rows = await this.#asker.attempt("reclaim", this.#asker.beat, sql.RECLAIM, params);
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

  async enforceCancels(params: {
    readonly graceMs: number;
    readonly chance: number;
  }): Promise<readonly store.Grant[]> {
    const rows = await this.#asker.attempt(
      "enforceCancels",
      this.#asker.beat,
      sql.ENFORCE_CANCELS,
      params,
    );
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async cancel({
    audit,
    ...params
  }: Parameters<store.Store["cancel"]>[0]): Promise<store.CancelAnswer> {
    return this.#untilSettled(async () => {
      const row = await this.#change("cancel", sql.CANCEL, params, audit, "cancelled", "requested");
      if (row.cancelled) return "cancelled";
      if (row.requested) return "requested";
      if (row.terminal) return "already_terminal";
      return row.known ? null : "not_found";
    });
  }

  /** A statement of an operator; it has done something where one of these columns is true. */
  async #change(
    what: string,
    template: string,
    params: object,
    audit: AuditEntry | undefined,
    ...done: readonly string[]
  ): Promise<Row> {
    const isDone = (row: Row = {}) => done.some((column) => row[column] === true);
    return (await this.#audit.change({ what, template, params, audit, isDone })) ?? {};
  }

  async retry({ id, audit }: Parameters<store.Store["retry"]>[0]): Promise<store.RetryAnswer> {
    const params = { id, isGated: false };
    const row = await this.#change("retry", sql.RETRY, params, audit, "reopened");
    if (row.reopened) return "pending";
    if (!row.known) return "not_found";
    return row.status === COMPLETED ? "completed" : "not_terminal";
  }

  async remove({
    id,
    audit,
  }: Parameters<store.Store["remove"]>[0]): Promise<"removed" | "not_terminal" | "not_found"> {
    const row = await this.#change("remove", sql.REMOVE, { id }, audit, "removed");
    if (row.removed) return "removed";
    return row.known ? "not_terminal" : "not_found";
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const [row] = await this.#asker.repeat("run", reads.GET_RUN, { id });
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const rows = await this.#asker.repeat("runs", reads.LIST_RUNS[filter.status ?? "any"], {
      before: filter.before ?? null,
      since: filter.since ?? null,
      job: filter.job ?? null,
      schedule: filter.schedule ?? null,
      mode: filter.mode === undefined ? null : MODES.indexOf(filter.mode),
      tag: filter.tag ?? null,
      text: filter.text ?? null,
      limit: filter.limit,
    });
    return rows.map(toRunRecord);
  }

  async attempts(id: RunId): Promise<readonly store.AttemptRecord[]> {
    return (await this.#asker.repeat("attempts", reads.ATTEMPTS, { id })).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    return (await this.#asker.repeat("terminal", reads.TERMINAL, { ids })).map((row) =>
      String(row.id),
    );
  }

  readonly pauseQueue: store.Store["pauseQueue"] = async ({ note = null, audit, ...rest }) => {
    const params = { ...rest, note };
    const template = flows.PAUSE_QUEUE;
    await this.#audit.change({ what: "pauseQueue", template, params, audit, isDone: () => true });
  };

  readonly queues: store.Store["queues"] = async () =>
    (await this.#asker.repeat("queues", flows.QUEUES, {})).map(toQueueRecord);

  readonly waitingFor: store.Store["waitingFor"] = async (id) => {
    const [row] = await this.#asker.repeat("waitingFor", flows.WAITING_FOR, { id });
    return row ? toWaiting(row) : null;
  };

  /** History goes by whole days, so `limit` bounds only what is removed row by row. */
  async prune(params: PruneParams): Promise<number> {
    const { keepMs, keepTicksMs, keepLogsMs = keepMs, limit } = params;
    const dropped = await this.#asker.patiently("prune", () =>
      this.#inTurn(async () => {
        const days = await this.#days();
        await makeDays(days);
        return (
          (await dropDays(days, keepMs)) +
          (await dropDaysBy(days, "tick", keepTicksMs)) +
          (keepLogsMs < keepMs ? await dropDaysBy(days, "log", keepLogsMs) : 0)
        );
      }),
    );
    const [row] = await this.#asker.repeat("prune", sql.PRUNE, { keepMs, limit });
    const [more] = await this.#asker.repeat("prune", PRUNE_SCHEDULES, params);
    const [batches] = await this.#asker.repeat("prune", PRUNE_BATCHES, { keepMs, limit });
    const [idle] = await this.#asker.repeat("prune", flows.PRUNE_FLOWS, { limit });
    const [lines] = await this.#asker.repeat("prune", PRUNE_OLD_LOGS.postgres, {
      keepLogsMs,
      limit,
    });
    const [alerts] = await this.#asker.repeat("prune", PRUNE_ALERTS, { keepMs, limit });
    const audits = await this.#audit.prune({ keepMs, limit });
    const pauses = await this.#asker.repeat("prune", PRUNE_PAUSES, { keepMs });
    const removed = [row, more, batches, idle, lines, alerts];
    const pruned = removed.map((each) => Number(each?.pruned ?? 0));
    return pruned.reduce((sum, count) => sum + count, dropped + pauses.length + audits);
  }

  async pruneJob(params: PruneJobParams): Promise<PrunedJob> {
    const { job, keepMs, keepCount, after, limit } = params;
    const edge =
      keepCount === null
        ? null
        : ((await this.#asker.repeat("prune", ONE_TOO_MANY.postgres, { job, count: keepCount }))[0]
            ?.id ?? null);
    const until = keepMs === null ? null : (await this.#asker.databaseNow()) - keepMs;
    const before = until === null ? null : firstIdAt(until);
    const given = { job, after, before, edge, until, limit };
    const visited = (await this.#asker.repeat("prune", VISIT.postgres, given)).map((row) => ({
      id: String(row.id),
      isOld: row.is_mine === true && row.is_old === true,
      isYoung: row.is_mine === true && row.is_old !== true,
    }));
    const { ids, answer } = judgeVisited(visited, { after, limit });
    if (ids.length === 0) return answer(0);
    const [row] = await this.#asker.repeat("prune", REMOVE_RUNS, { ids });
    return answer(Number(row?.removed));
  }

  progress: store.Store["progress"] = (params) => this.#progress.write(params);
  progressOf: store.Store["progressOf"] = (ids) => this.#progress.of(ids);
  appendLogs: store.Store["appendLogs"] = (params) => this.#logs.append(params);
  logs: store.Store["logs"] = (params) => this.#logs.of(params);

  // What schedules need is in a file of its own.
  dueSchedules: store.Store["dueSchedules"] = (params) => this.#schedules.dueSchedules(params);
  scheduleStates: store.Store["scheduleStates"] = (params) =>
    this.#schedules.scheduleStates(params);
  writeSchedules: store.Store["writeSchedules"] = (params) =>
    this.#schedules.writeSchedules(params);
  createSchedule: store.Store["createSchedule"] = (params) =>
    this.#schedules.createSchedule(params);
  schedules: store.Store["schedules"] = (params) => this.#schedules.schedules(params);
  ticks: store.Store["ticks"] = (params) => this.#schedules.ticks(params);
  scheduleVersions: store.Store["scheduleVersions"] = (params) =>
    this.#schedules.scheduleVersions(params);
  delivery: store.Store["delivery"] = (params) => this.#schedules.delivery(params);
  completedTicks: store.Store["completedTicks"] = (params) =>
    this.#schedules.completedTicks(params);
  backfills: store.Store["backfills"] = (params) => this.#schedules.backfills(params);
  seenDefinitions: store.Store["seenDefinitions"] = (params) =>
    this.#schedules.seenDefinitions(params);
  declaredNames: store.Store["declaredNames"] = (params) => this.#schedules.declaredNames(params);
  schedulesByTzdata: store.Store["schedulesByTzdata"] = (params) =>
    this.#schedules.schedulesByTzdata(params);
  putCalendar: store.Store["putCalendar"] = (params) => this.#schedules.putCalendar(params);
  removeCalendar: store.Store["removeCalendar"] = (params) =>
    this.#schedules.removeCalendar(params);
  calendars: store.Store["calendars"] = () => this.#schedules.calendars();

  // So is what locks need.
  acquireLock: store.Store["acquireLock"] = (params) => this.#locks.acquireLock(params);
  leaveLockQueue: store.Store["leaveLockQueue"] = (params) => this.#locks.leaveLockQueue(params);
  extendLock: store.Store["extendLock"] = (params) => this.#locks.extendLock(params);
  releaseLock: store.Store["releaseLock"] = (params) => this.#locks.releaseLock(params);
  revokeLock: store.Store["revokeLock"] = (params) => this.#locks.revokeLock(params);
  locks: store.Store["locks"] = (params) => this.#locks.locks(params);
  lockHistory: store.Store["lockHistory"] = (params) => this.#locks.lockHistory(params);
  lockStats: store.Store["lockStats"] = () => this.#locks.lockStats();
  tidyLocks: store.Store["tidyLocks"] = (params) => this.#locks.tidyLocks(params);
  // What runs need that make runs, too.
  enqueueChildren: store.Store["enqueueChildren"] = (params) =>
    this.#batches.enqueueChildren(params);
  enqueueBatch: store.Store["enqueueBatch"] = (params) => this.#batches.enqueueBatch(params);
  batches: store.Store["batches"] = (run) => this.#batches.batches(run);
  children: store.Store["children"] = (filter) => this.#batches.children(filter);
  retryChildren: store.Store["retryChildren"] = (params) => this.#batches.retryChildren(params);
  // Items, and what commits together with users' work, too.
  storeItems: store.Store["storeItems"] = (params) => this.#items.storeItems(params);
  doneItems: store.Store["doneItems"] = (params) => this.#items.doneItems(params);
  items: store.Store["items"] = (params) => this.#items.items(params);
  commit: store.Store["commit"] = (params) => this.#items.commit(params);
  commitItem: store.Store["commitItem"] = (params) => this.#items.commitItem(params);
  grantState: store.Store["grantState"] = (params) => this.#items.grantState(params);

  // What operators ask, too.
  expireStale: store.Store["expireStale"] = (params) => this.#operators.expireStale(params);
  instances: store.Store["instances"] = (params) => this.#operators.instances(params);
  glance: store.Store["glance"] = () => this.#operators.glance();
  statistics: store.Store["statistics"] = (params) => this.#operators.statistics(params);
  failures: store.Store["failures"] = (params) => this.#operators.failures(params);
  timeline: store.Store["timeline"] = (params) => this.#operators.timeline(params);
  figures: store.Store["figures"] = (params) => this.#figures.figures(params);
  scheduleNames: store.Store["scheduleNames"] = (ids) => this.#figures.scheduleNames(ids);

  /** Work and beat, transactions of users, our own, and one for what is rare: days, checks, repairs. */
  get connectionsMax(): number {
    const { workMax, transactionsMax } = this.load;
    const wanted = workMax + transactionsMax + TRANSACTIONS_MAX + 1;
    const { max } = typeof this.#source === "string" ? { max: wanted } : this.#source.options;
    return Math.min(wanted, max ?? wanted);
  }

  get load(): store.Store["load"] {
    const links = [this.#asker.work, this.#asker.beat];
    const { open, max, waiting } = this.#items.load;
    return {
      statements: links.reduce((sum, { inFlight }) => sum + inFlight, 0),
      work: links.filter(({ isConnected }) => isConnected).length,
      workMax: links.length,
      transactions: open,
      transactionsMax: max,
      waiting,
    };
  }

  check: store.Store["check"] = (params) => this.#checks.check(params);
  mend: store.Store["mend"] = (params) => this.#repairs.mend(params);
  remains: store.Store["remains"] = () => this.#repairs.remains();
  recover: store.Store["recover"] = (params) => this.#repairs.recover(params);
  vitals: store.Store["vitals"] = (params) => this.#repairs.vitals(params);
  checkScript: store.Store["checkScript"] = (own) => this.#checks.checkScript(own);
  // And alerts.
  takeAlertTurn: store.Store["takeAlertTurn"] = (params) => this.#alerts.takeAlertTurn(params);
  sightOfSchedules: store.Store["sightOfSchedules"] = () => this.#alerts.sightOfSchedules();
  sightOfRest: store.Store["sightOfRest"] = (params) => this.#alerts.sightOfRest(params);
  openAlerts: store.Store["openAlerts"] = () => this.#alerts.openAlerts();
  writeAlerts: store.Store["writeAlerts"] = (params) => this.#alerts.writeAlerts(params);
  claimDeliveries: store.Store["claimDeliveries"] = (params) =>
    this.#alerts.claimDeliveries(params);
  endDelivery: store.Store["endDelivery"] = (params) => this.#alerts.endDelivery(params);
  alerts: store.Store["alerts"] = (params) => this.#alerts.alerts(params);
  markAlert: store.Store["markAlert"] = (params) => this.#alerts.markAlert(params);
  pauseAll: store.Store["pauseAll"] = (params) => this.#pause.pauseAll(params);
  resumeAll: store.Store["resumeAll"] = (params) => this.#pause.resumeAll(params);
  quietInstance: store.Store["quietInstance"] = (params) => this.#pause.quietInstance(params);
  addAudit: store.Store["addAudit"] = (entry) => this.#audit.addAudit(entry);
  audit: store.Store["audit"] = (filter) => this.#audit.audit(filter);
  pauseOfAll: store.Store["pauseOfAll"] = () => this.#pause.pauseOfAll();

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    this.#asker.work.query({ text: `notify "${this.#channel}"` }).catch(() => undefined);
  }

  async #days() {
    return {
      source: this.#source,
      clock: this.#clock,
      schema: this.#schema,
      dialect: this.#asker.dialect,
      now: await this.#asker.databaseNow(),
      query: async (text: string, values: readonly unknown[] = []) =>
        (await this.#asker.beat.query({ text, values })).rows,
    };
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
  if (new Set(settlements.map(({ id }) => id)).size === settlements.length) return settlements;
  const seen = new Set(settlements.map(({ id, fence }) => `${id} ${fence}`));
  return settlements.filter(({ id, fence }) => seen.delete(`${id} ${fence}`));
}

function countOf(claims: readonly store.Claim[]): number {
  return claims.reduce((sum, { runs }) => sum + runs.length, 0);
}

function claimsOf(row: Row | undefined): readonly store.Claim[] {
  return ((row?.claims ?? []) as Parameters<typeof toClaim>[0][]).map(toClaim);
}

function exchangeText({ settlements, apart = [] }: store.ExchangeParams): string {
  const texts = apart.length === 0 ? sql.EXCHANGE : sql.EXCHANGE_APART;
  if (settlements.length === 0) return texts.claim;
  const hasChildren = settlements.some(({ batch }) => batch !== null);
  if (settlements.some((each) => each.isLimited))
    return hasChildren ? texts.settleLimitedChildrenAndClaim : texts.settleLimitedAndClaim;
  if (hasChildren) return texts.settleChildrenAndClaim;
  if (settlements.some(({ schedule }) => schedule !== null)) return texts.settleScheduledAndClaim;
  return settlements.every(({ to }) => to !== "pending")
    ? texts.finishAndClaim
    : texts.settleAndClaim;
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
    schedules: plain("schedule"),
    batches: plain("batch"),
  };
}
