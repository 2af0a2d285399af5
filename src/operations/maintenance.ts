// Maintains the database for operators: check, health, repair, recover and retention. Every change is audited. This folder
// is for operators only: the paths of runs and schedules must never depend on it.

import type { InstanceContext } from "../instance/context.js";
import type { AnnouncedJobs } from "../instance/jobs.js";
import type { Locking } from "../locks/locking.js";
import type { Declarations } from "../schedules/reconcile.js";
import type { ScheduleCache } from "../schedules/schedule-cache.js";
import { ConfigurationError } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import type { LazyStore } from "../store/lazy-store.js";
import type { Store } from "../store/store.js";
import { reclaimOnce } from "../worker/passes.js";
import {
  type CheckOptions,
  type CheckReport,
  type RepairOptions,
  type RepairReport,
  readCheck,
  readRepair,
  repairOnce,
  reportOf,
} from "./check.js";
import { type HealthOptions, type HealthReport, healthOf, readHealth } from "./health.js";
import { type RecoverOptions, type RecoverReport, readRecover, recoverOnce } from "./recover.js";
import {
  JobRetention,
  type Pruned,
  type PruneOptions,
  pruneAll,
  pruneSome,
  type RetentionParams,
} from "./retention.js";
import { auditEntry } from "./rules/audit.js";

export type MaintenanceParams = {
  readonly context: Pick<InstanceContext, "store" | "config" | "ports" | "bus" | "actor">;
  readonly lazyStore: LazyStore;
  readonly jobs: AnnouncedJobs;
  readonly cache: ScheduleCache;
  readonly declarations: Declarations;
  readonly locking: Locking;
  /** Something may be due now that was not before. */
  readonly onChanged: () => void;
};

export class Maintenance {
  readonly #params: MaintenanceParams;
  readonly #retention: JobRetention;

  constructor(params: MaintenanceParams) {
    this.#params = params;
    this.#retention = new JobRetention(() => params.jobs.declared());
  }

  async check(options: CheckOptions): Promise<CheckReport> {
    const { context, lazyStore } = this.#params;
    const { timeLimitMs } = readCheck(options);
    const store = await lazyStore.for("check");
    return reportOf(await store.checks.run({ own: context.config.checks, timeLimitMs }));
  }

  checkScript(): string {
    const { store, config } = this.#params.context;
    return store.checks.script(config.checks);
  }

  async health(options: HealthOptions): Promise<HealthReport> {
    const wanted = readHealth(options);
    const { clock } = this.#params.context.ports;
    const store = await this.#params.lazyStore.for("health");
    return healthOf(store, wanted, { check: () => this.check({}), clock });
  }

  async repair(options: RepairOptions): Promise<RepairReport> {
    const { context, lazyStore, onChanged } = this.#params;
    const { isApplied } = readRepair(options);
    const store = await lazyStore.for("repair");
    const own = context.config.checks;
    const report = await repairOnce({ store, own, isApplied, reclaim: () => this.#reclaim(store) });
    const repaired = report.steps.filter(({ changed }) => changed !== null);
    if (repaired.length === 0) return report;
    await this.#audit(store, "repair", repaired.map(({ check }) => check).join("; "));
    store.wake();
    onChanged();
    return report;
  }

  async recover(options: RecoverOptions): Promise<RecoverReport> {
    const { context, lazyStore, cache } = this.#params;
    const { isApplied } = readRecover(options);
    const store = await lazyStore.for("recover");
    const reclaim = () => this.#reclaim(store);
    const report = await recoverOnce({ store, ports: context.ports, cache, isApplied, reclaim });
    if (isApplied) await this.#audit(store, "recover", `fences raised by ${report.fencesRaisedBy}`);
    return report;
  }

  async exposeFunctions(into: string): Promise<readonly string[]> {
    requireName(into, "exposeFunctions(schema)");
    const store = await this.#params.lazyStore.for("exposeFunctions");
    const exposed = await store.repairs.exposeFunctions({ into });
    if (exposed) return exposed;
    const message =
      "must be left out on SQLite, which has no SQL functions; they are on PostgreSQL";
    throw new ConfigurationError([{ field: "exposeFunctions(schema)", message }]);
  }

  async prune({ onProgress = () => undefined }: PruneOptions): Promise<Pruned> {
    const { context, lazyStore } = this.#params;
    const store = await lazyStore.for("prune");
    const { keepLocksMs } = context.config;
    const pruned = await pruneAll({ ...this.retention(store), keepLocksMs, onProgress });
    if (pruned.removed > 0)
      await this.#audit(store, "prune", `${pruned.removed} rows and days removed`);
    return pruned;
  }

  retention(store: Store): RetentionParams {
    const { keepMs, keepTicksMs, keepLogsMs, keepSignalsMs } = this.#params.context.config;
    const keep = { keepMs, keepTicksMs, keepLogsMs };
    return { store, keep, keepSignalsMs, jobs: this.#retention };
  }

  /** Does the hourly work of a running instance, for a single bounded pass. */
  async retentionOnce(store: Store, isTimeUp: () => boolean): Promise<void> {
    await pruneSome(this.retention(store), isTimeUp);
    await this.#params.locking.retentionIfDue();
    await this.#params.declarations.recompute(store);
  }

  #reclaim(store: Store): Promise<unknown> {
    const { ports, bus } = this.#params.context;
    return reclaimOnce({ store, random: () => ports.random.next(), emit: bus.emit });
  }

  #audit(store: Store, verb: string, change: string): Promise<void> {
    const { actor } = this.#params.context;
    return store.audit.add(auditEntry(actor, { verb, noun: "everything", name: null, change }));
  }
}
