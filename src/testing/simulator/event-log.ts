// Records the events of one simulation: a hash over all of them, by which two runs of a seed are compared; the
// violations; the counts of rare states; and, on request, the story in words.

import { createHash } from "node:crypto";
import { noCounters, type Sometimes } from "./checkers/rare-states.js";

export type Violation = {
  /** S1 … S16 of the design, L for liveness, E for effects, T for ticks. */
  readonly promise: string;
  readonly atMs: number;
  readonly text: string;
};

/** The limit for each promise: the hundredth consequence of one mistake shows nothing new. */
const VIOLATIONS_MAX = 5;
const HASHED_AT_ONCE = 16_384;

export class EventLog {
  readonly counters = noCounters();
  readonly violations: Violation[] = [];
  readonly story: string[] = [];
  readonly #hash = createHash("sha256");
  #unhashed = "";
  readonly #nowMs: () => number;
  readonly #hasStory: boolean;
  readonly #startsAt: number;

  constructor(params: {
    readonly nowMs: () => number;
    readonly startsAt: number;
    readonly hasStory: boolean;
  }) {
    this.#nowMs = params.nowMs;
    this.#startsAt = params.startsAt;
    this.#hasStory = params.hasStory;
  }

  /** Adds an event to the hash. Two runs of the same seed must have the same events. */
  mark(event: string): void {
    this.#unhashed += `${this.#nowMs()} ${event}\n`;
    if (this.#unhashed.length < HASHED_AT_ONCE) return;
    this.#hash.update(this.#unhashed);
    this.#unhashed = "";
  }

  narrate(text: () => string): void {
    if (this.#hasStory) this.story.push(`${this.#clockText()}  ${text()}`);
  }

  saw(name: Sometimes): void {
    this.counters[name] += 1;
  }

  violate(promise: string, text: string): void {
    this.mark(`violation ${promise}`);
    this.narrate(() => `!!! ${promise}: ${text}`);
    const known = this.violations.filter((each) => each.promise === promise);
    if (known.length < VIOLATIONS_MAX)
      this.violations.push({ promise, atMs: this.#nowMs() - this.#startsAt, text });
  }

  /** Ends the log and returns its hash. */
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
