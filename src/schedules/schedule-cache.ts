// Schedules as the ticker evaluates them: the stored definition read once and kept. Many schedules
// have the same definition and differ in their input alone; they share what was read. What cannot be
// read makes that one schedule broken, never the others.

import type { ScheduleState } from "../store/schedule-store.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { makeWhen, type When } from "./rules/when.js";

export type CachedSchedule = { readonly definition: ScheduleDefinition; readonly when: When };

type Stored = { readonly definition: string; readonly anchorAt: number };

/** Beyond this all are read again. */
const KEPT_MAX = 100_000;

export class ScheduleCache {
  readonly #byText = new Map<string, CachedSchedule>();
  readonly #byId = new Map<
    number,
    { readonly version: number; readonly compiled: CachedSchedule }
  >();

  /** Throws what is wrong with a definition that this instance cannot evaluate. */
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

/** A grid that begins when its schedule was made: equal definitions tick at other times. */
function isAnchored({ when }: ScheduleDefinition): boolean {
  return when.kind === "grid" && when.fromMs === null;
}

/** The rules of time zones that the ticks of a schedule depend on; null where they do not. */
export function tzdataOf({ when }: ScheduleDefinition): string | null {
  if (when.kind === "range" || when.kind === "at") return null;
  const leavesOut = when.exclude.length > 0 || when.calendars.length > 0;
  const zones = [when.timezone, ...when.calendars.map(({ rules }) => rules.timezone ?? "UTC")];
  const isLocal = (when.kind === "cron" || leavesOut) && zones.some((zone) => zone !== "UTC");
  return isLocal ? (process.versions.tz ?? null) : null;
}
