// Reclaims runs of silent or endless holders now, for `holdfast.cleanup()`: even within their leases, unless the caller
// respects leases. Each run is retried or failed by its own policy.

import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { StaleParams } from "../store/leases.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { reclaimOnce } from "../worker/passes.js";
import { type Actor, auditEntry } from "./rules/audit.js";

export type CleanupOptions = {
  /** An attempt that has run for this long is over its time. @default "2h" */
  readonly timeout?: Duration | undefined;
  /**
   * A holder that was silent for this long counts as dead. Holders renew every third of their lease: a shorter time
   * reclaims runs from live holders. @default "10m"
   */
  readonly heartbeatTimeout?: Duration | undefined;
  /**
   * A holder within its run's own lease and timeout keeps the run, even if the two times above are shorter. The HTTP API
   * sets it for callers without the scope admin. @default false
   */
  readonly respectLeases?: boolean | undefined;
};

export type CleanedUp = {
  /** How many runs were reclaimed. */
  readonly reclaimed: number;
  /** How many of these had no attempt left and failed. */
  readonly failed: number;
};

const TIMEOUT_DEFAULT = "2h";
const HEARTBEAT_TIMEOUT_DEFAULT = "10m";

function readCleanup(options: CleanupOptions): StaleParams {
  const members = ["timeout", "heartbeatTimeout", "respectLeases"];
  const problems: Problem[] = refuseUnknownMembers(options, members, "cleanup()");
  const { timeout = TIMEOUT_DEFAULT, heartbeatTimeout = HEARTBEAT_TIMEOUT_DEFAULT } = options;
  const { respectLeases: respectsLeases = false } = options;
  if (typeof respectsLeases !== "boolean")
    problems.push({ field: "cleanup().respectLeases", message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    respectsLeases,
    ranMs: durationMs(timeout, "cleanup().timeout"),
    silentMs: durationMs(heartbeatTimeout, "cleanup().heartbeatTimeout"),
  };
}

export async function cleanUp(
  params: {
    readonly store: (verb: string) => Promise<Store>;
    readonly actor: Actor;
    readonly ports: Ports;
    readonly emit: Emit;
    readonly onChanged: () => void;
  },
  options: CleanupOptions,
): Promise<CleanedUp> {
  const { actor, ports, emit, onChanged } = params;
  const stale = readCleanup(options);
  const store = await params.store("cleanup");
  await store.leases.expireStale(stale);
  const report = await reclaimOnce({ store, random: () => ports.random.next(), emit });
  if (report.reclaimed === 0) return report;
  const change = `${report.reclaimed} reclaimed, ${report.failed} of them failed`;
  const facts = { verb: "cleanup", noun: "everything", name: null, change } as const;
  await store.audit.add(auditEntry(actor, facts));
  store.wake();
  onChanged();
  return report;
}
