// A cron schedule: an expression, a time zone, and what to do where the clocks change.
// Pure. Its ticks are a function of these three and of the tick before, never of the present time.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { gather } from "../../shared/problems.js";
import { listShort, quoteShort, refuseUnknownMembers, suggest } from "../../shared/suggest.js";
import { type CronExpression, parseCron } from "./parse.js";
import { requireZone, type Zone } from "./zone.js";

const GAPS = ["after", "skip"] as const;
const OVERLAPS = ["first", "second", "both"] as const;

/**
 * What a fixed-time schedule does where the clocks change. Schedules whose minute or hour field
 * begins with `*` follow elapsed time, whatever is said here.
 */
export type DstOptions = {
  /**
   * A time that the clocks jump over: run once when they have jumped, or not at all.
   * @default "after"
   */
  readonly gap?: (typeof GAPS)[number] | undefined;
  /**
   * A time that comes twice: run at the first pass, at the second, or at both.
   * @default "first"
   */
  readonly overlap?: (typeof OVERLAPS)[number] | undefined;
};

/** Checked and complete. */
export type DstPolicy = {
  readonly gap: (typeof GAPS)[number];
  readonly overlap: (typeof OVERLAPS)[number];
};

export type CronOptions = {
  /** Five fields, or six with seconds first; `@daily` and the like. */
  readonly cron: string;
  /**
   * IANA name; never the zone of the host.
   * @default "UTC"
   */
  readonly timezone?: string;
  readonly dst?: DstOptions | undefined;
};

export type CronSchedule = {
  readonly expression: CronExpression;
  readonly zone: Zone;
  readonly dst: DstPolicy;
};

/** The schedule, or a `ConfigurationError` with everything that is wrong with it. */
export function cronSchedule(options: CronOptions, field = ""): CronSchedule {
  const problems: Problem[] = [];
  const name = (member: string) => (field === "" ? member : `${field}.${member}`);
  const expression = gather(problems, () => parseCron(options.cron, name("cron")));
  const zone = gather(problems, () => requireZone(options.timezone, name("timezone")));
  const dst = gather(problems, () => requireDst(options.dst, name("dst")));
  if (expression && zone && dst) return { expression, zone, dst };
  throw new ConfigurationError(problems);
}

function requireDst(value: unknown, field: string): DstPolicy {
  if (value === undefined) return { gap: "after", overlap: "first" };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const kind = value === null ? "null" : typeof value;
    const message = `must be an object such as { gap: "skip" }, but is ${kind}.`;
    throw new ConfigurationError([{ field, message }]);
  }
  const { gap = "after", overlap = "first" } = value as Record<string, unknown>;
  const problems = refuseUnknownMembers(value, ["gap", "overlap"], field);
  const isGap = isOneOf(GAPS, gap);
  const isOverlap = isOneOf(OVERLAPS, overlap);
  if (!isGap) problems.push({ field: `${field}.gap`, message: notOneOf(GAPS, gap) });
  if (!isOverlap)
    problems.push({ field: `${field}.overlap`, message: notOneOf(OVERLAPS, overlap) });
  if (problems.length === 0 && isGap && isOverlap) return { gap, overlap };
  throw new ConfigurationError(problems);
}

function isOneOf<T extends string>(allowed: readonly T[], value: unknown): value is T {
  return allowed.some((each) => each === value);
}

function notOneOf(allowed: readonly string[], value: unknown): string {
  const shown = typeof value === "string" ? quoteShort(value) : typeof value;
  const meant = typeof value === "string" ? suggest(value, allowed) : undefined;
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return `must be one of ${listShort(allowed)}, but is ${shown}.${hint}`;
}
