// Rows of what metrics ask as the store's records, the same for both databases.

import type { FigureRecord } from "./figures-store.js";

type Row = Record<string, unknown>;

export function toFigureRecord(row: Row): FigureRecord {
  return {
    kind: String(row.kind) as FigureRecord["kind"],
    name: String(row.name),
    state: String(row.state),
    value: Number(row.value),
  };
}

export function toScheduleNames(rows: readonly Row[]): ReadonlyMap<number, string> {
  return new Map(rows.map(({ id, name }) => [Number(id), String(name)]));
}
