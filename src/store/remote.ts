// Declares the store's verbs for remote workers. A remote worker names a run by its id and fence alone, whichever
// instance holds the run in the database.

import type { RunId } from "../runs/rules/run.js";

/** A held run: all that is needed to renew it, to store for it, and to end it. */
export type HeldRun<Claim> = {
  /** The number of the instance that holds it. */
  readonly holder: number;
  /** The name of that instance. */
  readonly instance: string;
  /** Whose credential that instance came with; null: it is an instance of the library. */
  readonly remoteBy: string | null;
  /** Its lease, with this run alone. */
  readonly claim: Claim;
  /** How long ago it was claimed. */
  readonly heldMs: number;
  readonly isCancelRequested: boolean;
};

export interface RemoteStore<Claim> {
  /** The run, if it is held under this fence. */
  heldRun(grant: { readonly id: RunId; readonly fence: number }): Promise<HeldRun<Claim> | null>;
}
