// The log lines of a run, appended as they arrive. Does not scroll while the reader is further up.

import { useEffect, useRef, useState } from "react";
import { call } from "../api/call.js";
import type { LogLine, Run } from "../api/wire.js";
import { onChanges } from "../live/events.js";
import { Code, Empty, Panel } from "../shared/panel.js";
import { timeText, useZone } from "../shared/zone.js";

const TONES: Readonly<Record<LogLine["level"], string>> = {
  debug: "text-muted",
  info: "text-running-ink",
  warn: "text-late-ink",
  error: "text-failed-ink",
};
const KEPT_MAX = 5_000;
const AGAIN_MS = 1_500;

export function Logs({ run }: { readonly run: Run }) {
  const zone = useZone();
  const [text, setText] = useState("");
  const lines = useLines(run);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = box.current;
    if (element && isAtEnd.current && run.status === "running" && lines !== null)
      element.scrollTop = element.scrollHeight;
  }, [lines, run.status]);
  const shown = (lines ?? []).filter(({ message }) =>
    message.toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <Panel
      title="Log"
      note={run.status === "running" ? "live" : undefined}
      actions={
        (lines?.length ?? 0) > 5 ? (
          <input
            className="field min-h-7 w-44 py-0.5 text-xs"
            type="search"
            data-search
            aria-label="Search the log"
            placeholder="Search the log   /"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        ) : undefined
      }
      isFlush
    >
      {lines !== null && lines.length === 0 ? (
        <Empty title="No log lines">
          Lines that the handler logs with <Code>{"ctx.log.info(…)"}</Code> are stored with the run
          and appear here.
        </Empty>
      ) : (
        <div
          ref={box}
          role="log"
          aria-label="Log lines"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
          tabIndex={0}
          className="max-h-96 overflow-y-auto border-t border-line py-1 font-mono text-xs leading-5"
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
            isAtEnd.current = scrollHeight - scrollTop - clientHeight < 30;
          }}
        >
          {shown.map((line, index) => (
            <div // biome-ignore lint/suspicious/noArrayIndexKey: lines are only ever added at the end, and two may be equal.
              key={`${line.at}-${index}`}
              className="flex gap-3 px-4 hover:bg-sunken/60"
            >
              <span className="shrink-0 text-muted">{timeText(line.at, zone, "time")}</span>
              <span className={`w-10 shrink-0 ${TONES[line.level]}`}>{line.level}</span>
              <span className="min-w-0 whitespace-pre-wrap">
                {line.message}
                {Object.keys(line.fields).length > 0 ? (
                  <span className="text-muted"> {JSON.stringify(line.fields)}</span>
                ) : null}
              </span>
            </div>
          ))}
        </div>
      )}
    </Panel>
  );
}

/** Continues after the last page while the run is live. */
function useLines({ id, status }: Run): readonly LogLine[] | null {
  const [lines, setLines] = useState<readonly LogLine[] | null>(null);
  const isLive = status === "running" || status === "pending";
  useEffect(() => {
    const abort = new AbortController();
    let cursor: string | undefined;
    let isBusy = false;
    let known: readonly LogLine[] = [];
    const read = async () => {
      if (isBusy || abort.signal.aborted) return;
      isBusy = true;
      try {
        for (let isMore = true; isMore && known.length < KEPT_MAX; ) {
          const page = await call("listLogs", "GET /api/runs/{id}/logs", {
            params: { id },
            query: { cursor },
            signal: abort.signal,
          });
          cursor = page.cursor ?? cursor;
          known = [...known, ...page.lines];
          isMore = page.nextCursor !== null;
          if (page.lines.length > 0 || known.length === 0) setLines(known);
        }
      } catch {
        // The next poll tries again.
      }
      isBusy = false;
    };
    void read();
    const timer = isLive ? window.setInterval(() => void read(), AGAIN_MS) : null;
    const stop = onChanges((names) => {
      if (names === null || names.has("run")) void read();
    });
    return () => {
      abort.abort();
      stop();
      if (timer !== null) window.clearInterval(timer);
    };
  }, [id, isLive]);
  return lines;
}
