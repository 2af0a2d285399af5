// Items of a run as people see them: `runs.items`, and the counts on the run itself.

import { ConfigurationError } from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { ItemFilter, ItemRecord } from "../store/item-store.js";
import type { RunRecord, Store } from "../store/store.js";
import { FAILED_OUTCOME } from "./rules/item.js";

/** How many items a run has, kept with it: looking at them costs the same for ten and a million. */
export type ItemCounts = {
  readonly total: number;
  readonly byOutcome: Readonly<Record<string, number>>;
};

export type RunItem = {
  readonly key: string;
  /** `ok` or what the handler calls it; `failed`: it threw, and a later attempt tries again. */
  readonly outcome: string;
  /** The attempt that did it, or that failed last. */
  readonly attempt: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly value: unknown;
  readonly error: StoredError | null;
};

export type ItemListOptions = {
  /** Only those that turned out so. */
  readonly outcome?: string | undefined;
  /** By key, or those that took longest first. @default by key */
  readonly sort?: "slowest" | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type ItemPage = { readonly items: readonly RunItem[]; readonly nextCursor: string | null };

export function countsOf({ items, status }: RunRecord): {
  readonly items: ItemCounts;
  readonly partial: boolean;
} {
  const outcomes = Object.keys(items).sort();
  const byOutcome = Object.fromEntries(outcomes.map((name) => [name, items[name] as number]));
  const total = outcomes.reduce((sum, name) => sum + (items[name] as number), 0);
  const partial = status === "completed" && (items[FAILED_OUTCOME] ?? 0) > 0;
  return { items: { total, byOutcome }, partial };
}

export async function itemPage(
  store: Store,
  id: string,
  options: ItemListOptions,
): Promise<ItemPage> {
  const { limit, filter } = readOptions(id, options);
  const records = await store.items({ ...filter, limit: limit + 1 });
  const { page, last } = pageOf(records, limit);
  return { items: page.map(toItem), nextCursor: last && cursorOf(last) };
}

function readOptions(
  id: string,
  options: ItemListOptions,
): { readonly limit: number; readonly filter: Omit<ItemFilter, "limit"> } {
  const { limit = PAGE_DEFAULT, outcome, sort, cursor } = options;
  const known = ["outcome", "sort", "limit", "cursor"];
  const problems = refuseUnknownMembers(options, known, "runs.items()");
  problems.push(...limitProblems(limit));
  if (sort !== undefined && sort !== "slowest")
    problems.push({ field: "sort", message: 'must be "slowest", or be left out: by key' });
  if (outcome !== undefined && typeof outcome !== "string")
    problems.push({ field: "outcome", message: 'must be a text, for example "failed"' });
  const after = cursor === undefined ? undefined : readCursor(cursor);
  if (after === null) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    limit,
    filter: {
      id,
      sort: sort ?? "key",
      ...(outcome === undefined ? {} : { outcome }),
      ...(after ? { after } : {}),
    },
  };
}

function toItem(record: ItemRecord): RunItem {
  return {
    ...record,
    startedAt: new Date(record.startedAt),
    value: record.value === null ? null : JSON.parse(record.value),
    error: record.error === null ? null : (JSON.parse(record.error) as StoredError),
  };
}

function cursorOf({ key, durationMs }: ItemRecord): string {
  return Buffer.from(JSON.stringify([key, durationMs])).toString("base64url");
}

function readCursor(cursor: unknown): { key: string; durationMs: number } | null {
  try {
    const [key, durationMs] = JSON.parse(Buffer.from(String(cursor), "base64url").toString());
    return typeof key === "string" && Number.isInteger(durationMs) ? { key, durationMs } : null;
  } catch {
    return null;
  }
}
