// Whoever sends the heartbeats: the main thread here; a thread of its own can take its place
// (thread-heartbeat.ts).

import type { RenewAnswer, RenewParams, Store } from "../store/store.js";

export interface Pulse {
  /** Whether a blocked event loop keeps its heartbeats from being sent. */
  readonly isOnMainThread: boolean;
  /** What is to be renewed has changed. What is new is told before any of it is begun. */
  changed(): void;
  renew(params: RenewParams): Promise<RenewAnswer>;
  close(): Promise<void>;
}

export function mainThreadPulse(store: Store): Pulse {
  return {
    isOnMainThread: true,
    changed: () => undefined,
    renew: (params) => store.renew(params),
    close: async () => undefined,
  };
}
