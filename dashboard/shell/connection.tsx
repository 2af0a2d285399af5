// Whether the page hears of changes, in a word and a dot.

import { useConnection } from "../live/live.js";

const STATES = {
  live: ["bg-ok", "Live", "Changes are shown as they happen."],
  connecting: [
    "bg-late pulse",
    "Connecting",
    "The stream of changes is being opened; until then the page asks again every few seconds.",
  ],
  polling: [
    "bg-running",
    "Polling",
    "No stream of changes is served here: the page asks again every few seconds.",
  ],
  lost: [
    "bg-failed",
    "No connection",
    "The server does not answer. What is shown may be old; the page goes on by itself when it is back.",
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
