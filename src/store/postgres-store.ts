// The store on PostgreSQL: every verb is one statement on one of two connections. `work` carries
// enqueues and exchanges, `beat` renewals, polls and the reaper, and listens
// (docs/decisions/0002-two-connections.md). Here is who does what; how is in the file of each part.

import { MigrationError } from "../core/errors.js";
import type { Clock } from "../core/ports.js";
import { checkPool, LinkFailure, type PostgresSource, unavailable } from "./postgres.js";
import { PostgresAlerts } from "./postgres-alerts.js";
import { PostgresAsker } from "./postgres-asker.js";
import { PostgresAudit } from "./postgres-audit.js";
import { PostgresBatches } from "./postgres-batches.js";
import { PostgresChecks } from "./postgres-checks.js";
import { PostgresEnqueue } from "./postgres-enqueue.js";
import { PostgresExchange } from "./postgres-exchange.js";
import { PostgresFigures } from "./postgres-figures.js";
import { PostgresInstances } from "./postgres-instances.js";
import { PostgresItems } from "./postgres-items.js";
import { PostgresLeases } from "./postgres-leases.js";
import { PostgresLocks } from "./postgres-locks.js";
import { PostgresLogs } from "./postgres-logs.js";
import { channelOf, createSchema, schemaVersion } from "./postgres-migrate.js";
import { PostgresOperators } from "./postgres-operators.js";
import { PostgresPause } from "./postgres-pause.js";
import { PostgresPoll } from "./postgres-poll.js";
import { PostgresProgress } from "./postgres-progress.js";
import { PostgresRepairs } from "./postgres-repairs.js";
import { PostgresRetention } from "./postgres-retention.js";
import { PostgresRuns } from "./postgres-runs.js";
import { PostgresSchedules } from "./postgres-schedules.js";
import { PostgresTransactions, TRANSACTIONS_MAX } from "./postgres-transactions.js";
import { newTurns } from "./postgres-turns.js";
import { PostgresWithin } from "./postgres-within.js";
import { SCHEMA_VERSION } from "./sql/postgres-schema.js";
import type * as store from "./store.js";

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
  readonly #params: PostgresStoreParams;
  readonly #listeners = new Set<store.WakeListener>();
  readonly #asker: PostgresAsker;
  readonly #transactions: PostgresTransactions;
  readonly #enqueue: PostgresEnqueue;
  readonly #within: PostgresWithin;
  readonly #exchange: PostgresExchange;
  readonly #leases: PostgresLeases;
  readonly #poll: PostgresPoll;
  readonly #runs: PostgresRuns;
  readonly #batches: PostgresBatches;
  readonly #items: PostgresItems;
  readonly #progress: PostgresProgress;
  readonly #logs: PostgresLogs;
  readonly #schedules: PostgresSchedules;
  readonly #locks: PostgresLocks;
  readonly #instances: PostgresInstances;
  readonly #pause: PostgresPause;
  readonly #audit: PostgresAudit;
  readonly #operators: PostgresOperators;
  readonly #figures: PostgresFigures;
  readonly #alerts: PostgresAlerts;
  readonly #checks: PostgresChecks;
  readonly #repairs: PostgresRepairs;
  readonly #retention: PostgresRetention;

  constructor(params: PostgresStoreParams) {
    this.#params = params;
    const { source, schema, clock, now } = params;
    const channel = channelOf(schema);
    const onNotice = (from: number) => {
      const isOwn = asker.work.serverPid === from || asker.beat.serverPid === from;
      for (const listener of this.#listeners) listener({ isOwn });
    };
    const wake = () => this.wake();
    const asker = new PostgresAsker({ source, schema, clock, channel, onNotice, now });
    const transactions = new PostgresTransactions({ source, clock });
    const enqueue = new PostgresEnqueue({ asker, transactions, channel, wake });
    const audit = new PostgresAudit(asker, transactions);
    const poll = new PostgresPoll(asker);
    const rare = { asker, source, clock, inTurn: newTurns() };
    this.#asker = asker;
    this.#transactions = transactions;
    this.#enqueue = enqueue;
    this.#within = new PostgresWithin({ asker, enqueue });
    this.#exchange = new PostgresExchange({ asker, clock, poll });
    this.#leases = new PostgresLeases(asker);
    this.#poll = poll;
    this.#runs = new PostgresRuns({ asker, clock, audit });
    this.#batches = new PostgresBatches({ asker, transactions, enqueue, wake, audit });
    this.#items = new PostgresItems({ asker, source, clock });
    this.#progress = new PostgresProgress(asker);
    this.#logs = new PostgresLogs(asker);
    this.#schedules = new PostgresSchedules({ asker, transactions, channel, enqueue, audit });
    this.#locks = new PostgresLocks({ asker, clock, audit });
    this.#instances = new PostgresInstances({ asker, enqueue });
    this.#pause = new PostgresPause(asker, audit);
    this.#audit = audit;
    this.#operators = new PostgresOperators(asker);
    this.#figures = new PostgresFigures(asker);
    this.#alerts = new PostgresAlerts(asker, audit);
    this.#checks = new PostgresChecks(rare);
    this.#repairs = new PostgresRepairs(rare);
    this.#retention = new PostgresRetention({ ...rare, schema, audit });
  }

  async open(): Promise<void> {
    const { source, schema, clock, migrate } = this.#params;
    const asker = this.#asker;
    checkPool(source);
    try {
      const found = migrate === "auto" ? await schemaVersion(asker) : undefined;
      if (found === null || (found && found.version < SCHEMA_VERSION))
        await createSchema({ asker, source, clock, schema });
      const version = await schemaVersion(asker);
      if (version === null || version.minCompatible > SCHEMA_VERSION) {
        throw new MigrationError(
          version === null
            ? `The schema "${schema}" has no Holdfast tables; run \`holdfast migrate\` or set migrate: "auto".`
            : `The tables are of version ${version.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`,
          version?.version ?? null,
        );
      }
      if (migrate === "auto") await this.#retention.makeDays();
    } catch (error) {
      if (error instanceof MigrationError) throw error;
      throw unavailable(source, error instanceof LinkFailure ? error.cause : error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#asker.close(), this.#transactions.close(), this.#items.close()]);
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    const text = `notify "${channelOf(this.#params.schema)}"`;
    this.#asker.work.query({ text }).catch(() => undefined);
  }

  /** Work and beat, transactions of users, our own, and one for what is rare: days, checks, repairs. */
  get connectionsMax(): number {
    const { source } = this.#params;
    const { workMax, transactionsMax } = this.load;
    const wanted = workMax + transactionsMax + TRANSACTIONS_MAX + 1;
    const { max } = typeof source === "string" ? { max: wanted } : source.options;
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

  // ── runs ───────────────────────────────────────────────────────────────────────────────────────

  enqueue: store.Store["enqueue"] = (params) => this.#enqueue.enqueue(params);
  enqueueWithin: store.Store["enqueueWithin"] = (params) => this.#within.enqueueWithin(params);
  enqueueWithinSync: store.Store["enqueueWithinSync"] = () => this.#within.enqueueWithinSync();
  exchange: store.Store["exchange"] = (params) => this.#exchange.exchange(params);
  claimsByToken: store.Store["claimsByToken"] = (params) => this.#exchange.claimsByToken(params);
  heldRun: store.Store["heldRun"] = (grant) => this.#exchange.heldRun(grant);
  renew: store.Store["renew"] = (params) => this.#leases.renew(params);
  markStarted: store.Store["markStarted"] = (grants) => this.#leases.markStarted(grants);
  reclaim: store.Store["reclaim"] = (params) => this.#leases.reclaim(params);
  enforceCancels: store.Store["enforceCancels"] = (params) => this.#leases.enforceCancels(params);
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
