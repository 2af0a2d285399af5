// What happened in one simulation, in order: a hash over all of it, by which two runs of a seed are
// compared; the promises that were broken; how often rare states were reached; and, if somebody wants
// to read it, the story in words.

import { createHash } from "node:crypto";
import { noCounters, type Sometimes } from "./checkers/rare-states.js";

export type Violation = {
  /** S1 … S16 of the design, L for liveness, E for effects, T for ticks. */
  readonly promise: string;
  readonly atMs: number;
  readonly text: string;
};

/** Of each promise: nothing is learnt from the hundredth consequence of one mistake. */
const VIOLATIONS_MAX = 5;
const HASHED_AT_ONCE = 16_384;

export class EventLog {
  readonly counters = noCounters();
  readonly violations: Violation[] = [];
  readonly story: string[] = [];
  readonly #hash = createHash("sha256");
  #unhashed = "";
  readonly #nowMs: () => number;
  readonly #isTold: boolean;
  readonly #startsAt: number;

  constructor(params: {
    readonly nowMs: () => number;
    readonly startsAt: number;
    readonly isTold: boolean;
  }) {
    this.#nowMs = params.nowMs;
    this.#startsAt = params.startsAt;
    this.#isTold = params.isTold;
  }

  /** An event that two runs of the same seed must share. */
  mark(event: string): void {
    this.#unhashed += `${this.#nowMs()} ${event}\n`;
    if (this.#unhashed.length < HASHED_AT_ONCE) return;
    this.#hash.update(this.#unhashed);
    this.#unhashed = "";
  }

  tell(text: () => string): void {
    if (this.#isTold) this.story.push(`${this.#clockText()}  ${text()}`);
  }

  saw(name: Sometimes): void {
    this.counters[name] += 1;
  }

  violate(promise: string, text: string): void {
    this.mark(`violation ${promise}`);
    this.tell(() => `!!! ${promise}: ${text}`);
    const known = this.violations.filter((each) => each.promise === promise);
    if (known.length < VIOLATIONS_MAX)
      this.violations.push({ promise, atMs: this.#nowMs() - this.#startsAt, text });
  }

  /** Ends the log. */
  digest(): string {
    return this.#hash.update(this.#unhashed).digest("hex").slice(0, 32);
  }

  #clockText(): string {
    const ms = Math.max(0, Math.round(this.#nowMs() - this.#startsAt));
    const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
    const rest = String(ms % 1_000).padStart(3, "0");
    return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1_000) % 60)}.${rest}`;
  }
}
