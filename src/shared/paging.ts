// Checks the limit of a page and finds the cursor of the next one. Callers read one record more than a page has, so
// that the last page is known to be the last.

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

/** Returns the records of one page and the last of them, after which the next page begins; null if nothing follows. */
export function pageOf<T>(
  records: readonly T[],
  limit: number,
): { readonly page: readonly T[]; readonly last: T | null } {
  const page = records.slice(0, limit);
  return { page, last: records.length > limit ? (page.at(-1) ?? null) : null };
}
