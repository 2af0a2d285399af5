// A store as both engines make it: of parts, each of which keeps the verbs of a noun. Here is who keeps what; how is
// in the files of the parts (`postgres-runs.ts`, `runs.ts` and so on).

import type { AccessStore } from "./access.js";
import type { AlertStore } from "./alerts.js";
import type { AuditStore } from "./audit.js";
import type { CheckStore } from "./checks.js";
import type { FiguresStore } from "./figures.js";
import type { ItemStore } from "./items.js";
import type { LockStore } from "./locks.js";
import type { LogStore } from "./logs.js";
import type { OperatorStore } from "./operators.js";
import type { PauseStore } from "./pause.js";
import type { ProgressStore } from "./progress.js";
import type { RepairStore } from "./repairs.js";
import type { RetentionStore } from "./retention.js";
import type { ScheduleStore } from "./schedule-store.js";
import type { BatchStore, Settlement, Store, WakeListener } from "./store.js";
import type { TimelineStore } from "./timeline.js";

export type ExchangeVerbs = Pick<Store, "exchange" | "claimsByToken" | "heldRun">;
export type LeaseVerbs = Pick<Store, "renew" | "markStarted" | "reclaim" | "enforceCancels">;
export type RunVerbs = Pick<
  Store,
  | "cancel"
  | "retry"
  | "remove"
  | "run"
  | "runs"
  | "runsLike"
  | "attempts"
  | "terminal"
  | "waitingFor"
>;
export type InstanceVerbs = Pick<
  Store,
  "announceJobs" | "announce" | "announceRemote" | "localJobs" | "announcedJobs" | "retire"
>;

export type StoreParts = {
  readonly enqueue: Pick<Store, "enqueue">;
  readonly within: Pick<Store, "enqueueWithin" | "enqueueWithinSync">;
  readonly exchange: ExchangeVerbs;
  readonly leases: LeaseVerbs;
  readonly poll: Pick<Store, "poll" | "promote">;
  readonly runs: RunVerbs;
  readonly batches: BatchStore;
  readonly items: ItemStore<Settlement>;
  readonly progress: {
    readonly write: ProgressStore["progress"];
    readonly of: ProgressStore["progressOf"];
  };
  readonly logs: Pick<LogStore, "keepReply" | "replies"> & {
    readonly append: LogStore["appendLogs"];
    readonly kept: LogStore["keptLog"];
    readonly of: LogStore["logs"];
  };
  readonly schedules: ScheduleStore;
  readonly locks: LockStore;
  readonly instances: InstanceVerbs;
  readonly pause: PauseStore & Pick<Store, "pauseQueue" | "queues">;
  readonly audit: AuditStore;
  readonly access: AccessStore;
  readonly operators: OperatorStore & TimelineStore;
  readonly figures: Omit<FiguresStore, "load">;
  readonly alerts: AlertStore;
  readonly checks: CheckStore;
  readonly repairs: RepairStore;
  readonly retention: RetentionStore;
};

export abstract class StoreOfParts implements Store {
  abstract readonly engine: Store["engine"];
  abstract readonly connectionsMax: number;
  abstract readonly load: Store["load"];
  readonly #parts: StoreParts;

  constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  abstract open(): Promise<void>;
  abstract close(options?: { readonly releasesFiles: boolean }): Promise<void>;
  abstract onWake(listener: WakeListener): () => void;
  abstract wake(): void;

  // ── runs ───────────────────────────────────────────────────────────────────────────────────────

  enqueue: Store["enqueue"] = (params) => this.#parts.enqueue.enqueue(params);
  enqueueWithin: Store["enqueueWithin"] = (params) => this.#parts.within.enqueueWithin(params);
  enqueueWithinSync: Store["enqueueWithinSync"] = (params) =>
    this.#parts.within.enqueueWithinSync(params);
  exchange: Store["exchange"] = (params) => this.#parts.exchange.exchange(params);
  claimsByToken: Store["claimsByToken"] = (params) => this.#parts.exchange.claimsByToken(params);
  heldRun: Store["heldRun"] = (grant) => this.#parts.exchange.heldRun(grant);
  renew: Store["renew"] = (params) => this.#parts.leases.renew(params);
  markStarted: Store["markStarted"] = (grants) => this.#parts.leases.markStarted(grants);
  reclaim: Store["reclaim"] = (params) => this.#parts.leases.reclaim(params);
  enforceCancels: Store["enforceCancels"] = (params) => this.#parts.leases.enforceCancels(params);
  poll: Store["poll"] = (params) => this.#parts.poll.poll(params);
  promote: Store["promote"] = (params) => this.#parts.poll.promote(params);
  cancel: Store["cancel"] = (params) => this.#parts.runs.cancel(params);
  retry: Store["retry"] = (params) => this.#parts.runs.retry(params);
  remove: Store["remove"] = (params) => this.#parts.runs.remove(params);
  run: Store["run"] = (id) => this.#parts.runs.run(id);
  runs: Store["runs"] = (filter) => this.#parts.runs.runs(filter);
  runsLike: Store["runsLike"] = (params) => this.#parts.runs.runsLike(params);
  attempts: Store["attempts"] = (id) => this.#parts.runs.attempts(id);
  terminal: Store["terminal"] = (ids) => this.#parts.runs.terminal(ids);
  waitingFor: Store["waitingFor"] = (id) => this.#parts.runs.waitingFor(id);

