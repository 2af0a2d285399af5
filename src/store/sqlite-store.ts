// The store on SQLite: every verb is one short write transaction, so its decisions and its writes
// cannot be interleaved with another's. Where PostgreSQL decides inside a statement, this file
// decides in between, with the same pure functions that the engine uses.

import type { Chance, Clock } from "../core/ports.js";
import { MODES, type RunId } from "../core/run.js";
import type * as batches from "./batch-store.js";
import { firstIdAt, judgeVisited } from "./pruning.js";
import {
  instanceColumns,
  limitColumns,
  policyDigest,
  statusOrder,
  toAnnouncement,
  toAttemptRecord,
  toBatchRecord,
  toQueueRecord,
  toRunRecord,
  toWaiting,
} from "./record.js";
import type { HeldRun } from "./remote-store.js";
import type { PrunedJob, PruneJobParams, PruneParams } from "./retention-store.js";
import type * as schedules from "./schedule-store.js";
import { ONE_TOO_MANY, PRUNE_OLD_LOGS, VISIT } from "./sql/retention.js";
import * as sql from "./sql/sqlite.js";
import * as batchSql from "./sql/sqlite-batches.js";
import * as flows from "./sql/sqlite-flow.js";
import { DELETE_ITEMS } from "./sql/sqlite-items.js";
import { PRUNE_LOGS } from "./sql/sqlite-logs.js";
import { PRUNE_PROGRESS } from "./sql/sqlite-progress.js";
import {
  PRUNE_BACKFILLS,
  PRUNE_RUNS_OF_SCHEDULES,
  PRUNE_TICKS,
} from "./sql/sqlite-schedule-changes.js";
import type { Dialect } from "./sql/template.js";
import { SqliteFile, type SqliteHandle, type SqliteSource } from "./sqlite.js";
import { SqliteAlerts } from "./sqlite-alerts.js";
import { SqliteAudit } from "./sqlite-audit.js";
import { SqliteBatches } from "./sqlite-batches.js";
import { SqliteChecks } from "./sqlite-checks.js";
import { SqliteEndings } from "./sqlite-endings.js";
import { Refused, SqliteEnqueue } from "./sqlite-enqueue.js";
import { SqliteFigures } from "./sqlite-figures.js";
import { SqliteFlow } from "./sqlite-flow.js";
import { SqliteItems } from "./sqlite-items.js";
import { SqliteLeases } from "./sqlite-leases.js";
import { SqliteLocks } from "./sqlite-locks.js";
import { SqliteLogs } from "./sqlite-logs.js";
import { migrateSqlite } from "./sqlite-migrate.js";
import { SqliteOperators } from "./sqlite-operators.js";
import { SqlitePause } from "./sqlite-pause.js";
import { pollOnce } from "./sqlite-poll.js";
import { SqliteProgress } from "./sqlite-progress.js";
import { SqliteRepairs } from "./sqlite-repairs.js";
import { SqliteSchedules } from "./sqlite-schedules.js";
import { SqliteWithin } from "./sqlite-within.js";
import type * as store from "./store.js";

