// Declares claims and settlements, the hot path, and maps their rows for both engines.

import {
  ATTEMPT_ENDS,
  type AttemptEnd,
  MODES,
  type Mode,
  type Policy,
  type RunId,
  type TerminalStatus,
} from "../runs/rules/run.js";
import { isSameResult } from "../shared/json.js";
import { splitTags } from "../shared/trace-context.js";
import type { ClaimScope } from "./instances.js";
import { toPolicy } from "./jobs.js";
import { type Row, TERMINAL_CODES, textOrNull } from "./rows.js";

/** One lease: some runs of one lane and policy, at one attempt, granted to one holder under one fence. */
export type Claim = {
  readonly fence: number;
  readonly job: string;
  readonly queue: string;
  readonly attempt: number;
  readonly policy: Policy;
  /** How long the lease still lasts. A lease never outlives the deadline of its runs. */
  readonly leaseMs: number;
  /** The earlier holder fell silent with this run, so it is handed out alone. */
  readonly isSuspect: boolean;
  /** A limit let its runs through; their settlements must carry the same flag. */
  readonly isLimited: boolean;
  readonly runs: readonly ClaimedRun[];
};

export type ClaimedRun = {
  readonly id: RunId;
  /** JSON text, as it was enqueued. */
  readonly input: string;
  readonly mode: Mode;
  readonly version: number;
  readonly priority: number;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly nominalAt: number | null;
  /** The number of the schedule that made the run. */
  readonly schedule: number | null;
  /** The number of the batch that the run is a child of. */
  readonly batch: number | null;
  readonly tags: readonly string[];
  /** The W3C trace context of the call that enqueued the run. */
  readonly trace?: string;
  readonly refunds: number;
  readonly laters: number;
  readonly extraAttempts: number;
};

/** A held run, with everything that its renewal, its items and its settlement need. */
export type HeldRun = {
  /** The number of the instance that holds the run. */
  readonly holder: number;
  /** The name of that instance. */
  readonly instance: string;
  /** The credential of a remote worker; null for an instance of the library. */
  readonly remoteBy: string | null;
  /** The lease, with this run alone. */
  readonly claim: Claim;
  /** How long ago the run was claimed. */
  readonly heldMs: number;
  readonly isCancelRequested: boolean;
};

/** A run, and the fence under which its holder believes to hold it. */
export type Grant = { readonly id: RunId; readonly fence: number };

/** The end of an attempt of a held run. `ranMs`: how long ago its handler began, on the holder's clock. */
export type Settlement = Grant & {
  readonly mode: Mode;
  /** The schedule that made the run, if any: the end of the run may set its next tick. */
  readonly schedule: number | null;
  /** The batch that the run is a child of, if any. The end of its last child makes the run that follows the batch. */
  readonly batch: number | null;
  /** The flag of its claim. The run gives back its place in the limit, unless it goes straight back to ready. */
  readonly isLimited: boolean;
  /** The run may have open waits: its end leaves a note, so that a pass ends its calls. */
  readonly mayWait?: boolean;
  readonly ranMs: number;
  readonly error: string | null;
} & (
    | { readonly to: TerminalStatus; readonly result: string | null }
    | {
        readonly to: "pending";
        readonly end: AttemptEnd;
        readonly delayMs: number;
        readonly isRefund: boolean;
      }
  );

export type ExchangeParams = ClaimScope & {
  readonly holder: number;
  /** `byToken` finds the claims by it if the reply to this exchange is lost. */
  readonly token: string;
  /** The caller repeats its calls with the same token: a repeated call claims nothing more and returns what is held. */
  readonly isNamed?: boolean;
  readonly settlements: readonly Settlement[];
  /** The settlements are those of all runs of one lease, in the order of its claim. */
  readonly isWholeLease?: boolean;
  /** How many runs to claim at most; 0 settles only. */
  readonly limit: number;
  /** Claim one suspect run alone instead. */
  readonly wantsSuspect: boolean;
  /** A number from 0 to 1 for schedules with a range, whose next tick depends on the end of a run. */
  readonly random: number;
  /** Every run of these jobs gets a lease of its own, since a remote worker renews and ends it alone. */
  readonly apart?: readonly string[];
  /** Claim runs that wait for a limit too, before or after the other runs. Left out: do not claim them. */
  readonly limited?: "first" | "last";
};

