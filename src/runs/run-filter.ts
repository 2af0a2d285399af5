// What `runs.list` may be asked for, and the same in the words of the store.

import { ConfigurationError } from "../shared/errors.js";
import { firstIdAt, isUuid } from "../shared/id.js";
import { instantMs } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { RunFilter } from "../store/store.js";
import { MODES, type Mode, RUN_STATUSES, type RunId, type RunStatus } from "./rules/run.js";

export type RunListOptions = {
  readonly status?: RunStatus | undefined;
  readonly job?: string | undefined;
  /** The name of the schedule that made them. */
  readonly schedule?: string | undefined;
  readonly mode?: Mode | undefined;
  readonly tag?: string | undefined;
  /** Part of the input, or a whole key or id. */
  readonly text?: string | undefined;
  /** Stored from then on, by the time in their ids. */
  readonly from?: Date | string | undefined;
  /** Stored until then. */
  readonly to?: Date | string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

const MEMBERS = [
  ...["status", "job", "schedule", "mode", "tag", "text", "from", "to", "limit", "cursor"],
];

/** Throws what is wrong with the options, all of it at once. */
export function readRunFilter(options: RunListOptions): RunFilter {
  const { limit = PAGE_DEFAULT, cursor, status, mode } = options;
  const problems = refuseUnknownMembers(options, MEMBERS, "runs.list()");
  problems.push(...limitProblems(limit));
  if (cursor !== undefined && !isUuid(cursor)) problems.push(CURSOR_PROBLEM);
  if (status !== undefined && !RUN_STATUSES.includes(status))
    problems.push({ field: "status", message: `must be one of ${RUN_STATUSES.join(", ")}` });
  if (mode !== undefined && !MODES.includes(mode))
    problems.push({ field: "mode", message: `must be one of ${MODES.join(", ")}` });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { job, schedule, tag, text, from, to } = options;
  const bounds = idBounds({
    since: from === undefined ? undefined : instantMs(from, "runs.list().from"),
    until: to === undefined ? undefined : instantMs(to, "runs.list().to"),
    cursor,
  });
  return {
    limit,
    ...(status === undefined ? {} : { status }),
    ...(mode === undefined ? {} : { mode }),
    ...(job === undefined ? {} : { job }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(tag === undefined ? {} : { tag }),
    ...(text === undefined ? {} : { text }),
    ...bounds,
  };
}

/** Ids begin with the time at which they were made, so a stretch of time is a stretch of ids. */
function idBounds(params: {
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly cursor: string | undefined;
}): { readonly before?: RunId; readonly since?: RunId } {
  const { since, until } = params;
  const cursor = params.cursor?.toLowerCase();
  const end = until === undefined ? undefined : firstIdAt(until + 1);
  const before = [cursor, end].filter((id) => id !== undefined).sort()[0];
  return {
    ...(before === undefined ? {} : { before }),
    ...(since === undefined ? {} : { since: firstIdAt(since) }),
  };
}
