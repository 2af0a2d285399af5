// Options around a run, of an instance and of a job: checked whole, the job's put after the instance's.

import { LOGS_DEFAULT, readLogs } from "../runs/rules/run-logs.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { gather } from "../shared/problems.js";
import type { Around, AroundOptions, Middleware } from "./hooks.js";

const HOOK_EXAMPLES = {
  onStart: "onStart: (run) => …",
  onSuccess: "onSuccess: (run, result) => …",
  onFailure: "onFailure: (run, error, { willRetry }) => …",
} as const;

export const NOTHING_AROUND: Around = { logs: LOGS_DEFAULT, middleware: [], hooks: [] };

/** `outer` is the instance's; `field` names the member, for example `job("mail").onStart`. */
export function readAround(
  options: AroundOptions,
  outer: Around,
  field: (member: string) => string,
): Around {
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
