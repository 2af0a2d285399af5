// Keeps items of runs. Every write carries the fence of the run's holder; a write under an old fence changes nothing and
// says so.

import type { RunId } from "../runs/rules/run.js";
import { canonicalJson } from "../shared/json.js";
import { flag, type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";
import { itemPageOf, pageOf } from "./sql/list-page.js";

/** A run under the fence that its holder believes in. */
type Grant = { readonly id: RunId; readonly fence: number };

/** One item of a held run, done or failed. */
export type ItemWrite = Grant & {
  readonly key: string;
  readonly outcome: string;
  /** The value of a done item as JSON; null if it failed. */
  readonly value: string | null;
  /** The error of a failed item as JSON; null if it is done. */
  readonly error: string | null;
  readonly durationMs: number;
};

/**
 * Stored: also if an equal item existed before. Stale: the fence is no longer the current one. Otherwise the item was
 * done before with the returned value, which stays.
 */
export type ItemResult =
  | "stored"
  | "stale"
  | { readonly kept: { readonly outcome: string; readonly value: string } };

type DoneItem = { readonly key: string; readonly value: string };

export type ItemRecord = {
  readonly key: string;
  readonly outcome: string;
  readonly attempt: number;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly value: string | null;
  readonly error: string | null;
  /** The page ends here because of its size; more items follow. */
  readonly isFollowed?: true;
};

export type ItemFilter = {
  readonly id: RunId;
  readonly outcome?: string;
  readonly sort: "key" | "slowest";
  /** The page continues after this item. */
  readonly after?: { readonly key: string; readonly durationMs: number };
  readonly limit: number;
};

export const ITEMS_BY_KEYS = {
  // One index lookup per key: a kept plan could otherwise read all items of a large run.
  postgres: /* sql */ `
select i.key, i.outcome, i.value from unnest(:keys::text[]) k (key),
  lateral (select x.key, x.outcome, x.value from {item} x
    where x.run = :id::uuid and x.key = k.key and x.error is null offset 0) i`,
  sqlite: /* sql */ `
select i.key, i.outcome, i.value from json_each(:keys) k cross join {item} i on i.run = :id and i.key = k.value
where i.error is null`,
};

const DONE = /* sql */ `
select i.key, i.value, i.so_far <= :charsMax::bigint as is_within from (
  select x.key, x.value, sum(length(x.value)) over (order by x.key) as so_far from (
    select y.key, y.value from {item} y where y.run = :id::uuid and y.error is null order by y.key limit :limit) x) i
where i.so_far - length(i.value) <= :charsMax::bigint order by i.key`;

const OF_OUTCOME =
  "i.run = :id::uuid and (:outcome::text is null or i.outcome = :outcome::text) and (:afterKey::text is null or";

const LIST = {
  key: itemPageOf({
    where: `${OF_OUTCOME} i.key > :afterKey::text {bytewise})`,
    order: "i.key",
  }),
  slowest: itemPageOf({
    where: `${OF_OUTCOME} i.duration_ms < :afterMs::bigint
      or (i.duration_ms = :afterMs::bigint and i.key > :afterKey::text {bytewise}))`,
    order: "i.duration_ms desc, i.key",
  }),
} as const;

/** The verbs that read items; each engine adds those that store them. */
export abstract class Items {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Stores items one by one: a stale or conflicting item does not affect the others. */
  abstract store(items: readonly ItemWrite[]): Promise<readonly ItemResult[]>;

  /**
   * Done items of a run: those with these keys, or else the first ones by key, as many as `limit` and `charsMax` of
   * values allow. `isAll`: there are no others.
   */
  async done({
    id,
    keys,
    limit,
    charsMax,
  }: {
    readonly id: RunId;
    readonly keys: readonly string[] | null;
    readonly limit: number;
    readonly charsMax: number;
  }): Promise<{ readonly items: readonly DoneItem[]; readonly isAll: boolean }> {
    const verb = "items.done";
    if (keys !== null) {
      const rows = await this.#session.read({ verb, sql: ITEMS_BY_KEYS, params: { id, keys } });
      const items = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
      return { items, isAll: false };
    }
    const rows = await this.#session.read({ verb, sql: DONE, params: { id, limit, charsMax } });
    return toDoneItems(rows, { limit });
  }

  async list(filter: ItemFilter): Promise<readonly ItemRecord[]> {
    const params = {
      id: filter.id,
      outcome: filter.outcome ?? null,
      afterKey: filter.after?.key ?? null,
      afterMs: filter.after?.durationMs ?? null,
      limit: filter.limit,
    };
    const found = await this.#session.read({ verb: "items.list", sql: LIST[filter.sort], params });
    return pageOf(found, toItemRecord);
  }
}

function toItemRecord(row: Row): ItemRecord {
  return {
    key: String(row.key),
    outcome: String(row.outcome),
    attempt: Number(row.attempt),
    startedAt: Number(row.started_at),
    durationMs: Number(row.duration_ms),
    value: textOrNull(row.value),
    error: textOrNull(row.error),
  };
}

/** A limit, or the size of the values, has cut off rows: these are not all. */
function toDoneItems(
  rows: readonly Row[],
  { limit }: { readonly limit: number },
): { items: DoneItem[]; isAll: boolean } {
  const items = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
  return { items, isAll: rows.length < limit && rows.every((row) => flag(row.is_within)) };
}

/** An incoming item that is already done: an equal one counts as stored, a different one changes nothing. */
export function judgeRepeat(
  item: ItemWrite,
  done: { readonly outcome: string; readonly value: string },
): ItemResult {
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
 * If the same item occurs twice in one call, the later one is judged after the first was stored, as if they had come in
 * separate calls.
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
