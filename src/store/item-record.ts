// Items as rows and as records, the same for both engines; and what an item that is done already
// means for one that comes again.

import { canonicalJson } from "../shared/json.js";
import type { DoneItem, ItemAnswer, ItemRecord, ItemWrite } from "./item-store.js";

type Row = Record<string, unknown>;

export function toItemRecord(row: Row): ItemRecord {
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
