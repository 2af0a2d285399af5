// Provides the base class of all exceptions, the exception for wrong options, and helpers for messages.
// It imports nothing that throws, so that duration.ts can use it without a cycle.

import { redactUrl } from "../redact.js";
import type { Problem } from "../suggest.js";

/** The base class of all exceptions of the library. */
export abstract class HoldfastError extends Error {
  abstract readonly code: string;
}

/** Options contradict each other or are wrong; nothing was started. All problems are named at once. */
export class ConfigurationError extends HoldfastError {
  readonly code = "CONFIGURATION_INVALID";
  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(({ field, message }) => `${field}: ${message}`).join("\n"));
  }
}

export function causeOption(cause: unknown): ErrorOptions | undefined {
  return cause === undefined ? undefined : { cause };
}

// Only the beginning, for messages. failure.ts describes thrown values in full.
export function causeText(cause: unknown, secretUrl?: string): string {
  try {
    const isObject = typeof cause === "object" && cause !== null;
    const message: unknown = isObject && "message" in cause ? cause.message : cause;
    if (typeof message !== "string" || message === "") return "";
    const safe = secretUrl ? message.replaceAll(secretUrl, redactUrl(secretUrl)) : message;
    return `: ${safe.slice(0, 500).replace(/\.$/, "")}`;
  } catch {
    return "";
  }
}

/**
 * Sets the names of error classes. They go on the prototype, because the first line of a stack is written before
 * any field exists. They are given as text, because a bundler may rename the classes.
 */
export function nameErrors(
  classes: Readonly<Record<string, { readonly prototype: object }>>,
): void {
  for (const [name, { prototype }] of Object.entries(classes))
    Object.defineProperty(prototype, "name", { value: name, configurable: true, writable: true });
}

nameErrors({ ConfigurationError });
