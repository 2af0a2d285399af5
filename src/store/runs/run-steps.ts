// Reads the steps and waits of one run for people: finished ones in the order in which they were recorded, then the open
// ones. Long values are cut to their beginning and a page ends when it has its bytes, as a run may have thousands of them, each
// with an error of 24 KiB. Handlers read whole values (steps.ts).

import type { RunId } from "../../runs/rules/run.js";
import type { StepKind } from "../../runs/rules/steps.js";
import { numberOrNull, type Row, textOrNull } from "../rows.js";
import type { StoreSession } from "../session.js";
import { isCut, PAGE_BYTES_MAX, ROW_BYTES, shortened } from "../sql/list-page.js";

/** As steps and waits are stored; a wait of the first kind is a step that will be tried again. */
const KINDS = ["step", "sleep", "signal", "run"] as const satisfies readonly StepKind[];

const ENDED = page(
  "no",
  /* sql */ `
select s.no, s.name, s.kind, s.tries, s.fence, s.started_at, s.ended_at, null::bigint as until, s.signal, s.key, s.child,
  ${shortened("s.value")} as value, s.error
from {step} s where s.run = :id::uuid and s.no > :after::int order by s.no limit :limit`,
);

const OPEN = page(
  "started_at, name",
  /* sql */ `
select null::int as no, w.name, w.kind, w.tries, null::bigint as fence, w.since as started_at, null::bigint as ended_at, w.until,
  w.signal, w.key, w.child, null::text as value, case when w.kind = 0 then w.error end as error
from {wait} w where w.run = :id::uuid and (w.since, w.name) > (:since::bigint, :name::text) order by w.since, w.name limit :limit`,
);

function page(order: string, rows: string): string {
  return /* sql */ `
select p.* from (
  select w.*, sum(w.weight) over (order by ${order}) - w.weight as weight_before, count(*) over () as found_count
  from (select f.*, coalesce(octet_length(f.value), 0) + coalesce(octet_length(f.error), 0) + ${ROW_BYTES} as weight
    from (${rows}) f) w
) p where p.weight_before < ${PAGE_BYTES_MAX} order by ${order}`;
}

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
  /** Open ones after this one; null: from the first. */
  readonly openAfter: OpenPlace | null;
  /** How many there are in all. */
  readonly limit: number;
};

/** The place of an open one in their order. */
export type OpenPlace = { readonly startedAt: number; readonly name: string };

/** `isFollowed`: there are more after the last of them. */
export type RunStepsPage = {
  readonly steps: readonly RunStepRecord[];
  readonly isFollowed: boolean;
};

export async function readRunSteps(
  session: StoreSession,
  { id, after, openAfter, limit }: RunStepsParams,
): Promise<RunStepsPage> {
  const verb = "runs.steps";
  // The open ones first: one that ends in between is then in both lists, and none is missing.
  const { startedAt: since, name } = openAfter ?? { startedAt: -1, name: "" };
  const open = await session.read({
    verb,
    sql: OPEN,
    params: { id, since, name, limit: limit + 1 },
  });
  const ended = await session.read({ verb, sql: ENDED, params: { id, after, limit: limit + 1 } });
  const names = new Set(ended.map((each) => String(each.name)));
  const all = isCut(ended)
    ? ended
    : [...ended, ...open.filter((each) => !names.has(String(each.name)))];
  const isFollowed = all.length > limit || isCut(ended) || isCut(open);
  return { steps: all.slice(0, limit).map(toRecord), isFollowed };
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
