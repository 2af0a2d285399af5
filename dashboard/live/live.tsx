// Provides the state of the event stream, and the clock for relative times.

import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  use,
  useEffect,
  useState,
  useSyncExternalStore,
} from "react";
import { type Connection, Feed } from "./events.js";

const LiveContext = createContext<Connection>("connecting");

export function LiveProvider(props: { readonly hasEvents: boolean; readonly children: ReactNode }) {
  const client = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  useEffect(() => {
    const feed = new Feed(client, setConnection);
    feed.open(props.hasEvents);
    return () => feed.close();
  }, [client, props.hasEvents]);
  return <LiveContext value={connection}>{props.children}</LiveContext>;
}

export function useConnection(): Connection {
  return use(LiveContext);
}

let nowMs = Date.now();
const watchers = new Set<() => void>();
window.setInterval(() => {
  nowMs = Date.now();
  if (document.visibilityState === "visible") for (const watch of watchers) watch();
}, 1_000);

function watchClock(watch: () => void): () => void {
  watchers.add(watch);
  return () => watchers.delete(watch);
}

/** The current time, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(watchClock, () => nowMs);
}
