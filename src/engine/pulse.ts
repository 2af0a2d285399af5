// Whoever sends the heartbeats: the main thread here; a thread of its own can take its place
// (thread-pulse.ts).

import type { RenewAnswer, RenewParams, Store } from "../store/store.js";

export interface Pulse {
  /** There is something to renew that was not there before. Told before any of it is begun. */
  claimed(): void;
  renew(params: RenewParams): Promise<RenewAnswer>;
  close(): Promise<void>;
}

export function mainThreadPulse(store: Store): Pulse {
  return {
    claimed: () => undefined,
    renew: (params) => store.renew(params),
    close: async () => undefined,
  };
}
