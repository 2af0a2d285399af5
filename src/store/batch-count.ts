// How the entries of a batch count, the same for both engines. An entry whose key is taken by a run
// that was not made by this batch is no child of it: if that run has ended, its outcome counts at
// once; if it is still live, the entry is refused, as nobody would tell the batch of its end.

import type { RunId } from "../runs/rules/run.js";
import type { BatchError } from "./batches.js";
import { statusCode } from "./rows.js";
import type { EnqueueAnswer, NewBatch } from "./store.js";

/** What a batch begins with. */
export type BatchCount = {
  readonly scheduled: number;
  readonly unended: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly errors: readonly BatchError[];
};

/** Runs that hold keys of this batch and were there before it. */
export function foreignRuns(answers: readonly EnqueueAnswer[]): RunId[] {
  const own = ownRuns(answers);
  const ids = answers.flatMap((answer) => ("conflict" in answer ? [] : [answer.id]));
  return [...new Set(ids)].filter((id) => !own.has(id));
}

/** `endedAs` has the status code of those of the foreign runs that are terminal. */
export function countBatch(
  { children, errors: refused }: Pick<NewBatch, "children" | "errors">,
  answers: readonly EnqueueAnswer[],
  endedAs: ReadonlyMap<RunId, number>,
): BatchCount {
  const own = ownRuns(answers);
  const errors = [...refused];
  const ended = new Map<RunId, number>();
  for (const [at, { index, run }] of children.entries()) {
    const answer = answers[at] as EnqueueAnswer;
    const key = run.key?.key ?? "";
    if ("conflict" in answer) {
      const message = `The key "${key}" belongs to run ${answer.conflict}, which has another input.`;
      errors.push({ index, code: "KEY_CONFLICT", message });
      continue;
    }
    // Two entries with one key are one child.
    if (own.has(answer.id)) continue;
    const status = endedAs.get(answer.id);
    if (status !== undefined) ended.set(answer.id, status);
    else {
      const message = `The key "${key}" belongs to run ${answer.id}, which is still live and was not made by this batch.`;
      errors.push({ index, code: "KEY_LIVE", message });
    }
  }
  const statuses = [...ended.values()];
  const count = (code: number) => statuses.filter((status) => status === code).length;
  return {
    scheduled: own.size + ended.size,
    unended: own.size,
    completed: count(statusCode("completed")),
    failed: count(statusCode("failed")),
    cancelled: count(statusCode("cancelled")),
    errors: errors.sort((a, b) => a.index - b.index),
  };
}

function ownRuns(answers: readonly EnqueueAnswer[]): Set<RunId> {
  return new Set(
    answers.flatMap((answer) => ("conflict" in answer || answer.deduplicated ? [] : [answer.id])),
  );
}
