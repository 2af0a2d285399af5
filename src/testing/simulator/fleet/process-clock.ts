// The clocks of one simulated process. They may be off, run too fast or too slow, and step; the
// process may stand still, and once it is dead nothing of it ever happens again.

import type { Clock, Timer } from "../../../shared/ports.js";
import type { VirtualClock } from "../../virtual-clock.js";

export class ProcessClock implements Clock {
  readonly #base: VirtualClock;
  readonly #shiftMs: number;
  readonly #set = new Set<Timer>();
  readonly #held: (() => void)[] = [];
  #offsetMs = 0;
  #rate = 0;
  #rateSinceMs: number;
  #asleepMs = 0;
  #stoppedAtMs: number | null = null;
  #isAsleep = false;
  #isDead = false;

  /** `shiftMs` is how far the simulated time lies from that of the virtual clock. */
  constructor(base: VirtualClock, shiftMs: number) {
    this.#base = base;
    this.#shiftMs = shiftMs;
    this.#rateSinceMs = base.monotonicMs();
  }

  get isStopped(): boolean {
    return this.#stoppedAtMs !== null;
  }

  wallMs(): number {
    return Math.floor(this.#base.wallMs() + this.#shiftMs + this.#offsetMs + this.#drifted());
  }

  monotonicMs(): number {
    return this.#base.monotonicMs() + this.#drifted() - this.#asleepMs;
  }

  timer(delayMs: number, callback: () => void): Timer {
    if (this.#isDead) return { cancel: () => undefined };
    // Whole milliseconds, and at least one, as on a real machine.
    const waitMs = Math.max(1, Math.ceil(delayMs / (1 + this.#rate)));
    const inner = this.#base.timer(waitMs, () => {
      this.#run(() => {
        if (this.#set.delete(timer)) callback();
      });
    });
    const timer: Timer = {
      cancel: () => {
        this.#set.delete(timer);
        inner.cancel();
      },
    };
    this.#set.add(timer);
    return timer;
  }

  soon(callback: () => void): void {
    if (!this.#isDead) this.#base.soon(() => this.#run(callback));
  }

  /** For what reaches the process from outside. */
  arrive(callback: () => void): void {
    this.#run(callback);
  }

  step(byMs: number): void {
    this.#offsetMs += byMs;
  }

  /** From now on this clock gains so much of every millisecond. */
  drift(rate: number): void {
    this.#offsetMs += this.#drifted();
    this.#asleepMs -= this.#drifted();
    this.#rateSinceMs = this.#base.monotonicMs();
    this.#rate = rate;
  }

  /** The wall clock is right again, as after a synchronisation. */
  mend(): void {
    this.drift(0);
    this.#offsetMs = 0;
  }

  /** As SIGSTOP does. Asleep as a machine is, the monotonic clock stands still too. */
  stop({ isAsleep }: { readonly isAsleep: boolean }): void {
    if (this.#stoppedAtMs !== null) return;
    this.#stoppedAtMs = this.#base.monotonicMs();
    this.#isAsleep = isAsleep;
  }

  resume(): void {
    if (this.#stoppedAtMs === null) return;
    if (this.#isAsleep) this.#asleepMs += this.#base.monotonicMs() - this.#stoppedAtMs;
    this.#stoppedAtMs = null;
    for (const callback of this.#held.splice(0)) this.#run(callback);
  }

  die(): void {
    this.#isDead = true;
    this.#held.length = 0;
    for (const timer of [...this.#set]) timer.cancel();
  }

  #drifted(): number {
    return this.#rate === 0 ? 0 : (this.#base.monotonicMs() - this.#rateSinceMs) * this.#rate;
  }

  #run(callback: () => void): void {
    if (this.#isDead) return;
    if (this.#stoppedAtMs !== null) this.#held.push(callback);
    else callback();
  }
}
