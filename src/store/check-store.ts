// What a database is asked about its own health, in domain verbs: which promises its tables break, and
// the same questions as a script for those who have nothing but SQL.

/** A question that a user asks of their own tables: every row of its answer is a violation. */
export type OwnCheck = { readonly name: string; readonly sql: string };

export type CheckFinding = {
  readonly name: string;
  /** The promise that it is part of; null: none, or a check of the user's. */
  readonly promise: string | null;
  readonly violations: number;
  /** The first of them. */
  readonly evidence: readonly Readonly<Record<string, unknown>>[];
  /** The time was over before it had its answer. */
  readonly isUnfinished: boolean;
  /** Why it could not be asked. */
  readonly error: string | null;
  readonly tookMs: number;
};

export interface CheckStore {
  /**
   * Asks everything in one snapshot: nothing that is under way is taken for damage. What has no answer
   * when the time is over is unfinished.
   */
  check(params: {
    readonly own: readonly OwnCheck[];
    readonly timeLimitMs: number;
  }): Promise<readonly CheckFinding[]>;
  /** The same as one script for the database's own command line; changes nothing. */
  checkScript(own: readonly OwnCheck[]): string;
}
