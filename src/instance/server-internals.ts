// Gives the HTTP server access to parts of an instance that users do not need. A symbol hides them from the public
// names; it is a registered one, since the server may come from another copy of this package.

import { isCallbackToken, type TokenGrant } from "../remote/dispatch/signature.js";
import { BUILT_IN_JOBS } from "../runs/rules/job.js";
import type { Glance } from "../store/statistics.js";
import type { Store } from "../store/store.js";
import { type Emit, LentLogger, type Logger } from "../telemetry/log.js";
import type { Composition } from "./compose.js";
import type { InstanceContext } from "./context.js";

export const serverInternals: unique symbol = Symbol.for("holdfast.server-internals");

export type ServerInternals = {
  /** Aborts when a stop begins: connections to this instance have to end then. */
  readonly stopSignal: AbortSignal;
  /** From now on the instance logs to this logger, unless its options name one. */
  lendLogger(logger: Logger): void;
  /** The database, for sessions and audit entries of the server. */
  store(verb: string): Promise<Pick<Store, "sessions" | "keys" | "audit">>;
  /** Emits an event to the log, the metrics and listeners. */
  readonly emit: Emit;
  /** A cheap read whose result differs from the previous one if runs, schedules or settings have changed. */
  glance(): Promise<Glance>;
  /** The default queue of a job. */
  queueOf(job: string): Promise<string>;
  /** Whether remote workers may claim runs of this job: no instance executes it or sends it to a target. */
  isRemote(job: string): Promise<boolean>;
  /**
   * Whether this instance gave this token to the target of that job, for this run and fence. The store decides whether
   * the fence is still the current one.
   */
  isCallbackToken(params: { readonly token: string; readonly job: string } & TokenGrant): boolean;
};

export function serverInternalsOf(
  { config, bus, logger: own }: InstanceContext,
  { lazyStore, jobs }: Pick<Composition, "lazyStore" | "jobs">,
): ServerInternals {
  return {
    stopSignal: lazyStore.stopSignal,
    lendLogger: (logger) => {
      if (own instanceof LentLogger) own.lend(logger);
    },
    emit: bus.emit,
    store: (verb) => lazyStore.for(verb),
    glance: async () => (await lazyStore.for("glance")).statistics.glance(),
    queueOf: async (job) => (await jobs.definitionOf(job)).queue,
    isRemote: async (job) => {
      if (BUILT_IN_JOBS.includes(job) || jobs.runnable.has(job)) return false;
      return (await (await lazyStore.for("jobs")).jobs.local([job])).length === 0;
    },
    isCallbackToken: ({ token, job, ...grant }) => {
      const target = jobs.targetOf(job);
      const secrets = target === null ? [] : config.dispatch.targets.get(target)?.secrets;
      return isCallbackToken({ token, grant, secrets: secrets ?? [] });
    },
  };
}
