// Caches parsed definitions for the ticker. Schedules with equal definitions share one entry. An unreadable definition
// breaks its own schedule, never others.

import type { ScheduleState } from "../store/schedules/state.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { makeWhen, type When } from "./rules/when.js";

export type CachedSchedule = { readonly definition: ScheduleDefinition; readonly when: When };

type Stored = { readonly definition: string; readonly anchorAt: number };

/** A larger cache is emptied. */
const KEPT_MAX = 100_000;

export class ScheduleCache {
  readonly #byText = new Map<string, CachedSchedule>();
  readonly #byId = new Map<
    number,
    { readonly version: number; readonly compiled: CachedSchedule }
  >();

  /** Throws if this instance cannot evaluate the definition. */
  of(state: Stored & Pick<ScheduleState, "id" | "version">): CachedSchedule {
    const kept = this.#byId.get(state.id);
    if (kept?.version === state.version) return kept.compiled;
    const compiled = this.#ofText(state);
    if (this.#byId.size >= KEPT_MAX) this.#byId.clear();
    this.#byId.set(state.id, { version: state.version, compiled });
    return compiled;
  }

  #ofText(stored: Stored): CachedSchedule {
    const kept = this.#byText.get(stored.definition);
    if (kept) return kept;
    const compiled = compile(stored);
    if (isAnchored(compiled.definition)) return compiled;
    if (this.#byText.size >= KEPT_MAX) this.#byText.clear();
    this.#byText.set(stored.definition, compiled);
    return compiled;
  }
}

export function compile(stored: Stored): CachedSchedule {
  const definition = JSON.parse(stored.definition) as ScheduleDefinition;
  return { definition, when: makeWhen(definition.when, stored.anchorAt) };
}

/** Whether the grid begins at the creation of its schedule: then equal definitions have different ticks. */
function isAnchored({ when }: ScheduleDefinition): boolean {
  return when.kind === "grid" && when.fromMs === null;
}

/** The version of time zone rules that the ticks depend on; null if they depend on none. */
export function tzdataOf({ when }: ScheduleDefinition): string | null {
  if (when.kind === "range" || when.kind === "at") return null;
  const leavesOut = when.exclude.length > 0 || when.calendars.length > 0;
  const zones = [when.timezone, ...when.calendars.map(({ rules }) => rules.timezone ?? "UTC")];
  const isLocal = (when.kind === "cron" || leavesOut) && zones.some((zone) => zone !== "UTC");
  return isLocal ? (process.versions.tz ?? null) : null;
}
