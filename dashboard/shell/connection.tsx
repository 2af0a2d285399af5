// The state of the event stream, as a word and a dot.

import { useConnection } from "../live/live.js";

const STATES = {
  live: ["bg-ok", "Live", "Changes appear as they happen."],
  connecting: [
    "bg-late pulse",
    "Connecting",
    "Connecting to the event stream; until then the page polls every few seconds.",
  ],
  polling: [
    "bg-running",
    "Polling",
    "This server has no event stream: the page polls every few seconds.",
  ],
  lost: [
    "bg-failed",
    "No connection",
    "The server does not respond. The data may be old; the page reconnects automatically.",
  ],
} as const;

export function Connection({ isShort = false }: { readonly isShort?: boolean }) {
  const state = useConnection();
  const [dot, word, title] = STATES[state];
  return (
    <span
      role="status"
      title={title}
      className="inline-flex items-center gap-1.5 text-xs text-muted"
      data-connection={state}
    >
      <span className={`size-2 rounded-full ${dot}`} />
      <span className={isShort ? "sr-only" : ""}>{word}</span>
    </span>
  );
}
