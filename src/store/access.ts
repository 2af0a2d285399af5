// Declares the store's verbs for sessions of the dashboard and for named keys. A session or a key that has ended, has expired or
// never began opens nothing, on every instance and after every restart.

import type { Audited } from "./audit.js";

/** A named key; its secret is stored nowhere. */
export type KeyRecord = {
  readonly name: string;
  /** Of the secret. */
  readonly digest: string;
  /** Names it in the rows of its sessions: `key:`, the name, a colon and the beginning of the digest. */
  readonly session: string;
  readonly scopes: readonly string[];
  /** Null: every job, every queue. */
  readonly jobs: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly expiresAt: number | null;
  /** To the hour. */
  readonly usedAt: number | null;
  /** By the database's clock. */
  readonly isExpired: boolean;
  /** The last use that is stored is old enough to be written again. */
  readonly isUseDue: boolean;
};

export type NewKey = Pick<KeyRecord, "name" | "digest" | "scopes" | "jobs" | "queues"> & {
  readonly by: string;
  /** By the database's clock; null: it does not expire. */
  readonly lifeMs: number | null;
};

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
  /** Stores a key; null: another key has that name. */
  createKey(params: NewKey & Audited): Promise<KeyRecord | null>;
  /** Every key by name, also those that have expired lately. */
  accessKeys(): Promise<readonly KeyRecord[]>;
  /** The key of that digest or of that name, expired or not; one read by an index. */
  accessKey(by: { readonly digest: string } | { readonly name: string }): Promise<KeyRecord | null>;
  /** Removes a key and ends its sessions. False if there was none. */
  revokeKey(params: { readonly name: string } & Audited): Promise<boolean>;
  /** Notes that the key was used, at most once an hour. */
  touchKey(name: string): Promise<void>;
}
