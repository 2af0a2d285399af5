// Freezes a list or picture while the pointer is over it: new data waits, so that nothing moves away under a click. The
// user's own changes show at once.

import { useEffect, useRef, useState } from "react";

const listeners = new Set<() => void>();

/** After a press, the user wants to see the result. */
export function showAll(): void {
  for (const listener of listeners) listener();
}

/**
 * The rows of a list: while it is frozen, no row appears above or vanishes; each row shows its current state, and rows
 * below are appended. `scope` identifies the list; another scope is another list.
 */
export function useStillList<Row>(
  rows: readonly Row[],
  params: {
    readonly keyOf: (row: Row) => string;
    readonly scope: string;
    /** The rows of the earlier scope, until the response arrives. */
    readonly isPlaceholder: boolean;
  },
) {
  const { keyOf, scope, isPlaceholder } = params;
  const [isPointed, setPointed] = useState(false);
  useEffect(() => {
    const show = () => setPointed(false);
    listeners.add(show);
    return () => void listeners.delete(show);
  }, []);
  const kept = useRef<{ readonly scope: string; readonly rows: readonly Row[] } | null>(null);
  if (isPlaceholder) kept.current = null;
  else if (!isPointed || kept.current?.scope !== scope) kept.current = { scope, rows };
  return {
    shown: kept.current ? inPlace(kept.current.rows, rows, keyOf) : rows,
    still: {
      onPointerMove: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
    },
  };
}

function inPlace<Row>(
  kept: readonly Row[],
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): readonly Row[] {
  if (kept === rows) return rows;
  const now = new Map(rows.map((row) => [keyOf(row), row]));
  const known = new Set(kept.map(keyOf));
  const last = kept.findLast((row) => now.has(keyOf(row)));
  const from = last === undefined ? 0 : rows.findIndex((row) => keyOf(row) === keyOf(last)) + 1;
  const added = rows.slice(from).filter((row) => !known.has(keyOf(row)));
  return [...kept.map((row) => now.get(keyOf(row)) ?? row), ...added];
}

/** A picture: while it is frozen, it stays as it was when the pointer entered. */
export function useStillPicture<Value>(value: Value) {
  const [isPointed, setPointed] = useState(false);
  const kept = useRef(value);
  if (!isPointed) kept.current = value;
  return {
    shown: kept.current,
    still: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
    },
  };
}
