// Pages of lists: how long one may be, and what leads from one to the next. One record more than a page has
// is asked for, so that the last page knows that it is the last.

import type { Problem } from "./suggest.js";

export const PAGE_DEFAULT = 50;
const PAGE_MAX = 1_000;

export const CURSOR_PROBLEM: Problem = {
  field: "cursor",
  message: "must be the nextCursor of an earlier page",
};

export function limitProblems(
  limit: unknown,
  { max = PAGE_MAX, example = PAGE_DEFAULT } = {},
): Problem[] {
  if (Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= max) return [];
  const message = `must be a whole number from 1 to ${max}, for example ${example}`;
  return [{ field: "limit", message }];
}

/** The records of one page, and the one that the next begins after; null where nothing follows. */
export function pageOf<T>(
  records: readonly T[],
  limit: number,
): { readonly page: readonly T[]; readonly last: T | null } {
  const page = records.slice(0, limit);
  return { page, last: records.length > limit ? (page.at(-1) ?? null) : null };
}
