// The store on SQLite: every verb is one short write transaction, so its decisions and its writes cannot be
// interleaved with another's. Where PostgreSQL decides inside a statement, the parts decide in between, with
// the same pure functions that the engine uses. Here is who does what; how is in the file of each part.

import type { Chance, Clock } from "../core/ports.js";
import type { Dialect } from "./sql/template.js";
import { SqliteFile, type SqliteHandle, type SqliteSource } from "./sqlite.js";
import { SqliteAlerts } from "./sqlite-alerts.js";
import { SqliteAsker } from "./sqlite-asker.js";
import { SqliteAudit } from "./sqlite-audit.js";
import { SqliteBatches } from "./sqlite-batches.js";
import { SqliteChecks } from "./sqlite-checks.js";
import { SqliteEnqueue } from "./sqlite-enqueue.js";
import { SqliteExchange } from "./sqlite-exchange.js";
import { SqliteFigures } from "./sqlite-figures.js";
import { SqliteFlow } from "./sqlite-flow.js";
import { SqliteHolding } from "./sqlite-holding.js";
import { SqliteInstances } from "./sqlite-instances.js";
import { SqliteItems } from "./sqlite-items.js";
import { SqliteLeases } from "./sqlite-leases.js";
import { SqliteLocks } from "./sqlite-locks.js";
import { SqliteLogs } from "./sqlite-logs.js";
import { migrateSqlite } from "./sqlite-migrate.js";
import { SqliteOperators } from "./sqlite-operators.js";
import { SqlitePause } from "./sqlite-pause.js";
import { SqlitePoll } from "./sqlite-poll.js";
import { SqliteProgress } from "./sqlite-progress.js";
import { SqliteRepairs } from "./sqlite-repairs.js";
import { SqliteRetention } from "./sqlite-retention.js";
import { SqliteRuns } from "./sqlite-runs.js";
import { SqliteSchedules } from "./sqlite-schedules.js";
import { SqliteWithin } from "./sqlite-within.js";
import type * as store from "./store.js";

