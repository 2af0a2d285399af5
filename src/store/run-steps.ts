// Reads the steps and waits of one run for people: finished ones in the order in which they were recorded, then the
// open ones. Long values are cut to their beginning, as a run may have thousands of them. Handlers read whole values
// (steps.ts).

import type { RunId } from "../runs/rules/run.js";
import type { StepKind } from "../runs/rules/steps.js";
import { numberOrNull, type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";
import { shortened } from "./sql/list-page.js";

/** As steps and waits are stored; a wait of the first kind is a step that will be tried again. */
const KINDS = ["step", "sleep", "signal", "run"] as const satisfies readonly StepKind[];

const ENDED = /* sql */ `
select s.no, s.name, s.kind, s.tries, s.fence, s.started_at, s.ended_at, null::bigint as until, s.signal, s.key, s.child,
  ${shortened("s.value")} as value, s.error
from {step} s where s.run = :id::uuid and s.no > :after::int order by s.no limit :limit`;

const OPEN = /* sql */ `
select null::int as no, w.name, w.kind, w.tries, null::bigint as fence, w.since as started_at, null::bigint as ended_at, w.until,
  w.signal, w.key, w.child, null::text as value, case when w.kind = 0 then w.error end as error
from {wait} w where w.run = :id::uuid order by w.since, w.name`;

export type RunStepRecord = {
  /** Null: it is open. */
  readonly no: number | null;
  readonly name: string;
  readonly kind: StepKind;
  readonly tries: number;
  readonly fence: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly until: number | null;
  readonly signal: string | null;
  /** The job of a call. */
  readonly key: string | null;
  readonly child: RunId | null;
  /** JSON, cut if it is long; null: a timeout, an error, or it is open. */
  readonly value: string | null;
  /** For a call `{ status, error }`; for a step that will be tried again the error of its last try. */
  readonly error: string | null;
};

export type RunStepsParams = {
  readonly id: RunId;
  /** Finished ones with a larger number. */
  readonly after: number;
  readonly limit: number;
};

/** At most `limit` finished ones, and all that are open. */
export async function readRunSteps(
  session: StoreSession,
  params: RunStepsParams,
): Promise<{ readonly ended: readonly RunStepRecord[]; readonly open: readonly RunStepRecord[] }> {
  const verb = "runs.steps";
  // The open ones first: one that ends in between is then in both lists, and none is missing.
  const open = await session.read({ verb, sql: OPEN, params: { id: params.id } });
  const ended = (await session.read({ verb, sql: ENDED, params: { ...params } })).map(toRecord);
  const names = new Set(ended.map(({ name }) => name));
  return { ended, open: open.map(toRecord).filter(({ name }) => !names.has(name)) };
}

function toRecord(row: Row): RunStepRecord {
  return {
    no: numberOrNull(row.no),
    name: String(row.name),
    kind: KINDS[Number(row.kind)] as StepKind,
    tries: Number(row.tries),
    fence: numberOrNull(row.fence),
    startedAt: Number(row.started_at),
    endedAt: numberOrNull(row.ended_at),
    until: numberOrNull(row.until),
    signal: textOrNull(row.signal),
    key: textOrNull(row.key),
    child: textOrNull(row.child),
    value: textOrNull(row.value),
    error: textOrNull(row.error),
  };
}
