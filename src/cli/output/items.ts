// Items of a run as a table for people.

import type { ItemPage, RunItem } from "../../runs/item-view.js";
import { FAILED_OUTCOME } from "../../runs/rules/item.js";
import { formatDuration } from "../../shared/duration-text.js";
import { type Colours, cut, plain } from "../shell.js";
import { newTable, valueText } from "./runs.js";
import { shortTime } from "./times.js";

const KEY_LENGTH_MAX = 40;
const NOTE_LENGTH_MAX = 60;

export function itemListPage({ items, nextCursor }: ItemPage, colours: Colours): string {
  if (items.length === 0) return "No items.";
  const more = nextCursor === null ? "" : `\nMore: add --cursor ${nextCursor}`;
  return `${itemTable(items, colours)}${more}`;
}

export function itemTable(items: readonly RunItem[], colours: Colours): string {
  const table = newTable(["item", "outcome", "attempt", "started", "took", "note"], colours);
  for (const item of items) {
    const note = item.error ? item.error.message : valueText(item.value);
    const outcome = plain(item.outcome);
    table.push([
      cut(plain(item.key), KEY_LENGTH_MAX),
      item.outcome === FAILED_OUTCOME ? colours.red(outcome) : outcome,
      String(item.attempt),
      shortTime(item.startedAt),
      formatDuration(item.durationMs),
      cut(plain(note), NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString();
}
