// Checks that a run under a rate begins within the rate, for a worker whose event loop was blocked.
// The database counts a run when it is claimed. A claimed run may then wait, unread or in the buffer, and begin
// together with the runs of the next window. So each begin is counted again here, by this instance's monotonic clock.

import type { ActiveAttempt } from "./attempt.js";
import { flowKeyOf, WHOLE_JOB } from "./rules/limits.js";

/** A run that begins later than this after its claim was sent may meet runs that another instance was granted since. */
const LATE_MIN_MS = 250;
const LATE_MAX_MS = 2_000;
/** Above this many keys, those without a recent begin are forgotten. */
const KEYS_MAX = 1_000;

/** What a run under a rate does now: it begins, waits for `waitMs`, or is handed back because it is late. */
export type Admission = "begins" | "late" | { readonly waitMs: number };

type Window = { readonly perMs: number; begins: number[] };

export class BeginWindow {
  readonly #windows = new Map<string, Window>();

  /** Decides whether a run may begin now, and counts it if so. */
  admit(attempt: Pick<ActiveAttempt, "job" | "run" | "claimedMs">, nowMs: number): Admission {
    const { job, run, claimedMs } = attempt;
    const { rate } = job.limits;
    if (rate === null) return "begins";
    const lateMs = Math.min(LATE_MAX_MS, Math.max(LATE_MIN_MS, rate.perMs / 2));
    const ageMs = nowMs - claimedMs;
    if (ageMs > lateMs) return "late";
    const key = rate.key === null ? WHOLE_JOB : flowKeyOf(job.limits, run.input);
    const window = this.#window(`${job.name} ${key}`, rate.perMs, nowMs);
    if (window.begins.length < rate.limit) {
      window.begins.push(nowMs);
      return "begins";
    }
    const freeAtMs = (window.begins[window.begins.length - rate.limit] ?? nowMs) + rate.perMs;
    const waitMs = Math.max(1, Math.ceil(freeAtMs - nowMs));
    return ageMs + waitMs > lateMs ? "late" : { waitMs };
  }

  #window(name: string, perMs: number, nowMs: number): Window {
    const known = this.#windows.get(name);
    const begins = (known?.begins ?? []).filter((at) => at > nowMs - perMs);
    const window = { perMs, begins };
    if (!known && this.#windows.size >= KEYS_MAX) this.#forget(nowMs);
    this.#windows.set(name, window);
    return window;
  }

  #forget(nowMs: number): void {
    for (const [name, { begins, perMs }] of this.#windows)
      if ((begins.at(-1) ?? 0) <= nowMs - perMs) this.#windows.delete(name);
  }
}
