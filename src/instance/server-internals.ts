// What a server around an instance needs of it, and users do not. It hangs on a symbol, so that it is no
// part of what they see: on a registered one, since the server may come from another copy of this package.

import { isCallbackToken, type TokenGrant } from "../remote/dispatch/signature.js";
import type { AccessStore } from "../store/access.js";
import type { Glance } from "../store/operators.js";
import type { Store } from "../store/store.js";
import { type Emit, LentLogger, type Logger } from "../telemetry/log.js";
import type { Composition } from "./compose.js";
import type { InstanceContext } from "./context.js";

export const hosting: unique symbol = Symbol.for("holdfast.hosting");

export type ServerInternals = {
  /** Aborts when a stop begins: what serves this instance has to end with it. */
  readonly stopSignal: AbortSignal;
  /** The instance's lines go there, unless it was given a logger. */
  lendLogger(logger: Logger): void;
  /** The database, for what a server keeps there on its own account. */
  store(verb: string): Promise<Pick<Store, keyof AccessStore | "addAudit">>;
  /** Reports what happened to the log, the metrics and listeners. */
  readonly emit: Emit;
  /** A cheap look that differs from the one before if runs changed, or somebody changed something. */
  glance(): Promise<Glance>;
  /** The queue that runs of a job go to unless told otherwise. */
  queueOf(job: string): Promise<string>;
  /**
   * Whether this token was given to the worker of that job's target with this run, under this fence. That
   * the fence is still the current one is for the store to say.
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
    glance: async () => (await lazyStore.for("glance")).glance(),
    queueOf: async (job) => (await jobs.definitionOf(job)).queue,
    isCallbackToken: ({ token, job, ...grant }) => {
      const target = jobs.targetOf(job);
      const secrets = target === null ? [] : config.dispatch.targets.get(target)?.secrets;
      return isCallbackToken({ token, grant, secrets: secrets ?? [] });
    },
  };
}
