// Calls hooks and middleware around a handler. The order: onStart of the instance, then of the job; middleware
// of the instance, then of the job; the handler; back out; onSuccess or onFailure of the job, then of the
// instance. A failing hook never changes the outcome of a run.

import type { Ending, Transition } from "../runs/rules/run.js";
import {
  LOGS_DEFAULT,
  type LogsOptions,
  type LogsPolicy,
  readLogs,
} from "../runs/rules/run-logs.js";
import { ConfigurationError, LeaseLostError, type Problem } from "../shared/errors.js";
import { describeFailure, type StoredError } from "../shared/failure.js";
import { gather } from "../shared/problems.js";
import type { Claim, ClaimedRun } from "../store/claims.js";
import type { Emit, Logger } from "../telemetry/log.js";
import type { AttemptView } from "./attempt-view.js";
import { factsOf } from "./completer.js";
import { type ContextServices, RunContext } from "./handler/context.js";

/** Runs the handler by calling `next` once. Its value is the result of the attempt, its error the error. */
export type Middleware = (run: RunContext, next: () => Promise<unknown>) => unknown;

export type AroundOptions = {
  /** Which log lines are kept with the run. @default { keep: "all", max: 1000 } */
  readonly logs?: LogsOptions | undefined;
  /** Called before the handler. An error in a hook is logged and changes nothing. */
  readonly onStart?: ((run: RunContext) => unknown) | undefined;
  /** Called when the handler has succeeded, before that is stored. */
  readonly onSuccess?: ((run: RunContext, result: unknown) => unknown) | undefined;
  /** Called when the attempt has failed or timed out, before that is stored. */
  readonly onFailure?:
    | ((run: RunContext, error: unknown, facts: { readonly willRetry: boolean }) => unknown)
    | undefined;
  /** Called around the handler, the first one outermost; its error is the attempt's error. */
  readonly middleware?: Middleware | readonly Middleware[] | undefined;
};

export const HOOK_OPTIONS = ["logs", "onStart", "onSuccess", "onFailure", "middleware"] as const;
const HOOKS = ["onStart", "onSuccess", "onFailure"] as const;
export type Hook = (typeof HOOKS)[number];

/** The checked hooks, middleware and log policy of an instance or a job. */
export type HookChain = {
  readonly logs: LogsPolicy;
  readonly middleware: readonly Middleware[];
  /** Those of the instance come first. */
  readonly hooks: readonly Pick<AroundOptions, Hook>[];
};

/** Whether there is only the handler: most jobs have no hooks, and do not pay for them. */
export function isBare({ middleware, hooks }: HookChain): boolean {
  return middleware.length === 0 && hooks.length === 0;
}

/** Calls the handler inside all middleware. */
export function throughMiddleware(
  middleware: readonly Middleware[],
  run: RunContext,
  handle: () => unknown,
): Promise<unknown> {
  const step = async (place: number): Promise<unknown> => {
    const each = middleware[place];
    if (!each) return handle();
    let isCalled = false;
    return each(run, () => {
      if (isCalled) return Promise.reject(new Error("A middleware called next() twice."));
      isCalled = true;
      return step(place + 1);
    });
  };
  return step(0);
}

/** Calls the hooks one after the other. An error of one is reported and does not stop the others. */
export async function callHooks<Name extends Hook>(params: {
  readonly hookChain: HookChain;
  readonly hook: Name;
  readonly args: Parameters<NonNullable<AroundOptions[Name]>>;
  readonly onFailed: (error: unknown) => void;
}): Promise<void> {
  const { hookChain, hook, args, onFailed } = params;
  const inOrder = hook === "onStart" ? hookChain.hooks : [...hookChain.hooks].reverse();
  for (const hooks of inOrder) {
    try {
      await (hooks[hook] as ((...given: unknown[]) => unknown) | undefined)?.(...args);
    } catch (error) {
      onFailed(error);
    }
  }
}

// ── reading the options ────────────────────────────────────────────────────────────────────────────

const HOOK_EXAMPLES = {
  onStart: "onStart: (run) => …",
  onSuccess: "onSuccess: (run, result) => …",
  onFailure: "onFailure: (run, error, { willRetry }) => …",
} as const;

