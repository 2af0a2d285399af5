// Describes the configuration of an instance for people: durations as text, and no secrets.

import type { Config } from "../instance/config.js";
import type { InstanceContext } from "../instance/context.js";
import { writeDuration } from "../shared/duration.js";
import { redactUrl } from "../shared/redact.js";

export type Settings = {
  readonly instance: string;
  readonly database: string;
  readonly schema: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly poll: string;
  readonly retention: string;
  readonly ledgerRetention: string;
  readonly migrate: Config["migrate"];
  /** Whether this instance fires schedules and executes runs by itself now, as it was started. */
  readonly scheduler: boolean;
  readonly worker: boolean;
  readonly locking: boolean;
  readonly lockLease: string;
  readonly publicUrl: string | null;
  /** Names of the services that runs are sent to. */
  readonly targets: readonly string[];
  readonly node: string;
};

export function settingsOf(
  context: Pick<InstanceContext, "config" | "store" | "instanceId">,
  running: { readonly isScheduler: boolean; readonly isWorker: boolean },
): Settings {
  const { config } = context;
  return {
    instance: context.instanceId,
    database: databaseLabel(context),
    schema: config.schema,
    app: config.app,
    release: config.release,
    poll: writeDuration(config.pollMs),
    retention: writeDuration(config.keepMs),
    ledgerRetention: writeDuration(config.keepTicksMs),
    migrate: config.migrate,
    scheduler: running.isScheduler,
    worker: running.isWorker,
    locking: config.isLockingEnabled,
    lockLease: writeDuration(config.lockLeaseMs),
    publicUrl: config.dispatch.publicUrl,
    targets: [...config.dispatch.targets.keys()],
    node: process.version,
  };
}

/** The database in words, without secrets. */
export function databaseLabel({
  config,
  store,
}: Pick<InstanceContext, "config" | "store">): string {
  const { database } = config;
  return typeof database === "string" ? redactUrl(database) : `a given ${store.engine} handle`;
}
