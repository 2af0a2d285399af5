// What surrounds a handler: hooks that hear of an attempt, and middleware that it runs inside of.
// The order: onStart of the instance, then of the job; middleware of the instance, then of the job; the
// handler; back out; onSuccess or onFailure of the job, then of the instance.

import type { LogsOptions, LogsPolicy } from "../runs/rules/run-logs.js";
import type { RunContext } from "./handler/context.js";

/** Runs the handler by calling `next` once; what it returns is the result, what it throws the error. */
export type Middleware = (run: RunContext, next: () => Promise<unknown>) => unknown;

export type AroundOptions = {
  /** Which log lines are kept with the run. @default { keep: "all", max: 1000 } */
  readonly logs?: LogsOptions | undefined;
  /** Called before the handler. An error in a hook is logged and changes nothing. */
  readonly onStart?: ((run: RunContext) => unknown) | undefined;
  /** Called when the handler has succeeded, before that is stored. */
  readonly onSuccess?: ((run: RunContext, result: unknown) => unknown) | undefined;
  /** Called when the attempt has failed or its time was over, before that is stored. */
  readonly onFailure?:
    | ((run: RunContext, error: unknown, facts: { readonly willRetry: boolean }) => unknown)
    | undefined;
  /** Around the handler, the first one outermost; its error is the attempt's error. */
  readonly middleware?: Middleware | readonly Middleware[] | undefined;
};

export const AROUND_OPTIONS = ["logs", "onStart", "onSuccess", "onFailure", "middleware"] as const;
const HOOKS = ["onStart", "onSuccess", "onFailure"] as const;
export type Hook = (typeof HOOKS)[number];

/** What an instance or a job puts around its runs, checked. */
export type Around = {
  readonly logs: LogsPolicy;
  readonly middleware: readonly Middleware[];
  /** The instance's first. */
  readonly hooks: readonly Pick<AroundOptions, Hook>[];
};

/** Nothing but the handler: most jobs have no more, and pay for no more. */
export function isBare({ middleware, hooks }: Around): boolean {
  return middleware.length === 0 && hooks.length === 0;
}

/** Calls the handler inside of all middleware. */
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

/** One after the other; what one of them throws is told and stops nobody. */
export async function callHooks<Name extends Hook>(params: {
  readonly around: Around;
  readonly hook: Name;
  readonly args: Parameters<NonNullable<AroundOptions[Name]>>;
  readonly onFailed: (error: unknown) => void;
}): Promise<void> {
  const { around, hook, args, onFailed } = params;
  const inOrder = hook === "onStart" ? around.hooks : [...around.hooks].reverse();
  for (const hooks of inOrder) {
    try {
      await (hooks[hook] as ((...given: unknown[]) => unknown) | undefined)?.(...args);
    } catch (error) {
      onFailed(error);
    }
  }
}
