// Records the effects that handlers report while they run: the outside world, which no database guards.

import type { EventLog } from "../event-log.js";

/** One attempt, local or remote. */
type Attempt = { readonly runId: string; readonly fence: number; readonly attempt: number };

type Effect = { readonly label: string; endedMs: number | null };

export class Effects {
  readonly #log: EventLog;
  readonly #effects = new Map<string, Effect>();
  readonly #starts = new Map<string, number>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  begun(label: string, ctx: Attempt): void {
    const key = keyOf(ctx.runId, ctx.fence);
    const log = this.#log;
    log.mark(`${label} begins ${key}`);
    log.narrate(() => `${label} begins run ${short(ctx.runId)}, attempt ${ctx.attempt}`);
    if (this.#effects.has(key))
      log.violate("E", `Run ${ctx.runId} began twice under fence ${ctx.fence}.`);
    this.#effects.set(key, { label, endedMs: null });
    this.#starts.set(ctx.runId, this.startsOf(ctx.runId) + 1);
  }

  ended(ctx: Omit<Attempt, "attempt">, nowMs: number): void {
    const effect = this.#effects.get(keyOf(ctx.runId, ctx.fence));
    if (effect) effect.endedMs = nowMs;
  }

  hasBegun(run: string, fence: number): boolean {
    return this.#effects.has(keyOf(run, fence));
  }

  hasEnded(run: string, fence: number): boolean {
    return this.endedMs(run, fence) !== null;
  }

  /** When the handler succeeded, in world time. */
  endedMs(run: string, fence: number): number | null {
    return this.#effects.get(keyOf(run, fence))?.endedMs ?? null;
  }

  startsOf(run: string): number {
    return this.#starts.get(run) ?? 0;
  }
}

function keyOf(run: string, fence: number): string {
  return `${run} ${fence}`;
}

/** Enough of an id to recognise it in a story. */
export function short(id: string): string {
  return id.slice(-6);
}