export const NO_HOOKS: HookChain = { logs: LOGS_DEFAULT, middleware: [], hooks: [] };

/**
 * Checks the options of a job or an instance and appends them to `outer`, the chain of the instance. `field` names a
 * member in errors, for example `job("mail").onStart`.
 */
export function readHooks(
  options: AroundOptions,
  outer: HookChain,
  field: (member: string) => string,
): HookChain {
  const problems: Problem[] = [];
  const logs = gather(
    problems,
    () => readLogs(options.logs, outer.logs, field("logs")),
    outer.logs,
  );
  for (const [hook, example] of Object.entries(HOOK_EXAMPLES)) {
    const given = options[hook as keyof typeof HOOK_EXAMPLES];
    if (given === undefined || typeof given === "function") continue;
    problems.push({ field: field(hook), message: `must be a function, for example ${example}` });
  }
  const { middleware = [], onStart, onSuccess, onFailure } = options;
  const own = (Array.isArray(middleware) ? middleware : [middleware]) as readonly Middleware[];
  if (own.some((each) => typeof each !== "function"))
    problems.push({
      field: field("middleware"),
      message: "must be a function or a list of them, for example (run, next) => next()",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const hooks = {
    ...(onStart ? { onStart } : {}),
    ...(onSuccess ? { onSuccess } : {}),
    ...(onFailure ? { onFailure } : {}),
  };
  return {
    logs,
    middleware: [...outer.middleware, ...own],
    hooks: Object.keys(hooks).length === 0 ? outer.hooks : [...outer.hooks, hooks],
  };
}

// ── hooks of runs that ended remotely ──────────────────────────────────────────────────────────────
// A remote worker or the callback of a dispatched run has ended the run. The process that received the end calls the
// hooks after it is stored. No lease is held any more.

export type EndedRemotely = {
  readonly claim: Claim;
  readonly run: ClaimedRun;
  readonly ending: Ending;
  readonly transition: Transition;
  /** JSON. */
  readonly result: string | null;
  readonly error: StoredError | null;
};

export type RemoteHooksParams = {
  /** Undefined if this process does not declare the job. */
  readonly hookChainOf: (job: string) => HookChain | undefined;
  readonly logger: Logger;
  readonly emit: Emit;
};

export async function callRemoteHooks(
  { hookChainOf, logger, emit }: RemoteHooksParams,
  ended: EndedRemotely,
): Promise<void> {
  const { claim, run, ending, transition, result, error } = ended;
  const hookChain = hookChainOf(claim.job);
  if (!hookChain || hookChain.hooks.length === 0) return;
  const call = (hook: Hook, args: readonly unknown[]) =>
    callHooks({
      hookChain,
      hook,
      args: [contextOf(ended, hookChain, logger), ...args] as never,
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

/** The error of a remote worker, with its code, name and stack. */
function toError(stored: StoredError | null): Error {
  const { message = "unknown", name, code, stack } = stored ?? {};
  return Object.assign(new Error(message), { name, code, ...(stack ? { stack } : {}) });
}

/** A context that returns the facts of the run, and rejects every call that needs a lease. */
function contextOf(
  { claim, run }: EndedRemotely,
  hookChain: HookChain,
  logger: Logger,
): RunContext {
  const lost = () => new LeaseLostError(run.id, claim.fence);
  const refused = () => Promise.reject(lost());
  const attempt: AttemptView = {
    run,
    claim,
    logs: hookChain.logs,
    hasReported: false,
    signal: () => AbortSignal.abort(lost()),
    stopReason: null,
    startedMs: 0,
    commitPhase: "done",
    committing: null,
    openCalls: 0,
    hasReturned: true,
    suspension: "none",
    journal: null,
    abort: () => undefined,
  };
  const services = {
    log: logger,
    fanOut: { enqueue: refused, enqueueBatch: refused },
    heartbeat: refused,
    item: refused,
    lock: refused,
    commit: refused,
    progress: refused,
    keepLine: () => undefined,
  } as unknown as ContextServices;
  return new RunContext(attempt, services);
}
