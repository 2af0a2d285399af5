// The option `telemetry` of an instance, checked whole.

import type { Problem } from "../shared/errors.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { OpenTelemetry } from "./tracing.js";

export type TelemetryOptions = {
  /** The module `@opentelemetry/api`: spans are made with whatever it is set up with. */
  readonly opentelemetry?: OpenTelemetry | undefined;
};

export function telemetryProblems(options: unknown): readonly Problem[] {
  const example = 'for example { opentelemetry: await import("@opentelemetry/api") }';
  if (typeof options !== "object" || options === null)
    return [{ field: "telemetry", message: `must be an object, ${example}` }];
  const problems: Problem[] = refuseUnknownMembers(options, ["opentelemetry"], "telemetry");
  const { opentelemetry } = options as { readonly opentelemetry?: Partial<OpenTelemetry> };
  const isApi =
    typeof opentelemetry?.trace?.getTracer === "function" &&
    typeof opentelemetry.trace.setSpanContext === "function" &&
    typeof opentelemetry.context?.with === "function" &&
    opentelemetry.ROOT_CONTEXT !== undefined;
  if (opentelemetry !== undefined && !isApi)
    problems.push({
      field: "telemetry.opentelemetry",
      message: `must be the module "@opentelemetry/api", ${example}`,
    });
  return problems;
}
