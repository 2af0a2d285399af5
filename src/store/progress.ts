// Keeps the progress of runs. Reads are written once; each engine writes in its own way, as it renews leases.

import type { RunId } from "../runs/rules/run.js";
import { numberOrNull, type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";

const of = (stages: string) => /* sql */ `
select run, attempt, at, stage, done, total, ${stages} as stages from {progress} where run {any :ids::uuid[]}`;
const OF = of("stages::text");
/** A list has a thousand runs, and a run up to 60 kB of stages. */
const LISTED_STAGES_BYTES_MAX = 2_048;
const LISTED = of(
  `case when octet_length(stages::text) <= ${LISTED_STAGES_BYTES_MAX} then stages::text else '[]' end`,
);

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
export type ProgressResult = {
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

export abstract class Progress {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * Stores how far runs are, and renews their leases: a holder that reports progress is alive. Under any other fence than
   * the current one nothing is stored and nothing renewed.
   */
  abstract write(params: ProgressParams): Promise<ProgressResult>;

  /** The progress of those of these runs that have reported any. */
  async of(ids: readonly RunId[]): Promise<readonly ProgressRecord[]> {
    const found = await this.#session.read({ verb: "progress.of", sql: OF, params: { ids } });
    return found.map(toProgressRecord);
  }

  /** As `of`, for lists: stages of more than 2 KiB are left out. */
  async listed(ids: readonly RunId[]): Promise<readonly ProgressRecord[]> {
    const found = await this.#session.read({
      verb: "progress.listed",
      sql: LISTED,
      params: { ids },
    });
    return found.map(toProgressRecord);
  }
}

function toProgressRecord(row: Row): ProgressRecord {
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
