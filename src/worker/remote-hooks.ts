// Hooks of a job whose run ended elsewhere: by a worker over the network, or by the callback of a dispatched
// one. They are called in the process that took the end, once it is stored; nobody holds the run any more.

import type { Ending, Transition } from "../runs/rules/run.js";
import { LeaseLostError } from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { describeFailure } from "../shared/failure.js";
import type { Claim, ClaimedRun } from "../store/store.js";
import type { Emit, Logger } from "../telemetry/log.js";
import type { Attempted } from "./attempt-view.js";
import { type ContextServices, RunContext } from "./handler/context.js";
import { type Around, callHooks, type Hook } from "./hooks.js";
import { factsOf } from "./settlement.js";

export type EndedElsewhere = {
  readonly claim: Claim;
  readonly run: ClaimedRun;
  readonly ending: Ending;
  readonly transition: Transition;
  /** JSON. */
  readonly result: string | null;
  readonly error: StoredError | null;
};

export type RemoteHooksParams = {
  /** Undefined: the job is not registered in this process. */
  readonly aroundOf: (job: string) => Around | undefined;
  readonly logger: Logger;
  readonly emit: Emit;
};

export async function callRemoteHooks(
  { aroundOf, logger, emit }: RemoteHooksParams,
  ended: EndedElsewhere,
): Promise<void> {
  const { claim, run, ending, transition, result, error } = ended;
  const around = aroundOf(claim.job);
  if (!around || around.hooks.length === 0) return;
  const call = (hook: Hook, args: readonly unknown[]) =>
    callHooks({
      around,
      hook,
      args: [contextOf(ended, around, logger), ...args] as never,
      onFailed: (thrown) => {
        const facts = { ...factsOf({ claim, run }), hook, error: describeFailure(thrown) };
        emit("hook.failed", facts, thrown);
      },
    });
  if (ending.kind === "completed")
    await call("onSuccess", [result === null ? undefined : JSON.parse(result)]);
  if (ending.kind === "failed" && transition.to !== "cancelled")
    await call("onFailure", [toError(error), { willRetry: transition.to === "pending" }]);
}

/** What a worker elsewhere said, as an error with its code, name and stack. */
function toError(stored: StoredError | null): Error {
  const { message = "unknown", name, code, stack } = stored ?? {};
  return Object.assign(new Error(message), { name, code, ...(stack ? { stack } : {}) });
}

/** All that a run tells about itself; whatever needs its lease is refused as for one that was lost. */
function contextOf({ claim, run }: EndedElsewhere, around: Around, logger: Logger): RunContext {
  const lost = () => new LeaseLostError(run.id, claim.fence);
  const refused = () => Promise.reject(lost());
  const attempted: Attempted = {
    run,
    claim,
    logs: around.logs,
    hasTold: false,
    signal: () => AbortSignal.abort(lost()),
    stopReason: null,
    startedMs: 0,
    commitPhase: "done",
    committing: null,
  };
  const services = {
    log: logger,
    fanOut: { enqueue: refused, enqueueBatch: refused },
    heartbeat: refused,
    item: refused,
    commit: refused,
    progress: refused,
    keepLine: () => undefined,
  } as unknown as ContextServices;
  return new RunContext(attempted, services);
}