export const SQLITE_DIALECT: Dialect = {
  // The public views have the names of the other engine's, which has a schema for them.
  name: (plain) => (plain.startsWith("v_") ? plain : `holdfast_${plain}`),
  now: "cast(unixepoch('subsec') * 1000 as integer)",
};
const NOTHING = { stale: [], hasContinued: false } as const;

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
  /** One for everything, and one while a check reads its snapshot. */
  readonly connectionsMax = 2;
  readonly #file: SqliteFile;
  readonly #migrate: "auto" | "check" | "off";
  readonly #now: (() => number) | undefined;
  readonly #enqueue: SqliteEnqueue;
  readonly #within: SqliteWithin;
  readonly #flow: SqliteFlow;
  readonly #leases: SqliteLeases;
  readonly #endings: SqliteEndings;
  readonly #schedules: SqliteSchedules;
  readonly #locks: SqliteLocks;
  readonly #batches: SqliteBatches;
  readonly #items: SqliteItems;
  readonly #progress: SqliteProgress;
  readonly #logs: SqliteLogs;
  readonly #operators: SqliteOperators;
  readonly #checks: SqliteChecks;
  readonly #repairs: SqliteRepairs;
  readonly #alerts: SqliteAlerts;
  readonly #pause: SqlitePause;
  readonly #audit: SqliteAudit;
  readonly #figures: SqliteFigures;
  readonly #listeners = new Set<store.WakeListener>();

  constructor(params: SqliteStoreParams) {
    this.#migrate = params.migrate;
    this.#now = params.now;
    this.#file = new SqliteFile({ ...params, dialect: SQLITE_DIALECT });
    const file = this.#file;
    const flow = new SqliteFlow(file);
    this.#flow = flow;
    this.#enqueue = new SqliteEnqueue(file, flow);
    this.#within = new SqliteWithin({
      file,
      enqueue: this.#enqueue,
      now: () => this.#databaseNow(),
    });
    this.#leases = new SqliteLeases(file, flow);
    this.#endings = new SqliteEndings({ file, leases: this.#leases, flow });
    const [enqueue, leases] = [this.#enqueue, this.#leases];
    this.#batches = new SqliteBatches({ file, enqueue, leases, flow });
    this.#progress = new SqliteProgress(file, leases);
    this.#logs = new SqliteLogs(file, leases);
    this.#audit = new SqliteAudit({
      file,
      now: () => this.#databaseNow(),
      write: (what, work) => this.#write(what, work),
    });
    const audit = this.#audit;
    this.#pause = new SqlitePause({ file, audit });
    this.#schedules = new SqliteSchedules({
      file,
      flow,
      pause: this.#pause,
      audit,
      enqueue: this.#enqueue,
      leases: this.#leases,
      now: () => this.#databaseNow(),
      write: (what, work) => this.#write(what, work),
    });
    this.#locks = new SqliteLocks({
      audit,
      file: this.#file,
      now: () => this.#databaseNow(),
      write: (what, work) => this.#write(what, work),
    });
    this.#figures = new SqliteFigures({ file, now: () => this.#databaseNow() });
    this.#operators = new SqliteOperators({
      file: this.#file,
      now: () => this.#databaseNow(),
      write: (what, work) => this.#write(what, work),
    });
    const { clock, now } = params;
    this.#repairs = new SqliteRepairs({ file, now: () => this.#databaseNow() });
    this.#checks = new SqliteChecks({ file, clock, dialect: SQLITE_DIALECT, now });
    this.#alerts = new SqliteAlerts({
      file: this.#file,
      now: () => this.#databaseNow(),
      write: (what, work) => this.#write(what, work),
      audit: this.#audit,
    });
    this.#items = new SqliteItems({
      file: this.#file,
      leases: this.#leases,
      now: () => this.#databaseNow(),
      write: (what, work) => this.#write(what, work),
    });
  }

  async open(): Promise<void> {
    await this.#file.open();
    await migrateSqlite({
      file: this.#file,
      dialect: SQLITE_DIALECT,
      migrate: this.#migrate,
      now: () => this.#databaseNow(),
    });
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  /** For what shares this database with us: the test kit gives it to the application under test. */
  get handle(): SqliteHandle {
    return this.#file.handle;
  }

  async announce(params: store.InstanceAnnouncement): Promise<number> {
    return this.#write("announce", (now) => {
      this.#announceJobs(params.jobs, now);
      const row = this.#file.get(sql.ANNOUNCE_INSTANCE, { ...instanceColumns(params), now });
      return Number(row?.no);
    });
  }

  async announceJobs(jobs: readonly store.JobAnnouncement[]): Promise<void> {
    await this.#write("announceJobs", (now) => this.#announceJobs(jobs, now));
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
    await this.#write("retire", (now) => this.#file.run(sql.RETIRE_INSTANCE, { holder, now }));
  }

  async enqueue({ runs, isAtomic }: store.EnqueueParams): Promise<readonly store.EnqueueAnswer[]> {
    const storing = this.#write("enqueue", (now) => this.#enqueue.store({ runs, isAtomic }, now));
    return storing.catch((error: unknown) => {
      if (error instanceof Refused) return error.answers;
      throw error;
    });
  }

  readonly enqueueWithin: store.Store["enqueueWithin"] = (params) =>
    this.#within.enqueueWithin(params);
  readonly enqueueWithinSync: store.Store["enqueueWithinSync"] = (params) =>
    this.#within.enqueueWithinSync(params);

  exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    return this.#write("exchange", (now) => {
      const settled = params.settlements.length === 0 ? NOTHING : this.#leases.settle(params, now);
      const { count, freeAt } =
        params.limit > 0 && !this.#pause.isOn
          ? this.#leases.claim(params, now)
          : { count: 0, freeAt: null };
      const claims = count > 0 ? this.#leases.claimsByToken(params, now) : [];
      return { ...settled, claims, limitedInMs: freeAt === null ? null : freeAt - now };
    });
  }

  async claimsByToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly store.Claim[]> {
    return this.#file.read(() => this.#leases.claimsByToken(params, this.#databaseNow()));
  }

  renew(params: store.RenewParams): Promise<store.RenewAnswer> {
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

  poll(params: store.PollParams): Promise<store.PollAnswer> {
    return this.#write("poll", (now) => pollOnce(this.#file, params, now));
  }

  promote({ limit }: { readonly limit: number }): Promise<number> {
    return this.#write("promote", (now) => {
      const limited = this.#flow.promote({ limit }, now);
      // Those are behind their gates now: as many as are left of the limit are due beside them.
      const rest = { limit: limit - limited, now };
      this.#file.run(sql.PROMOTE, rest);
      return limited + this.#file.run(sql.DELETE_PROMOTED, rest);
    });
  }

  async reclaim(params: {
    readonly limit: number;
    readonly chance: number;
  }): Promise<readonly store.Reclaimed[]> {
    return this.#write("reclaim", (now) => this.#endings.reclaim(params, now));
  }

  async enforceCancels(params: {
    readonly graceMs: number;
    readonly chance: number;
  }): Promise<readonly store.Grant[]> {
    return this.#write("enforceCancels", (now) => this.#endings.enforceCancels(params, now));
  }

  readonly cancel: store.Store["cancel"] = (params) =>
    this.#audit.change({
      what: "cancel",
      audit: params.audit,
      work: (now) => this.#endings.cancel(params, now),
      isDone: (answer) => answer === "cancelled" || answer === "requested",
    });

  readonly retry: store.Store["retry"] = (params) =>
    this.#audit.change({
      what: "retry",
      audit: params.audit,
      work: (now) => this.#endings.retry(params, now),
      isDone: (answer) => answer === "pending",
    });

  readonly remove: store.Store["remove"] = (params) =>
    this.#audit.change({
      what: "remove",
      audit: params.audit,
      work: () => this.#endings.remove(params),
      isDone: (answer) => answer === "removed",
    });

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

  readonly pauseQueue: store.Store["pauseQueue"] = async ({ note = null, audit, ...params }) => {
    await this.#audit.change({
      what: "pauseQueue",
      audit,
      work: (now) => this.#file.run(flows.PAUSE_QUEUE, { ...params, note, now }),
      isDone: (changed) => changed > 0,
    });
  };

  readonly queues: store.Store["queues"] = () =>
    this.#file.read(() => this.#file.all(flows.QUEUES).map(toQueueRecord));

  readonly waitingFor: store.Store["waitingFor"] = (id) =>
    this.#file.read(() => {
      const row = this.#file.get(flows.WAITING_FOR, { id, now: this.#databaseNow() });
      return row ? toWaiting(row) : null;
    });

  async prune({ keepMs, keepTicksMs, keepLogsMs = keepMs, limit }: PruneParams): Promise<number> {
    return this.#write("prune", (now) => {
      const before = firstIdAt(now - keepMs);
      const old = this.#file.all(sql.OLD_RUNS, { keepMs, limit, now, before }).map((row) => row.id);
      this.#removeRuns(old);
      const rest = [
        this.#file.run(sql.PRUNE_KEYS, { limit, now }),
        this.#file.run(sql.PRUNE_INSTANCES, { keepMs, now }),
        this.#file.run(sql.PRUNE_ROLLUPS, { keepMs, now }),
        this.#file.run(PRUNE_TICKS, { keepTicksMs, limit, now }),
        this.#file.run(PRUNE_BACKFILLS, { keepMs, now }),
        this.#file.run(batchSql.PRUNE_BATCHES, { keepMs, limit, now }),
        this.#flow.prune(limit, now),
        keepLogsMs < keepMs
          ? this.#file.run(PRUNE_OLD_LOGS.sqlite, {
              before: firstIdAt(now - keepLogsMs),
              keepLogsMs,
              limit,
              now,
            })
          : 0,
        this.#alerts.prune({ keepMs, limit }, now),
        this.#pause.prune(keepMs, now),
        this.#audit.prune({ keepMs, limit }, now),
      ];
      return rest.reduce((sum, removed) => sum + removed, old.length);
    });
  }

  async pruneJob(params: PruneJobParams): Promise<PrunedJob> {
    const { job, keepMs, keepCount, after, limit } = params;
    return this.#write("prune", (now) => {
      const edge =
        keepCount === null
          ? null
          : (this.#file.get(ONE_TOO_MANY.sqlite, { job, count: keepCount })?.id ?? null);
      const until = keepMs === null ? null : now - keepMs;
      const before = until === null ? null : firstIdAt(until);
      const rows = this.#file.all(VISIT.sqlite, { job, after, before, edge, until, limit });
      const visited = rows.map((row) => ({
        id: String(row.id),
        isOld: row.is_mine === 1 && row.is_old === 1,
        isYoung: row.is_mine === 1 && row.is_old !== 1,
      }));
      const { ids, answer } = judgeVisited(visited, { after, limit });
      this.#removeRuns(ids);
      return answer(ids.length);
    });
  }

  #removeRuns(old: readonly unknown[]): void {
    const ids = JSON.stringify(old);
    for (const statement of [
      ...PRUNE_RUNS_OF_SCHEDULES,
      ...DELETE_ITEMS,
      PRUNE_PROGRESS,
      PRUNE_LOGS,
      ...sql.PRUNE,
    ]) {
      this.#file.run(statement, { ids });
    }
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

  // ── what is kept with runs ─────────────────────────────────────────────────────────────────────

  readonly progress: store.Store["progress"] = (params) =>
    this.#write("progress", (now) => this.#progress.write(params, now));
  readonly progressOf: store.Store["progressOf"] = (ids) =>
    this.#file.read(() => this.#progress.of(ids));
  readonly appendLogs: store.Store["appendLogs"] = (params) =>
    this.#write("appendLogs", (now) => this.#logs.append(params, now));
  readonly keepReply: store.Store["keepReply"] = (reply) =>
    this.#write("keepReply", (now) => this.#logs.keepReply(reply, now));
  readonly replies: store.Store["replies"] = (id) => this.#file.read(() => this.#logs.replies(id));
  readonly logs: store.Store["logs"] = (params) => this.#file.read(() => this.#logs.of(params));

  // ── schedules ──────────────────────────────────────────────────────────────────────────────────

  readonly dueSchedules: schedules.ScheduleStore["dueSchedules"] = (params) =>
    this.#schedules.dueSchedules(params);
  readonly scheduleStates: schedules.ScheduleStore["scheduleStates"] = (params) =>
    this.#schedules.scheduleStates(params);
  readonly writeSchedules: schedules.ScheduleStore["writeSchedules"] = (params) =>
    this.#schedules.writeSchedules(params);
  readonly createSchedule: schedules.ScheduleStore["createSchedule"] = (params) =>
    this.#schedules.createSchedule(params);
  readonly schedules: schedules.ScheduleStore["schedules"] = (params) =>
    this.#schedules.schedules(params);
  readonly ticks: schedules.ScheduleStore["ticks"] = (params) => this.#schedules.ticks(params);
  readonly scheduleVersions: schedules.ScheduleStore["scheduleVersions"] = (params) =>
    this.#schedules.scheduleVersions(params);
  readonly delivery: schedules.ScheduleStore["delivery"] = (params) =>
    this.#schedules.delivery(params);
  readonly completedTicks: schedules.ScheduleStore["completedTicks"] = (params) =>
    this.#schedules.completedTicks(params);
  readonly backfills: schedules.ScheduleStore["backfills"] = (params) =>
    this.#schedules.backfills(params);
  readonly seenDefinitions: schedules.ScheduleStore["seenDefinitions"] = (params) =>
    this.#schedules.seenDefinitions(params);
  readonly declaredNames: schedules.ScheduleStore["declaredNames"] = (params) =>
    this.#schedules.declaredNames(params);
  readonly schedulesByTzdata: schedules.ScheduleStore["schedulesByTzdata"] = (params) =>
    this.#schedules.schedulesByTzdata(params);
  readonly calendars: schedules.ScheduleStore["calendars"] = () => this.#schedules.calendars();
  readonly putCalendar: schedules.ScheduleStore["putCalendar"] = (params) =>
    this.#schedules.putCalendar(params);
  readonly removeCalendar: schedules.ScheduleStore["removeCalendar"] = (params) =>
    this.#schedules.removeCalendar(params);

  // ── locks ──────────────────────────────────────────────────────────────────────────────────────

  readonly acquireLock: store.Store["acquireLock"] = (params) => this.#locks.acquireLock(params);
  readonly leaveLockQueue: store.Store["leaveLockQueue"] = (params) =>
    this.#locks.leaveLockQueue(params);
  readonly extendLock: store.Store["extendLock"] = (params) => this.#locks.extendLock(params);
  readonly releaseLock: store.Store["releaseLock"] = (params) => this.#locks.releaseLock(params);
  readonly revokeLock: store.Store["revokeLock"] = (params) => this.#locks.revokeLock(params);
  readonly locks: store.Store["locks"] = (params) => this.#locks.locks(params);
  readonly lockHistory: store.Store["lockHistory"] = (params) => this.#locks.lockHistory(params);
  readonly lockStats: store.Store["lockStats"] = () => this.#locks.lockStats();
  readonly tidyLocks: store.Store["tidyLocks"] = (params) => this.#locks.tidyLocks(params);
  // ── runs that runs make ────────────────────────────────────────────────────────────────────────

  readonly enqueueChildren: store.Store["enqueueChildren"] = (params) =>
    this.#write("enqueueChildren", (now) => this.#batches.enqueueChildren(params, now));
  readonly enqueueBatch: store.Store["enqueueBatch"] = (params) =>
    this.#write("enqueueBatch", (now) => this.#batches.enqueueBatch(params, now));
  readonly retryChildren: store.Store["retryChildren"] = (params) =>
    this.#audit.change({
      what: "retryChildren",
      audit: params.audit,
      work: (now) => this.#batches.retryChildren(params, now),
      isDone: (revived) => revived.length > 0,
    });

  async batches(run: RunId): Promise<readonly batches.BatchRecord[]> {
    const rows = await this.#file.read(() => this.#file.all(batchSql.BATCHES, { run }));
    return rows.map(toBatchRecord);
  }

  async children(filter: batches.ChildFilter): Promise<readonly store.RunRecord[]> {
    const { parent, batch = null, before = null, status, limit } = filter;
    const code = status === undefined ? null : statusOrder(status);
    const rows = await this.#file.read(() =>
      this.#file.all(batchSql.CHILDREN, { parent, batch, before, status: code, limit }),
    );
    return rows.map(toRunRecord);
  }
  // ── items ──────────────────────────────────────────────────────────────────────────────────────

  readonly storeItems: store.Store["storeItems"] = (params) => this.#items.storeItems(params);
  readonly doneItems: store.Store["doneItems"] = (params) => this.#items.doneItems(params);
  readonly items: store.Store["items"] = (params) => this.#items.items(params);
  readonly commit: store.Store["commit"] = (params) => this.#items.commit(params);
  readonly commitItem: store.Store["commitItem"] = (params) => this.#items.commitItem(params);
  readonly grantState: store.Store["grantState"] = (params) => this.#items.grantState(params);

  async heldRun(grant: store.Grant): Promise<HeldRun<store.Claim> | null> {
    return this.#file.read(() => this.#leases.held(grant, this.#databaseNow()));
  }

  // ── operators ──────────────────────────────────────────────────────────────────────────────────

  readonly expireStale: store.Store["expireStale"] = (params) =>
    this.#operators.expireStale(params);
  readonly instances: store.Store["instances"] = (params) => this.#operators.instances(params);
  readonly glance: store.Store["glance"] = () => this.#operators.glance();
  readonly statistics: store.Store["statistics"] = (params) => this.#operators.statistics(params);
  readonly failures: store.Store["failures"] = (params) => this.#operators.failures(params);
  readonly timeline: store.Store["timeline"] = (params) => this.#operators.timeline(params);
  readonly figures: store.Store["figures"] = (params) => this.#figures.figures(params);
  readonly scheduleNames: store.Store["scheduleNames"] = (ids) => this.#figures.scheduleNames(ids);
  /** One handle, on which one thing is done at a time. */
  readonly load: store.Store["load"] = {
    statements: 0,
    work: 1,
    workMax: 1,
    transactions: 0,
    transactionsMax: 1,
    waiting: 0,
  };

  readonly check: store.Store["check"] = (params) => this.#checks.check(params);
  readonly mend: store.Store["mend"] = (params) => this.#repairs.mend(params);
  readonly remains: store.Store["remains"] = () => this.#repairs.remains();
  readonly recover: store.Store["recover"] = (params) => this.#repairs.recover(params);
  readonly vitals: store.Store["vitals"] = (params) => this.#repairs.vitals(params);
  readonly checkScript: store.Store["checkScript"] = (own) => this.#checks.checkScript(own);
  // ── alerts ─────────────────────────────────────────────────────────────────────────────────────

  readonly takeAlertTurn: store.Store["takeAlertTurn"] = (params) =>
    this.#alerts.takeAlertTurn(params);
  readonly sightOfSchedules: store.Store["sightOfSchedules"] = () =>
    this.#alerts.sightOfSchedules();
  readonly sightOfRest: store.Store["sightOfRest"] = (params) => this.#alerts.sightOfRest(params);
  readonly openAlerts: store.Store["openAlerts"] = () => this.#alerts.openAlerts();
  readonly writeAlerts: store.Store["writeAlerts"] = (params) => this.#alerts.writeAlerts(params);
  readonly claimDeliveries: store.Store["claimDeliveries"] = (params) =>
    this.#alerts.claimDeliveries(params);
  readonly endDelivery: store.Store["endDelivery"] = (params) => this.#alerts.endDelivery(params);
  readonly alerts: store.Store["alerts"] = (params) => this.#alerts.alerts(params);
  readonly markAlert: store.Store["markAlert"] = (params) => this.#alerts.markAlert(params);
  readonly pauseAll: store.Store["pauseAll"] = (params) => this.#pause.pauseAll(params);
  readonly resumeAll: store.Store["resumeAll"] = (params) => this.#pause.resumeAll(params);
  readonly quietInstance: store.Store["quietInstance"] = (params) =>
    this.#pause.quietInstance(params);
  readonly addAudit: store.Store["addAudit"] = (entry) => this.#audit.addAudit(entry);
  readonly audit: store.Store["audit"] = (filter) => this.#audit.audit(filter);
  readonly pauseOfAll: store.Store["pauseOfAll"] = () => this.#pause.pauseOfAll();

  // ── clock and transactions ─────────────────────────────────────────────────────────────────────

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
