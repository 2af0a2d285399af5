// Schedules as the ticker evaluates them: the stored definition read once and kept for as long as
// its version stands. What cannot be read makes that one schedule broken, never the others.

import type { ScheduleDefinition } from "../core/schedule.js";
import { makeWhen, type When } from "../core/when.js";
import type { ScheduleState } from "../store/schedule-store.js";

export type Compiled = { readonly definition: ScheduleDefinition; readonly when: When };

/** Beyond this the ones that were not asked for longest are read again. */
const KEPT_MAX = 200_000;

export class CompiledSchedules {
  readonly #kept = new Map<number, { readonly version: number; readonly compiled: Compiled }>();

  /** Throws what is wrong with a definition that this instance cannot evaluate. */
  of(state: Pick<ScheduleState, "id" | "version" | "definition" | "anchorAt">): Compiled {
    const kept = this.#kept.get(state.id);
    if (kept?.version === state.version) return kept.compiled;
    const compiled = compile(state);
    if (this.#kept.size >= KEPT_MAX) this.#kept.clear();
    this.#kept.set(state.id, { version: state.version, compiled });
    return compiled;
  }
}

export function compile(stored: {
  readonly definition: string;
  readonly anchorAt: number;
}): Compiled {
  const definition = JSON.parse(stored.definition) as ScheduleDefinition;
  return { definition, when: makeWhen(definition.when, stored.anchorAt) };
}

/** The rules of time zones that the ticks of a schedule depend on; null where they do not. */
export function tzdataOf({ when }: ScheduleDefinition): string | null {
  const isLocal = when.kind === "cron" && when.timezone !== "UTC";
  return isLocal ? (process.versions.tz ?? null) : null;
}