  enqueueChildren: Store["enqueueChildren"] = (params) =>
    this.#parts.batches.enqueueChildren(params);
  enqueueBatch: Store["enqueueBatch"] = (params) => this.#parts.batches.enqueueBatch(params);
  batches: Store["batches"] = (run) => this.#parts.batches.batches(run);
  children: Store["children"] = (filter) => this.#parts.batches.children(filter);
  retryChildren: Store["retryChildren"] = (params) => this.#parts.batches.retryChildren(params);

  storeItems: Store["storeItems"] = (params) => this.#parts.items.storeItems(params);
  doneItems: Store["doneItems"] = (params) => this.#parts.items.doneItems(params);
  items: Store["items"] = (params) => this.#parts.items.items(params);
  commit: Store["commit"] = (params) => this.#parts.items.commit(params);
  commitItem: Store["commitItem"] = (params) => this.#parts.items.commitItem(params);
  grantState: Store["grantState"] = (params) => this.#parts.items.grantState(params);
  progress: Store["progress"] = (params) => this.#parts.progress.write(params);
  progressOf: Store["progressOf"] = (ids) => this.#parts.progress.of(ids);
  appendLogs: Store["appendLogs"] = (params) => this.#parts.logs.append(params);
  keepReply: Store["keepReply"] = (reply) => this.#parts.logs.keepReply(reply);
  replies: Store["replies"] = (id) => this.#parts.logs.replies(id);
  keptLog: Store["keptLog"] = (params) => this.#parts.logs.kept(params);
  logs: Store["logs"] = (params) => this.#parts.logs.of(params);

  // ── schedules ──────────────────────────────────────────────────────────────────────────────────

  dueSchedules: Store["dueSchedules"] = (params) => this.#parts.schedules.dueSchedules(params);
  scheduleStates: Store["scheduleStates"] = (params) =>
    this.#parts.schedules.scheduleStates(params);
  writeSchedules: Store["writeSchedules"] = (params) =>
    this.#parts.schedules.writeSchedules(params);
  createSchedule: Store["createSchedule"] = (params) =>
    this.#parts.schedules.createSchedule(params);
  schedules: Store["schedules"] = (params) => this.#parts.schedules.schedules(params);
  ticks: Store["ticks"] = (params) => this.#parts.schedules.ticks(params);
  scheduleVersions: Store["scheduleVersions"] = (params) =>
    this.#parts.schedules.scheduleVersions(params);
  delivery: Store["delivery"] = (params) => this.#parts.schedules.delivery(params);
  completedTicks: Store["completedTicks"] = (params) =>
    this.#parts.schedules.completedTicks(params);
  backfills: Store["backfills"] = (params) => this.#parts.schedules.backfills(params);
  seenDefinitions: Store["seenDefinitions"] = (params) =>
    this.#parts.schedules.seenDefinitions(params);
  declaredNames: Store["declaredNames"] = (params) => this.#parts.schedules.declaredNames(params);
  schedulesByTzdata: Store["schedulesByTzdata"] = (params) =>
    this.#parts.schedules.schedulesByTzdata(params);
  putCalendar: Store["putCalendar"] = (params) => this.#parts.schedules.putCalendar(params);
  removeCalendar: Store["removeCalendar"] = (params) =>
    this.#parts.schedules.removeCalendar(params);
  calendars: Store["calendars"] = () => this.#parts.schedules.calendars();

  // ── locks ──────────────────────────────────────────────────────────────────────────────────────

  acquireLock: Store["acquireLock"] = (params) => this.#parts.locks.acquireLock(params);
  leaveLockQueue: Store["leaveLockQueue"] = (params) => this.#parts.locks.leaveLockQueue(params);
  extendLock: Store["extendLock"] = (params) => this.#parts.locks.extendLock(params);
  releaseLock: Store["releaseLock"] = (params) => this.#parts.locks.releaseLock(params);
  revokeLock: Store["revokeLock"] = (params) => this.#parts.locks.revokeLock(params);
  locks: Store["locks"] = (params) => this.#parts.locks.locks(params);
  lockHistory: Store["lockHistory"] = (params) => this.#parts.locks.lockHistory(params);
  lockStats: Store["lockStats"] = () => this.#parts.locks.lockStats();
  tidyLocks: Store["tidyLocks"] = (params) => this.#parts.locks.tidyLocks(params);