export const SQLITE_DIALECT: Dialect = {
  // The public views have the names of the other engine's, which has a schema for them.
  name: (plain) => (plain.startsWith("v_") ? plain : `holdfast_${plain}`),
  now: "cast(unixepoch('subsec') * 1000 as integer)",
};

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
  /** One handle, on which one thing is done at a time. */
  readonly load: store.Store["load"] = {
    statements: 0,
    work: 1,
    workMax: 1,
    transactions: 0,
    transactionsMax: 1,
    waiting: 0,
  };
  readonly #migrate: "auto" | "check" | "off";
  readonly #listeners = new Set<store.WakeListener>();
  readonly #asker: SqliteAsker;
  readonly #enqueue: SqliteEnqueue;
  readonly #within: SqliteWithin;
  readonly #exchange: SqliteExchange;
  readonly #holding: SqliteHolding;
  readonly #poll: SqlitePoll;
  readonly #runs: SqliteRuns;
  readonly #batches: SqliteBatches;
  readonly #items: SqliteItems;
  readonly #progress: SqliteProgress;
  readonly #logs: SqliteLogs;
  readonly #schedules: SqliteSchedules;
  readonly #locks: SqliteLocks;
  readonly #instances: SqliteInstances;
  readonly #pause: SqlitePause;
  readonly #audit: SqliteAudit;
  readonly #operators: SqliteOperators;
  readonly #figures: SqliteFigures;
  readonly #alerts: SqliteAlerts;
  readonly #checks: SqliteChecks;
  readonly #repairs: SqliteRepairs;
  readonly #retention: SqliteRetention;

  constructor(params: SqliteStoreParams) {
    const { clock, now } = params;
    const file = new SqliteFile({ ...params, dialect: SQLITE_DIALECT });
    const asker = new SqliteAsker({ file, now });
    const flow = new SqliteFlow(file);
    const leases = new SqliteLeases(file, flow);
    const enqueue = new SqliteEnqueue(asker, flow);
    const audit = new SqliteAudit(asker);
    const pause = new SqlitePause(file, audit);
    const alerts = new SqliteAlerts(asker, audit);
    this.#migrate = params.migrate;
    this.#asker = asker;
    this.#enqueue = enqueue;
    this.#within = new SqliteWithin({ asker, enqueue });
    this.#exchange = new SqliteExchange({ asker, leases, pause });
    this.#holding = new SqliteHolding(asker, leases);
    this.#poll = new SqlitePoll(asker, flow);
    this.#runs = new SqliteRuns({ asker, leases, flow, audit });
    this.#batches = new SqliteBatches({ asker, enqueue, leases, flow, audit });
    this.#items = new SqliteItems(asker, leases);
    this.#progress = new SqliteProgress(asker, leases);
    this.#logs = new SqliteLogs(asker, leases);
    this.#schedules = new SqliteSchedules({ asker, enqueue, leases, flow, pause, audit });
    this.#locks = new SqliteLocks(asker, audit);
    this.#instances = new SqliteInstances({ asker, enqueue, flow });
    this.#pause = pause;
    this.#audit = audit;
    this.#operators = new SqliteOperators(asker);
    this.#figures = new SqliteFigures(asker);
    this.#alerts = alerts;
    this.#checks = new SqliteChecks({ file, clock, dialect: SQLITE_DIALECT, now });
    this.#repairs = new SqliteRepairs(asker);
    this.#retention = new SqliteRetention({ asker, flow, alerts, pause, audit });
  }

  async open(): Promise<void> {
    const { file } = this.#asker;
    await file.open();
    await migrateSqlite({
      file,
      dialect: SQLITE_DIALECT,
      migrate: this.#migrate,
      now: () => this.#asker.now(),
    });
  }

  async close(): Promise<void> {
    await this.#asker.file.close();
  }

  /** For what shares this database with us: the test kit gives it to the application under test. */
  get handle(): SqliteHandle {
    return this.#asker.file.handle;
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    void this.#asker.file.watch(() => {
      for (const each of this.#listeners) each();
    });
    return () => this.#listeners.delete(listener);
  }

  /** The write itself is what other processes notice. */
  wake(): void {}

  // ── runs ───────────────────────────────────────────────────────────────────────────────────────

  enqueue: store.Store["enqueue"] = (params) => this.#enqueue.enqueue(params);
  enqueueWithin: store.Store["enqueueWithin"] = (params) => this.#within.enqueueWithin(params);
  enqueueWithinSync: store.Store["enqueueWithinSync"] = (params) =>
    this.#within.enqueueWithinSync(params);
  exchange: store.Store["exchange"] = (params) => this.#exchange.exchange(params);
  claimsByToken: store.Store["claimsByToken"] = (params) => this.#exchange.claimsByToken(params);
  heldRun: store.Store["heldRun"] = (grant) => this.#exchange.heldRun(grant);
  renew: store.Store["renew"] = (params) => this.#holding.renew(params);
  markStarted: store.Store["markStarted"] = (grants) => this.#holding.markStarted(grants);
  reclaim: store.Store["reclaim"] = (params) => this.#holding.reclaim(params);
  enforceCancels: store.Store["enforceCancels"] = (params) => this.#holding.enforceCancels(params);
  poll: store.Store["poll"] = (params) => this.#poll.poll(params);
  promote: store.Store["promote"] = (params) => this.#poll.promote(params);
  cancel: store.Store["cancel"] = (params) => this.#runs.cancel(params);
  retry: store.Store["retry"] = (params) => this.#runs.retry(params);
  remove: store.Store["remove"] = (params) => this.#runs.remove(params);
  run: store.Store["run"] = (id) => this.#runs.run(id);
  runs: store.Store["runs"] = (filter) => this.#runs.runs(filter);
  attempts: store.Store["attempts"] = (id) => this.#runs.attempts(id);
  terminal: store.Store["terminal"] = (ids) => this.#runs.terminal(ids);
  waitingFor: store.Store["waitingFor"] = (id) => this.#runs.waitingFor(id);

  enqueueChildren: store.Store["enqueueChildren"] = (params) =>
    this.#batches.enqueueChildren(params);
  enqueueBatch: store.Store["enqueueBatch"] = (params) => this.#batches.enqueueBatch(params);
  batches: store.Store["batches"] = (run) => this.#batches.batches(run);
  children: store.Store["children"] = (filter) => this.#batches.children(filter);
  retryChildren: store.Store["retryChildren"] = (params) => this.#batches.retryChildren(params);

  storeItems: store.Store["storeItems"] = (params) => this.#items.storeItems(params);
  doneItems: store.Store["doneItems"] = (params) => this.#items.doneItems(params);
  items: store.Store["items"] = (params) => this.#items.items(params);
  commit: store.Store["commit"] = (params) => this.#items.commit(params);
  commitItem: store.Store["commitItem"] = (params) => this.#items.commitItem(params);
  grantState: store.Store["grantState"] = (params) => this.#items.grantState(params);
  progress: store.Store["progress"] = (params) => this.#progress.write(params);
  progressOf: store.Store["progressOf"] = (ids) => this.#progress.of(ids);
  appendLogs: store.Store["appendLogs"] = (params) => this.#logs.append(params);
  keepReply: store.Store["keepReply"] = (reply) => this.#logs.keepReply(reply);
  replies: store.Store["replies"] = (id) => this.#logs.replies(id);
  logs: store.Store["logs"] = (params) => this.#logs.of(params);

  // ── schedules ──────────────────────────────────────────────────────────────────────────────────

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

  // ── locks ──────────────────────────────────────────────────────────────────────────────────────

  acquireLock: store.Store["acquireLock"] = (params) => this.#locks.acquireLock(params);
  leaveLockQueue: store.Store["leaveLockQueue"] = (params) => this.#locks.leaveLockQueue(params);
  extendLock: store.Store["extendLock"] = (params) => this.#locks.extendLock(params);
  releaseLock: store.Store["releaseLock"] = (params) => this.#locks.releaseLock(params);
  revokeLock: store.Store["revokeLock"] = (params) => this.#locks.revokeLock(params);
  locks: store.Store["locks"] = (params) => this.#locks.locks(params);
  lockHistory: store.Store["lockHistory"] = (params) => this.#locks.lockHistory(params);
  lockStats: store.Store["lockStats"] = () => this.#locks.lockStats();
  tidyLocks: store.Store["tidyLocks"] = (params) => this.#locks.tidyLocks(params);

  // ── instances and operators ────────────────────────────────────────────────────────────────────

  announceJobs: store.Store["announceJobs"] = (jobs) => this.#instances.announceJobs(jobs);
  announce: store.Store["announce"] = (params) => this.#instances.announce(params);
  announcedJobs: store.Store["announcedJobs"] = () => this.#instances.announcedJobs();
  retire: store.Store["retire"] = (params) => this.#instances.retire(params);
  instances: store.Store["instances"] = (params) => this.#operators.instances(params);
  pauseQueue: store.Store["pauseQueue"] = (params) => this.#pause.pauseQueue(params);
  queues: store.Store["queues"] = () => this.#pause.queues();
  pauseAll: store.Store["pauseAll"] = (params) => this.#pause.pauseAll(params);
  resumeAll: store.Store["resumeAll"] = (params) => this.#pause.resumeAll(params);
  pauseOfAll: store.Store["pauseOfAll"] = () => this.#pause.pauseOfAll();
  quietInstance: store.Store["quietInstance"] = (params) => this.#pause.quietInstance(params);
  addAudit: store.Store["addAudit"] = (entry) => this.#audit.addAudit(entry);
  audit: store.Store["audit"] = (filter) => this.#audit.audit(filter);
  expireStale: store.Store["expireStale"] = (params) => this.#operators.expireStale(params);
  glance: store.Store["glance"] = () => this.#operators.glance();
  statistics: store.Store["statistics"] = (params) => this.#operators.statistics(params);
  failures: store.Store["failures"] = (params) => this.#operators.failures(params);
  timeline: store.Store["timeline"] = (params) => this.#operators.timeline(params);
  figures: store.Store["figures"] = (params) => this.#figures.figures(params);
  scheduleNames: store.Store["scheduleNames"] = (ids) => this.#figures.scheduleNames(ids);

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

  // ── upkeep ─────────────────────────────────────────────────────────────────────────────────────

  check: store.Store["check"] = (params) => this.#checks.check(params);
  checkScript: store.Store["checkScript"] = (own) => this.#checks.checkScript(own);
  mend: store.Store["mend"] = (params) => this.#repairs.mend(params);
  remains: store.Store["remains"] = () => this.#repairs.remains();
  recover: store.Store["recover"] = (params) => this.#repairs.recover(params);
  vitals: store.Store["vitals"] = (params) => this.#repairs.vitals(params);
  prune: store.Store["prune"] = (params) => this.#retention.prune(params);
  pruneJob: store.Store["pruneJob"] = (params) => this.#retention.pruneJob(params);
}