export type ExchangeResult = {
  readonly claims: readonly Claim[];
  /** Settlements that changed nothing, because their fence is not the current one. */
  readonly stale: readonly Grant[];
  /** A settlement ended the last child of a batch: the run that follows the batch is ready. */
  readonly hasContinued: boolean;
  /** Runs wait for the window of a rate: how long until one of them may begin. */
  readonly limitedInMs?: number | null;
};

export interface ClaimVerbs {
  /**
   * Applies settlements and claims runs, in one commit. A settlement takes effect only under the current fence. Claims
   * share no run with other claims, and have at most `limit` runs.
   */
  exchange(params: ExchangeParams): Promise<ExchangeResult>;
  /** Returns the claims under this token that still stand, for an exchange whose reply was lost. */
  byToken(params: { readonly holder: number; readonly token: string }): Promise<readonly Claim[]>;
  /** Returns the run if any instance holds it under this fence: remote workers name only the grant. */
  held(grant: Grant): Promise<HeldRun | null>;
}

type ClaimRow = Omit<Claim, "policy" | "runs"> & {
  readonly policy: readonly number[];
  readonly refunds: number;
  readonly laters: number;
  readonly extraAttempts: number;
  readonly runs:
    | readonly [
        string,
        string,
        number,
        number,
        number,
        number,
        number,
        // Left out of the row if there are none.
        (number | null)?,
        (number | null)?,
        (number | null)?,
        (readonly string[] | null)?,
      ][]
    | null;
};

const NO_TAGS: readonly string[] = [];

/** Counts the runs of these claims. */
export function countOf(claims: readonly Claim[]): number {
  return claims.reduce((sum, { runs }) => sum + runs.length, 0);
}

export function toClaim(row: ClaimRow): Claim {
  const { refunds, laters, extraAttempts } = row;
  const runs = (row.runs ?? []).map(
    ([
      id,
      input,
      mode,
      version,
      priority,
      createdAt,
      dueAt,
      nominalAt = null,
      schedule = null,
      batch = null,
      tags = null,
    ]) => {
      const run = {
        id,
        input,
        mode: MODES[mode] as Mode,
        version,
        priority,
        createdAt,
        dueAt,
        nominalAt,
        schedule,
        batch,
        tags: NO_TAGS,
        refunds,
        laters,
        extraAttempts,
      };
      return tags === null ? run : { ...run, ...splitTags(tags) };
    },
  );
  return {
    fence: row.fence,
    job: row.job,
    queue: row.queue,
    attempt: row.attempt,
    policy: toPolicy(row.policy),
    leaseMs: row.leaseMs,
    isSuspect: row.isSuspect,
    isLimited: row.isLimited,
    runs,
  };
}

/** A hundred years: the longest delay that a table can safely hold. */
const DELAY_MAX_MS = 36_525 * 86_400_000;

/** Rounds a delay. NaN becomes 0: with it the run would end up in no table at all. */
export function wholeDelayMs(delayMs: number): number {
  return Number.isNaN(delayMs) ? 0 : Math.min(Math.max(0, Math.round(delayMs)), DELAY_MAX_MS);
}

/**
 * Whether the recorded end of a grant is the one that this settlement requests. Then the settlement was applied before and
 * its reply was lost. Any other end means that the run was taken away: a reclaim writes errors that nobody else writes.
 */
export function isSameEnd(
  settlement: Settlement,
  recorded: {
    readonly ended: number;
    readonly error: string | null;
    readonly result: string | null;
  },
): boolean {
  if (recorded.error !== settlement.error) return false;
  const cancelled = [ATTEMPT_ENDS.indexOf("cancelled"), 10 + TERMINAL_CODES.cancelled];
  switch (settlement.to) {
    case "completed":
      // A different result is a different end: the first one stays, and the caller gets an error.
      return (
        recorded.ended === 10 + TERMINAL_CODES.completed &&
        isSameResult(settlement.result, recorded.result)
      );
    case "cancelled":
      return cancelled.includes(recorded.ended);
    case "failed":
      return [ATTEMPT_ENDS.indexOf("failed"), 10 + TERMINAL_CODES.failed, ...cancelled].includes(
        recorded.ended,
      );
    case "pending":
      return [ATTEMPT_ENDS.indexOf(settlement.end), ...cancelled].includes(recorded.ended);
  }
}

/** How an attempt ended, read from the history of its run. */
export function toEnding(row: Row) {
  return {
    ended: Number(row.ended),
    error: textOrNull(row.error),
    result: textOrNull(row.result),
  };
}