  // ── instances and operators ────────────────────────────────────────────────────────────────────

  announceJobs: Store["announceJobs"] = (jobs) => this.#parts.instances.announceJobs(jobs);
  announce: Store["announce"] = (params) => this.#parts.instances.announce(params);
  announceRemote: Store["announceRemote"] = (params) =>
    this.#parts.instances.announceRemote(params);
  localJobs: Store["localJobs"] = (names) => this.#parts.instances.localJobs(names);
  announcedJobs: Store["announcedJobs"] = () => this.#parts.instances.announcedJobs();
  retire: Store["retire"] = (params) => this.#parts.instances.retire(params);
  instances: Store["instances"] = (params) => this.#parts.operators.instances(params);
  pauseQueue: Store["pauseQueue"] = (params) => this.#parts.pause.pauseQueue(params);
  queues: Store["queues"] = () => this.#parts.pause.queues();
  pauseAll: Store["pauseAll"] = (params) => this.#parts.pause.pauseAll(params);
  resumeAll: Store["resumeAll"] = (params) => this.#parts.pause.resumeAll(params);
  pauseOfAll: Store["pauseOfAll"] = () => this.#parts.pause.pauseOfAll();
  quietInstance: Store["quietInstance"] = (params) => this.#parts.pause.quietInstance(params);
  addAudit: Store["addAudit"] = (entry) => this.#parts.audit.addAudit(entry);
  audit: Store["audit"] = (filter) => this.#parts.audit.audit(filter);
  beginSession: Store["beginSession"] = (params) => this.#parts.access.beginSession(params);
  sessionSecret: Store["sessionSecret"] = (digest) => this.#parts.access.sessionSecret(digest);
  endSession: Store["endSession"] = (params) => this.#parts.access.endSession(params);
  createKey: Store["createKey"] = (params) => this.#parts.access.createKey(params);
  accessKeys: Store["accessKeys"] = () => this.#parts.access.accessKeys();
  accessKey: Store["accessKey"] = (by) => this.#parts.access.accessKey(by);
  revokeKey: Store["revokeKey"] = (params) => this.#parts.access.revokeKey(params);
  touchKey: Store["touchKey"] = (name) => this.#parts.access.touchKey(name);
  expireStale: Store["expireStale"] = (params) => this.#parts.operators.expireStale(params);
  glance: Store["glance"] = () => this.#parts.operators.glance();
  statistics: Store["statistics"] = (params) => this.#parts.operators.statistics(params);
  failures: Store["failures"] = (params) => this.#parts.operators.failures(params);
  timeline: Store["timeline"] = (params) => this.#parts.operators.timeline(params);
  figures: Store["figures"] = (params) => this.#parts.figures.figures(params);
  scheduleNames: Store["scheduleNames"] = (ids) => this.#parts.figures.scheduleNames(ids);

  takeAlertTurn: Store["takeAlertTurn"] = (params) => this.#parts.alerts.takeAlertTurn(params);
  sightOfSchedules: Store["sightOfSchedules"] = () => this.#parts.alerts.sightOfSchedules();
  sightOfRest: Store["sightOfRest"] = (params) => this.#parts.alerts.sightOfRest(params);
  sightOfApart: Store["sightOfApart"] = (params) => this.#parts.alerts.sightOfApart(params);
  openAlerts: Store["openAlerts"] = () => this.#parts.alerts.openAlerts();
  writeAlerts: Store["writeAlerts"] = (params) => this.#parts.alerts.writeAlerts(params);
  claimDeliveries: Store["claimDeliveries"] = (params) =>
    this.#parts.alerts.claimDeliveries(params);
  endDelivery: Store["endDelivery"] = (params) => this.#parts.alerts.endDelivery(params);
  alerts: Store["alerts"] = (params) => this.#parts.alerts.alerts(params);
  markAlert: Store["markAlert"] = (params) => this.#parts.alerts.markAlert(params);

  // ── upkeep ─────────────────────────────────────────────────────────────────────────────────────

  check: Store["check"] = (params) => this.#parts.checks.check(params);
  checkScript: Store["checkScript"] = (own) => this.#parts.checks.checkScript(own);
  mend: Store["mend"] = (params) => this.#parts.repairs.mend(params);
  remains: Store["remains"] = () => this.#parts.repairs.remains();
  recover: Store["recover"] = (params) => this.#parts.repairs.recover(params);
  vitals: Store["vitals"] = (params) => this.#parts.repairs.vitals(params);
  strangers: Store["strangers"] = () => this.#parts.repairs.strangers();
  prune: Store["prune"] = (params) => this.#parts.retention.prune(params);
  pruneJob: Store["pruneJob"] = (params) => this.#parts.retention.pruneJob(params);
}
