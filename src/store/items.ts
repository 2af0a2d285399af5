// Declares the store's verbs for items and for transactions that a user's work shares with a write of ours, and maps
// their rows. Every write carries the fence of the run's holder; a write under an old fence changes nothing and says so.

import type { RunId } from "../runs/rules/run.js";
import { canonicalJson } from "../shared/json.js";
import type { Row } from "./rows.js";
import type { Transactor } from "./transaction.js";

/** A run under the fence that its holder believes in. */
type Grant = { readonly id: RunId; readonly fence: number };

/** One item of a held run, done or failed. */
export type ItemWrite = Grant & {
  readonly key: string;
  readonly outcome: string;
  /** JSON of what was done; null where it failed. */
  readonly value: string | null;
  /** JSON of why it failed; null where it is done. */
  readonly error: string | null;
  readonly durationMs: number;
};

/**
 * Stored, also if the equal item was there before. Stale: the fence is no longer the current one.
 * Otherwise the item was done before, with this other value, which stays.
 */
export type ItemAnswer =
  | "stored"
  | "stale"
  | { readonly kept: { readonly outcome: string; readonly value: string } };

export type DoneItem = { readonly key: string; readonly value: string };

export type ItemRecord = {
  readonly key: string;
  readonly outcome: string;
  readonly attempt: number;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly value: string | null;
  readonly error: string | null;
  /** The page ends here since it has its bytes; there are more. */
  readonly isFollowed?: true;
};

export type ItemFilter = {
  readonly id: RunId;
  readonly outcome?: string;
  readonly sort: "key" | "slowest";
  /** Continues after this one. */
  readonly after?: { readonly key: string; readonly durationMs: number };
  readonly limit: number;
};

type InTransaction = Grant & {
  /** Opens the transaction; null: a connection of the store's own. SQLite has only its own. */
  readonly on: Transactor | null;
  /** How long one statement of the user's may take. */
  readonly timeoutMs: number;
};

/** `Settlement`: what the end of a run is told by. */
export type CommitParams<Settlement> = InTransaction & {
  readonly holder: number;
  /** For what the end of a run draws. */
  readonly chance: number;
  /** The user's work; what it answers with is settled as the last statement. On SQLite synchronous. */
  readonly work: (tx: unknown) => Settlement | Promise<Settlement>;
};

export type CommitItemParams = InTransaction & {
  /** The user's work; the item that it answers with is the last statement. On SQLite synchronous. */
  readonly work: (tx: unknown) => ItemWrite | Promise<ItemWrite>;
};

export interface ItemStore<Settlement> {
  /** Stores items, each by itself: one that is stale or differs does not keep the others back. */
  storeItems(items: readonly ItemWrite[]): Promise<readonly ItemAnswer[]>;
  /**
   * Items of a run that are done: those with these keys, or else the first ones by key, as many as
   * `limit` and `charsMax` of values allow. `isAll`: there are no others.
   */
  doneItems(params: {
    readonly id: RunId;
    readonly keys: readonly string[] | null;
    readonly limit: number;
    readonly charsMax: number;
  }): Promise<{ readonly items: readonly DoneItem[]; readonly isAll: boolean }>;
  items(filter: ItemFilter): Promise<readonly ItemRecord[]>;

  /**
   * Does the user's work and settles its run in one transaction. Whatever the work throws comes out,
   * and nothing was changed. An `OutcomeUnknownError` means that the answer to the commit was lost.
   */
  commit(params: CommitParams<Settlement>): Promise<"committed" | "stale">;
  /** The same with an item instead of the end of a run. Unless it is stored, nothing was changed. */
  commitItem(params: CommitItemParams): Promise<ItemAnswer>;
  /** Where a grant stands, once no transaction under its fence is under way any more. */
  grantState(grant: Grant): Promise<"held" | "completed" | "gone">;
}

// Row mappers, the same for both databases, and the rule for an item that is already done.

/** A page of a list: its last record says where the page ended before the list did. */
export function toItemRecords(rows: readonly Row[]): readonly ItemRecord[] {
  const isShort = rows.length > 0 && Number(rows[0]?.found_count) > rows.length;
  return rows.map((row, at) =>
    isShort && at === rows.length - 1
      ? { ...toItemRecord(row), isFollowed: true }
      : toItemRecord(row),
  );
}

function toItemRecord(row: Row): ItemRecord {
  return {
    key: String(row.key),
    outcome: String(row.outcome),
    attempt: Number(row.attempt),
    startedAt: Number(row.started_at),
    durationMs: Number(row.duration_ms),
    value: row.value === null ? null : String(row.value),
    error: row.error === null ? null : String(row.error),
  };
}

/** Rows that a limit or the size of their values has cut off are not all. */
export function toDoneItems(
  rows: readonly Row[],
  { limit }: { readonly limit: number },
): { items: DoneItem[]; isAll: boolean } {
  const items = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
  const isWithin = (value: unknown) => value === true || value === 1;
  return { items, isAll: rows.length < limit && rows.every((row) => isWithin(row.is_within)) };
}

/** One that is done meets one that comes: the equal one is no news, another one changes nothing. */
export function judgeRepeat(
  item: ItemWrite,
  done: { readonly outcome: string; readonly value: string },
): ItemAnswer {
  const isSame =
    item.value !== null &&
    item.outcome === done.outcome &&
    (item.value === done.value || canonicalJson(item.value) === canonicalJson(done.value));
  return isSame ? "stored" : { kept: { outcome: done.outcome, value: done.value } };
}

export function wholeMs(durationMs: number): number {
  return Math.max(0, Math.round(durationMs));
}

/**
 * The same item twice in one call: the later ones come after the first has been stored, so that
 * what they mean is judged as if they had come alone.
 */
export function inRounds(items: readonly ItemWrite[]): (readonly number[])[] {
  const rounds: number[][] = [];
  const seen = new Map<string, number>();
  items.forEach(({ id, key }, at) => {
    const name = `${id} ${key}`;
    const round = seen.get(name) ?? 0;
    seen.set(name, round + 1);
    const places = rounds[round] ?? [];
    rounds[round] = places;
    places.push(at);
  });
  return rounds;
}

// Rolls back a transaction that contains a user's work, and carries the reason out of it. The store tells these apart
// from errors that the work itself throws; they never leave the store.

export class RolledBack<Answer> {
  constructor(readonly answer: Answer) {}
}

/** What the user's function threw, wrapped so that nobody takes it for a failure of ours. */
export class ThrownByWork {
  constructor(readonly error: unknown) {}
}
