// Brings the database up to the schedules that this process declares: once, before one is fired or looked
// at, and whenever somebody applies them.

import type { Opening } from "../store/lazy-store.js";
import type { Declarations } from "./declarations.js";
import type { PlannedChange } from "./declared.js";

export type ReconcilingParams = {
  readonly declarations: Declarations;
  readonly opening: Opening;
  /** The code at hand wins over what was stored by newer code. */
  readonly isDevelopment: boolean;
  /** Whether this instance fires what is due. */
  readonly isScheduler: () => boolean;
  readonly onApplied: () => void;
};

export class Reconciling {
  readonly #params: ReconcilingParams;
  #done: Promise<void> | null = null;

  constructor(params: ReconcilingParams) {
    this.#params = params;
  }

  /** Once in a process; a failure is tried again by the next call. */
  async once(): Promise<void> {
    this.#done ??= this.#reconcile();
    this.#done.catch(() => {
      this.#done = null;
    });
    await this.#done;
  }

  async #reconcile(): Promise<void> {
    const { declarations, opening, isDevelopment, isScheduler } = this.#params;
    if (declarations.names.length === 0 && !isScheduler()) return;
    const store = await opening.for("schedules");
    await declarations.reconcileAll(store, { isForced: isDevelopment });
    if (!isScheduler()) return;
    await declarations.reportVanished(store);
    await declarations.recompute(store);
  }

  async plan(): Promise<readonly PlannedChange[]> {
    const { declarations, opening } = this.#params;
    return declarations.plan(await opening.for("schedules.plan"));
  }

  async apply(): Promise<readonly PlannedChange[]> {
    const { declarations, opening, onApplied } = this.#params;
    const store = await opening.for("schedules.apply");
    const planned = await declarations.plan(store);
    await declarations.reconcileAll(store, { isForced: true });
    await declarations.reportVanished(store);
    onApplied();
    return planned;
  }
}
