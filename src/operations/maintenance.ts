// What keeps a database well: looking whether its promises hold, mending and recovering it, and removing
// what is past its time. What was changed is in the audit trail.

import type { InstanceContext } from "../instance/context.js";
import type { AnnouncedJobs } from "../instance/jobs.js";
import type { Locking } from "../locks/locking.js";
import type { Declarations } from "../schedules/reconcile.js";
import type { ScheduleCache } from "../schedules/schedule-cache.js";
import type { LazyStore } from "../store/lazy-store.js";
import type { Store } from "../store/store.js";
import { reapOnce } from "../worker/passes.js";
import { type CheckOptions, type CheckReport, readCheck, reportOf } from "./check.js";
import { type HealthOptions, type HealthReport, healthOf, readHealth } from "./health.js";
import { type RecoverOptions, type RecoverReport, readRecover, recoverOnce } from "./recover.js";
import { type RepairOptions, type RepairReport, readRepair, repairOnce } from "./repair.js";
import {
  JobRetention,
  type Keeping,
  type Pruned,
  type PruneOptions,
  pruneAll,
  pruneSome,
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
    return reportOf(await store.check({ own: context.config.checks, timeLimitMs }));
  }

  checkScript(): string {
    const { store, config } = this.#params.context;
    return store.checkScript(config.checks);
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
    const report = await repairOnce({ store, own, isApplied, reap: () => this.#reap(store) });
    const mended = report.steps.filter(({ changed }) => changed !== null);
    if (mended.length === 0) return report;
    await this.#audit(store, "repair", mended.map(({ check }) => check).join("; "));
    store.wake();
    onChanged();
    return report;
  }

  async recover(options: RecoverOptions): Promise<RecoverReport> {
    const { context, lazyStore, cache } = this.#params;
    const { isApplied } = readRecover(options);
    const store = await lazyStore.for("recover");
    const reap = () => this.#reap(store);
    const report = await recoverOnce({ store, ports: context.ports, cache, isApplied, reap });
    if (isApplied) await this.#audit(store, "recover", `fences raised by ${report.fencesRaisedBy}`);
    return report;
  }

  async prune({ onProgress = () => undefined }: PruneOptions): Promise<Pruned> {
    const { context, lazyStore } = this.#params;
    const store = await lazyStore.for("prune");
    const { keepLocksMs } = context.config;
    const pruned = await pruneAll({ ...this.keeping(store), keepLocksMs, onProgress });
    if (pruned.removed > 0)
      await this.#audit(store, "prune", `${pruned.removed} rows and days removed`);
    return pruned;
  }

  keeping(store: Store): Keeping {
    const { keepMs, keepTicksMs, keepLogsMs } = this.#params.context.config;
    return { store, keep: { keepMs, keepTicksMs, keepLogsMs }, jobs: this.#retention };
  }

  /** What instances that stay do each hour, for a pass that nothing outlives. */
  async tidyOnce(store: Store, isTimeUp: () => boolean): Promise<void> {
    await pruneSome(this.keeping(store), isTimeUp);
    await this.#params.locking.tidyIfDue();
    await this.#params.declarations.recompute(store);
  }

  #reap(store: Store): Promise<unknown> {
    const { ports, bus } = this.#params.context;
    return reapOnce({ store, chance: () => ports.chance.next(), emit: bus.emit });
  }

  #audit(store: Store, verb: string, change: string): Promise<void> {
    const { actor } = this.#params.context;
    return store.addAudit(auditEntry(actor, { verb, noun: "everything", name: null, change }));
  }
}
