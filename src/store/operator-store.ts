// What operators ask of a database that no run needs: ending what is stale, and looking at the whole.

/** A lease is stale when its holder was silent for so long, or when it has been held for so long. */
export type StaleParams = { readonly silentMs: number; readonly ranMs: number };

export interface OperatorStore {
  /**
   * Makes stale leases end now, whatever they were granted for; answers how many. A reclaim then takes
   * them: what was silent as lost, what was not and ran for too long as over its time.
   */
  expireStale(params: StaleParams): Promise<number>;
}
