// Converts settlements for PostgreSQL: one column each, as an array, or as one value if all are equal. Most settlements
// of a batch share everything but their ids, and every array costs both sides as much as the ids do.

import { ATTEMPT_ENDS } from "../../runs/rules/run.js";
import { type Settlement, wholeDelayMs } from "../claims.js";
import { modeCode, statusCode } from "../rows.js";
import { column, plainColumn, textArray } from "./connection/array.js";
import type { Row } from "./connection/connection.js";

type Pending = Extract<Settlement, { readonly to: "pending" }>;

/** -1 means "pending again". */
const PENDING = -1;

/** The parameters that settle these: `fences` has one for each, `fence` is the one of all. */
export function settlementColumns(settlements: readonly Settlement[]): Row {
  const fences = column(settlements, ({ fence }) => fence);
  const statuses = column(settlements, ({ to }) => (to === "pending" ? PENDING : statusCode(to)));
  const modes = column(settlements, ({ mode }) => modeCode(mode));
  const ranMs = column(settlements, wholeRanMs);
  const results = column(settlements, resultOf, textArray);
  const errors = column(settlements, ({ error }) => error, textArray);
  const schedules = column(settlements, ({ schedule }) => schedule);
  const batches = column(settlements, ({ batch }) => batch);
  const ends = ofPending(settlements, ({ end }) => ATTEMPT_ENDS.indexOf(end));
  const delayMs = ofPending(settlements, (each) => wholeDelayMs(each.delayMs));
  const refunds = ofPending(settlements, ({ isRefund }) => (isRefund ? 1 : 0));
  return {
    ids: plainColumn(settlements, ({ id }) => id),
    fences: fences.many,
    fence: fences.one,
    statuses: statuses.many,
    status: statuses.one,
    modes: modes.many,
    mode: modes.one,
    ranMs: ranMs.many,
    ranAllMs: ranMs.one,
    results: results.many,
    result: results.one,
    errors: errors.many,
    error: errors.one,
    schedules: schedules.many,
    schedule: schedules.one,
    batches: batches.many,
    batch: batches.one,
    ends: ends.many,
    end: ends.one,
    delayMs: delayMs.many,
    delayAllMs: delayMs.one,
    refunds: refunds.many,
    refund: refunds.one,
  };
}

/** The same for all runs of one lease, completed, in its order; null if its runs differ in more than that. */
export function wholeLeaseColumns(settlements: readonly Settlement[]): Row | null {
  const [first] = settlements;
  if (first === undefined || !settlements.every((each) => isPlainlyCompleted(each, first)))
    return null;
  const ranMs = column(settlements, wholeRanMs);
  const results = column(settlements, resultOf, textArray);
  return {
    fence: first.fence,
    size: settlements.length,
    first: first.id,
    last: settlements.at(-1)?.id,
    mode: modeCode(first.mode),
    ranMs: ranMs.many,
    ranAllMs: ranMs.one,
    ranSumMs: settlements.reduce((sum, each) => sum + wholeRanMs(each), 0),
    results: results.many,
    result: results.one,
  };
}

/** Its end changes only its own row and the counts of its hour. */
function isPlainlyCompleted(settlement: Settlement, { mode }: Settlement): boolean {
  const { to, schedule, batch, isLimited, mayWait } = settlement;
  const belongs = schedule !== null || batch !== null || isLimited || mayWait;
  const isPlain = to === "completed" && !belongs;
  return isPlain && settlement.mode === mode;
}

function wholeRanMs({ ranMs }: Settlement): number {
  return Math.max(0, Math.round(ranMs));
}

function resultOf(settlement: Settlement): string | null {
  return settlement.to === "pending" ? null : settlement.result;
}

function ofPending(settlements: readonly Settlement[], value: (each: Pending) => number) {
  return column(settlements, (each) => (each.to === "pending" ? value(each) : null));
}
