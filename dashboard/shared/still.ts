// What stands still while the pointer is over it: what came in meanwhile waits, so that nothing moves away
// from under a finger that is about to press. What one did oneself shows at once.

import { useEffect, useRef, useState } from "react";

const listeners = new Set<() => void>();

/** Whoever has pressed something wants to see what came of it. */
export function showAll(): void {
  for (const listener of listeners) listener();
}

/** A list whose newest row comes first: while it stands still, it begins where it began. */
export function useStillList<Row>(rows: readonly Row[], keyOf: (row: Row) => string) {
  const [first, setFirst] = useState<string | null>(null);
  useEffect(() => {
    const show = () => setFirst(null);
    listeners.add(show);
    return () => void listeners.delete(show);
  }, []);
  const at = first === null ? 0 : rows.findIndex((row) => keyOf(row) === first);
  const newest = rows[0] === undefined ? null : keyOf(rows[0]);
  return {
    shown: at > 0 ? rows.slice(at) : rows,
    still: {
      onPointerMove: () => setFirst((before) => before ?? newest),
      onPointerLeave: () => setFirst(null),
    },
  };
}

/** A picture: while it stands still, it is the one that the pointer came to. */
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
