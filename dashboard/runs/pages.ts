// The runs of a list, read page by page. Visible pages are refetched when something changed; new runs at the top wait
// until the reader asks for them or is not at the top.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { call } from "../api/call.js";
import type { Run } from "../api/wire.js";
import { onChanges } from "../live/events.js";
import type { Filter } from "./filter.js";
import { keepList, keptList, type ListRead } from "./kept-list.js";

const PAGE = 50;

export type RunPages = {
  readonly runs: readonly Run[];
  readonly isReading: boolean;
  readonly error: unknown;
  readonly hasMore: boolean;
  /** The number of newer runs that wait at the top. */
  readonly newer: number;
  readonly more: () => void;
  readonly showNewer: () => void;
  /** Reports which rows are on the screen. */
  readonly look: (from: number, to: number) => void;
};

export function useRunPages(filter: Filter, isHeld: boolean): RunPages {
  const key = JSON.stringify(filter);
  const [read, setRead] = useState<ListRead>(() => keptList(key) ?? { key, pages: [], next: null });
  const [head, setHead] = useState<readonly Run[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [isReading, setReading] = useState(read.pages.length === 0);
  const busy = useRef(false);
  const seen = useRef({ from: 0, to: 0 });
  const held = useRef(isHeld);
  held.current = isHeld;

  const fetchPage = useCallback(
    (cursor: string | undefined, signal?: AbortSignal) =>
      call("listRuns", "GET /api/runs", {
        query: { ...(JSON.parse(key) as Filter), limit: PAGE, cursor },
        ...(signal ? { signal } : {}),
      }),
    [key],
  );

  const start = useCallback(
    async (signal?: AbortSignal) => {
      setReading(true);
      try {
        const { runs, nextCursor } = await fetchPage(undefined, signal);
        setRead({ key, pages: [{ cursor: undefined, runs }], next: nextCursor });
        setHead([]);
        setError(null);
      } catch (failure) {
        if (!signal?.aborted) setError(failure);
      }
      if (!signal?.aborted) setReading(false);
    },
    [fetchPage, key],
  );

  // Cached rows are shown at once, and refetched like any visible list.
  const isKept = useRef(read.pages.length > 0);
  const again = useRef<() => Promise<void>>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    if (isKept.current) void again.current?.();
    else void start(abort.signal);
    isKept.current = false;
    return () => abort.abort();
  }, [start]);
  useEffect(() => keepList(read), [read]);

  const more = useCallback(async () => {
    if (busy.current || read.next === null) return;
    busy.current = true;
    const cursor = read.next;
    try {
      const { runs, nextCursor } = await fetchPage(cursor);
      setRead((before) =>
        before.key === key
          ? { key, pages: [...before.pages, { cursor, runs }], next: nextCursor }
          : before,
      );
      setError(null);
    } catch (failure) {
      setError(failure);
    }
    busy.current = false;
  }, [fetchPage, key, read.next]);

  const refresh = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      const first = await fetchPage(undefined);
      const known = read.pages[0]?.runs[0]?.id ?? "";
      const isTop = window.scrollY < 200 && !held.current;
      if (isTop && read.pages.length === 1) {
        setRead({
          key,
          pages: [{ cursor: undefined, runs: first.runs }],
          next: first.nextCursor,
        });
        setHead([]);
      } else {
        const fresh = new Map(first.runs.map((run) => [run.id, run]));
        setHead(first.runs.filter(({ id }) => id > known));
        const from = Math.floor(seen.current.from / PAGE);
        const to = Math.floor(seen.current.to / PAGE);
        const looked = read.pages.slice(Math.max(1, from), to + 1);
        for (const { cursor } of looked)
          for (const run of (await fetchPage(cursor)).runs) fresh.set(run.id, run);
        setRead((before) => ({
          ...before,
          pages: before.pages.map((page) => ({
            ...page,
            runs: page.runs.map((run) => fresh.get(run.id) ?? run),
          })),
        }));
      }
      setError(null);
    } catch (failure) {
      setError(failure);
    }
    busy.current = false;
  }, [fetchPage, key, read.pages]);

  again.current = refresh;
  useChanges(refresh);
  const runs = useMemo(() => read.pages.flatMap((page) => page.runs), [read.pages]);
  return {
    runs,
    isReading,
    error,
    hasMore: read.next !== null,
    newer: head.length,
    more: () => void more(),
    showNewer: () => {
      window.scrollTo({ top: 0 });
      void start();
    },
    look: (from, to) => {
      seen.current = { from, to };
    },
  };
}

/** Runs when hints or the poll report that runs may have changed. */
function useChanges(act: () => Promise<void>): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(
    () =>
      onChanges((names) => {
        if (names === null || names.has("runs")) void latest.current();
      }),
    [],
  );
}
