// Looking at the runs that a run made, and trying the failed ones among them again, together.

import type { AuditEntry } from "../operations/rules/audit.js";
import { ConfigurationError } from "../shared/errors.js";
import { isUuid } from "../shared/id.js";
import { requireName } from "../shared/names.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { BatchRecord, ChildFilter } from "../store/batches.js";
import type { Store } from "../store/store.js";
import { RUN_STATUSES, type RunId, type RunStatus } from "./rules/run.js";

/** How a batch stands: entries that have no child, and what became of the others so far. */
export type Batch = Omit<BatchRecord, "after"> & {
  /** The run that was made when the last child had ended; null before, or if none was asked for. */
  readonly then: RunId | null;
};

export type ChildListOptions = {
  readonly status?: RunStatus | undefined;
  /** Only those of the batch of this name. */
  readonly batch?: string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

/** So many are revived in one transaction. */
const RETRIED_TOGETHER = 1_000;

export function readChildFilter(parent: RunId, options: ChildListOptions): ChildFilter {
  const { status, batch, limit = PAGE_DEFAULT, cursor } = options;
  const known = ["status", "batch", "limit", "cursor"];
  const problems = refuseUnknownMembers(options, known, "runs.children()");
  problems.push(...limitProblems(limit));
  if (cursor !== undefined && !isUuid(cursor)) problems.push(CURSOR_PROBLEM);
  if (status !== undefined && !RUN_STATUSES.includes(status))
    problems.push({ field: "status", message: `must be one of ${RUN_STATUSES.join(", ")}` });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    parent,
    limit,
    ...(status === undefined ? {} : { status }),
    ...(batch === undefined ? {} : { batch: requireName(batch, "batch") }),
    ...(cursor === undefined ? {} : { before: cursor.toLowerCase() }),
  };
}

export function toBatch({ after, ...counts }: BatchRecord): Batch {
  return { ...counts, then: after };
}

/** Answers how many go on; each is looked at once, also if it fails again meanwhile. */
export async function retryFailedChildren(
  store: Store,
  parent: RunId,
  options: { readonly batch?: string },
  audit: AuditEntry,
): Promise<number> {
  const problems = refuseUnknownMembers(options, ["batch"], "runs.retryFailed()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { batch } = options;
  const only = batch === undefined ? {} : { batch: requireName(batch, "batch") };
  let retried = 0;
  for (let after: RunId | undefined; ; ) {
    const from = after === undefined ? {} : { after };
    // One entry for all of them, with the first.
    const kept = after === undefined ? { audit } : {};
    const params = { parent, ...only, ...from, ...kept, limit: RETRIED_TOGETHER };
    const ids = await store.retryChildren(params);
    retried += ids.length;
    after = ids.at(-1);
    if (ids.length < RETRIED_TOGETHER) return retried;
  }
}
