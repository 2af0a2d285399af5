// Suspects: runs whose earlier holder fell silent, perhaps because of them. One at a time, and nothing
// else starts beside it until it has settled or run for a while; then everything else has as long a
// turn as it took. So a run that kills its process never takes the same innocent twice, and neither
// suspects nor the rest stop the others.

import type { Clock, Timer } from "../shared/ports.js";
import type { ActiveAttempt } from "./attempt.js";

const QUARANTINE_MS = 5_000;

export class Quarantine {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  #suspect: ActiveAttempt | null = null;
  #timer: Timer | null = null;
  #turnMs = 0;

  constructor(params: { readonly clock: Clock; readonly onOver: () => void }) {
    this.#clock = params.clock;
    this.#onOver = params.onOver;
  }

  get isOn(): boolean {
    return this.#suspect !== null;
  }

  /** Whether the others have had as long a turn as the last suspect. */
  get isSuspectsTurn(): boolean {
    return this.#clock.monotonicMs() >= this.#turnMs;
  }

  /** From the moment that it is chosen: its start may have to be stored first. */
  enter(suspect: ActiveAttempt): void {
    this.#suspect = suspect;
  }

  begun(suspect: ActiveAttempt): void {
    this.#suspect = suspect;
    this.#timer = this.#clock.timer(QUARANTINE_MS, () => this.leave(suspect));
  }

  leave(attempt: ActiveAttempt): void {
    if (this.#suspect !== attempt) return;
    this.#suspect = null;
    this.#timer?.cancel();
    const nowMs = this.#clock.monotonicMs();
    this.#turnMs = nowMs + (attempt.startedMs === 0 ? 0 : nowMs - attempt.startedMs);
    this.#onOver();
  }

  close(): void {
    this.#timer?.cancel();
  }
}
