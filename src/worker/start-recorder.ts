// Where a loss would be final, that the handler begins is stored before it does: whoever takes the run
// over must know. Those that begin together are one statement.

import type { Grant, Store } from "../store/store.js";
import type { Backoff } from "./backoff.js";
import type { Execution } from "./execution.js";

export type StartMarksParams = {
  readonly store: Store;
  readonly backoff: Pick<Backoff, "failed">;
  /** Stored; `isHeld` is false where the run was no longer ours. */
  readonly onMarked: (execution: Execution, isHeld: boolean) => void;
  /** Not begun, or not known to be. */
  readonly onFailed: (execution: Execution) => void;
  /** All of a statement have been told about. */
  readonly onDone: () => void;
};

type Mark = { readonly execution: Execution; readonly grant: Grant };

export class StartMarks {
  readonly #params: StartMarksParams;
  #queue: Mark[] = [];
  #count = 0;

  constructor(params: StartMarksParams) {
    this.#params = params;
  }

  /** Those that are being stored, and those that will be. */
  get count(): number {
    return this.#count;
  }

  /** Those that are not on their way yet. */
  *queued(): Generator<Execution> {
    for (const { execution } of this.#queue) yield execution;
  }

  add(execution: Execution): void {
    this.#count += 1;
    this.#queue.push({ execution, grant: { id: execution.run.id, fence: execution.claim.fence } });
    if (this.#queue.length === 1) queueMicrotask(() => void this.#send());
  }

  async #send(): Promise<void> {
    const { store, backoff, onMarked, onFailed, onDone } = this.#params;
    const marks = this.#queue;
    this.#queue = [];
    try {
      const held = await store.markStarted(marks.map(({ grant }) => grant));
      const isHeld = new Set(held.map(({ id, fence }) => `${id} ${fence}`));
      this.#count -= marks.length;
      for (const { execution, grant } of marks)
        onMarked(execution, isHeld.has(`${grant.id} ${grant.fence}`));
    } catch (error) {
      this.#count -= marks.length;
      for (const { execution } of marks) onFailed(execution);
      await backoff.failed("mark a start", error);
    }
    onDone();
  }
}

/** An attempt whose loss would end the run: its start must be known to the reaper. */
export function isLossFinal({ claim, run }: Execution): boolean {
  const attemptsMax = claim.policy.retry.attempts + run.extraAttempts;
  return claim.policy.onLost === "fail" || claim.attempt >= attemptsMax;
}
