// Declares the store's verbs for sessions of the dashboard. A session that has ended, has expired or never began
// opens nothing, on every instance and after every restart.

import type { Audited } from "./audit.js";

export interface AccessStore {
  /**
   * Stores a session that lasts so long by the database's clock. Of one secret the newest `keep` are kept, so the table
   * stays small whoever signs in how often.
   */
  beginSession(
    params: {
      /** Of the token in the cookie; the token itself is stored nowhere. */
      readonly digest: string;
      /** Names the secret that was presented, without giving it away. */
      readonly secret: string;
      readonly lengthMs: number;
      readonly keep: number;
    } & Audited,
  ): Promise<void>;
  /** Which secret a session belongs to; null if there is no such session, or its time is over. */
  sessionSecret(digest: string): Promise<string | null>;
  /** Ends a session. False if there was none. */
  endSession(params: { readonly digest: string } & Audited): Promise<boolean>;
}
