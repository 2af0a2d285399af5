// The options of a lock, as callers give them, checked whole.

import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireName, requirePriority } from "../shared/names.js";
import { gather } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { LEASE_MIN_MS } from "../worker/rules/lease.js";

export type LockOptions = {
  /** How long the lock outlives a holder that died; renewed while the function runs. @default HOLDFAST_LOCK_LEASE, else "6m" */
  readonly lease?: Duration | undefined;
  /** How long to wait for it. @default not at all */
  readonly wait?: Duration | undefined;
  /** Of calls that wait: larger is served first, from -100 to 100. @default 0 */
  readonly priority?: number | undefined;
};

export type LockSettings = {
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly priority: number;
};

export function readLockOptions(
  name: unknown,
  options: LockOptions,
  defaultLeaseMs: number,
): LockSettings {
  requireName(name, "lock(name)");
  if (typeof options !== "object" || options === null) {
    const message = 'must be an object, for example { lease: "5m" }';
    throw new ConfigurationError([{ field: "lock().options", message }]);
  }
  const problems: Problem[] = refuseUnknownMembers(
    options,
    ["lease", "wait", "priority"],
    "lock()",
  );
  const read = (take: () => number): number => gather(problems, take, 0);
  const { lease = defaultLeaseMs, wait = 0, priority = 0 } = options;
  const settings = {
    leaseMs: read(() => durationMs(lease, "lock().lease", { min: LEASE_MIN_MS })),
    waitMs: read(() => durationMs(wait, "lock().wait")),
    priority: read(() => requirePriority(priority, "lock().priority")),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return settings;
}
