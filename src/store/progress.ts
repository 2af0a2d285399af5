// Declares the store's verbs for the progress of runs, and maps their rows.

import type { RunId } from "../runs/rules/run.js";
import { numberOrNull, type Row, textOrNull } from "./rows.js";

/** How far a held run is. What happened before the call is told by how long ago it was. */
export type ProgressWrite = {
  readonly id: RunId;
  readonly fence: number;
  readonly stage: string | null;
  readonly done: number | null;
  readonly total: number | null;
  readonly agoMs: number;
  /** Every stage of this attempt so far, the first one first; those that are stored keep their times. */
  readonly stages: readonly { readonly stage: string; readonly agoMs: number }[];
};

export type ProgressParams = {
  readonly holder: number;
  /** At most one for a run. */
  readonly writes: readonly ProgressWrite[];
  readonly timeoutMs?: number;
};

/** As a renewal is answered. */
export type ProgressAnswer = {
  readonly held: readonly {
    readonly fence: number;
    readonly leaseMs: number;
    readonly ids: readonly RunId[];
  }[];
  /** Locked by somebody at this moment: neither stored nor lost; ask again. */
  readonly unknown: readonly number[];
};

export type ProgressRecord = {
  readonly id: RunId;
  /** The attempt that told it: the last one that told anything. */
  readonly attempt: number;
  readonly at: number;
  readonly stage: string | null;
  readonly done: number | null;
  readonly total: number | null;
  readonly stages: readonly { readonly stage: string; readonly at: number }[];
};

export interface ProgressStore {
  /**
   * Stores how far runs are, and renews their leases: whoever gets on is alive. Under any other fence
   * than the current one nothing is stored and nothing renewed.
   */
  progress(params: ProgressParams): Promise<ProgressAnswer>;
  /** Of these runs, those that told how far they are. */
  progressOf(ids: readonly RunId[]): Promise<readonly ProgressRecord[]>;
}

export function toProgressRecord(row: Row): ProgressRecord {
  return {
    id: String(row.run),
    attempt: Number(row.attempt),
    at: Number(row.at),
    stage: textOrNull(row.stage),
    done: numberOrNull(row.done),
    total: numberOrNull(row.total),
    stages: (JSON.parse(String(row.stages)) as [string, number][]).map(([stage, at]) => ({
      stage,
      at,
    })),
  };
}
