// Whoever sends the heartbeats: the main thread here; a thread of its own can take its place.

import type { RenewAnswer, RenewParams, Store } from "../store/store.js";

export interface Pulse {
  renew(params: RenewParams): Promise<RenewAnswer>;
  close(): Promise<void>;
}

export function mainThreadPulse(store: Store): Pulse {
  return { renew: (params) => store.renew(params), close: async () => undefined };
}
