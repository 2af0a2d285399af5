// Durations as callers give them, turned into whole milliseconds or refused by name.
// The reading itself is in duration-text.ts; this file only decides that a bad one is an exception.

import { type DurationLimits, readDuration } from "./duration-text.js";
import { ConfigurationError } from "./errors.js";

export {
  type Duration,
  type DurationLimits,
  formatDuration,
  writeDuration,
} from "./duration-text.js";

/** Whole milliseconds, or a `ConfigurationError` that names the field and shows a right value. */
export function durationMs(value: unknown, field: string, limits?: DurationLimits): number {
  const read = readDuration(value, limits);
  if (typeof read === "string") throw new ConfigurationError([{ field, message: read }]);
  return read;
}
