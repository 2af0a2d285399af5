// Keeps the progress of runs. Reads are written once; each engine writes its own way, like its renewals.

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

/** How far a held run is. Earlier times are given as durations before the call. */
export type ProgressWrite = {
  readonly id: RunId;
  readonly fence: number;
  readonly stage: string | null;
  readonly done: number | null;
  readonly total: number | null;
  readonly agoMs: number;
  /** Every stage of this attempt so far, the first one first; stored stages keep their times. */
  readonly stages: readonly { readonly stage: string; readonly agoMs: number }[];
};

export type ProgressParams = {
  readonly holder: number;
  /** At most one for a run. */
  readonly writes: readonly ProgressWrite[];
  readonly timeoutMs?: number;
};

/** The same values as the result of a renewal. */
export type ProgressResult = {
  readonly held: readonly {
    readonly fence: number;
    readonly leaseMs: number;
    readonly ids: readonly RunId[];
  }[];
  /** Another transaction has locked it at this moment: neither stored nor lost; try again. */
  readonly unknown: readonly number[];
};

export type ProgressRecord = {
  readonly id: RunId;
  /** The attempt that reported it: the last one that reported any. */
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
