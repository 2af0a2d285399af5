// `holdfast.cleanup()`: takes back now what silent or endless holders have, whatever their leases say.
// Each run goes where its own policy sends it.

import { type Duration, durationMs } from "../core/duration.js";
import { ConfigurationError } from "../core/errors.js";
import { refuseUnknownMembers } from "../core/suggest.js";
import type { StaleParams } from "../store/operator-store.js";
import { reapOnce } from "./passes.js";

export type CleanupOptions = {
  /** An attempt that has run for so long is over its time. @default "2h" */
  readonly timeout?: Duration;
  /**
   * A holder that was silent for so long is taken for dead. Holders renew every third of their lease:
   * a shorter time than that takes runs from the living. @default "10m"
   */
  readonly heartbeatTimeout?: Duration;
};

export type CleanedUp = {
  /** How many runs were taken from their holders. */
  readonly reclaimed: number;
  /** How many of these had no attempt left and failed. */
  readonly failed: number;
};

const TIMEOUT_DEFAULT = "2h";
const HEARTBEAT_TIMEOUT_DEFAULT = "10m";

export function readCleanup(options: CleanupOptions): StaleParams {
  const problems = refuseUnknownMembers(options, ["timeout", "heartbeatTimeout"], "cleanup()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { timeout = TIMEOUT_DEFAULT, heartbeatTimeout = HEARTBEAT_TIMEOUT_DEFAULT } = options;
  return {
    ranMs: durationMs(timeout, "cleanup().timeout"),
    silentMs: durationMs(heartbeatTimeout, "cleanup().heartbeatTimeout"),
  };
}

export async function cleanUpOnce(
  params: Parameters<typeof reapOnce>[0] & { readonly stale: StaleParams },
): Promise<CleanedUp> {
  const { stale, ...reaping } = params;
  await params.store.expireStale(stale);
  return reapOnce(reaping);
}
