// The items of a run: the count of each outcome, and the duration of each item.

import { useState } from "react";
import { call } from "../api/call.js";
import type { Run } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { durationText, numberText } from "../shared/format.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Panel, Waiting } from "../shared/panel.js";
import { Badge } from "../shared/status.js";

export function Items({ run }: { readonly run: Run }) {
  const [outcome, setOutcome] = useState("");
  const [isSlowest, setSlowest] = useState(true);
  const pages = usePages(["run", run.id, "items", outcome, isSlowest], ({ cursor, signal }) =>
    call("listItems", "GET /api/runs/{id}/items", {
      params: { id: run.id },
      query: { outcome, sort: isSlowest ? "slowest" : undefined, limit: 50, cursor },
      signal,
    }),
  );
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const longest = Math.max(1, ...items.map(({ durationMs }) => durationMs));
  return (
    <Panel
      title="Items"
      note={numberText(run.items.total)}
      actions={
        <div className="flex flex-wrap gap-1">
          {["", ...Object.keys(run.items.byOutcome)].map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={outcome === name}
              onClick={() => setOutcome(name)}
              className={`rounded-md px-2 py-0.5 text-xs ${outcome === name ? "bg-ink text-ground" : "text-muted hover:bg-sunken"}`}
            >
              {name === "" ? "all" : `${name} ${numberText(run.items.byOutcome[name] ?? 0)}`}
            </button>
          ))}
          <Button
            isSmall
            kind="quiet"
            aria-pressed={isSlowest}
            onClick={() => setSlowest(!isSlowest)}
          >
            {isSlowest ? "slowest first" : "by key"}
          </Button>
        </div>
      }
      isFlush
    >
      {pages.data === undefined ? (
        <Waiting />
      ) : (
        <ul>
          {items.map((item) => (
            <li
              key={item.key}
              className="grid items-center gap-x-3 border-t border-line px-4 py-1.5 sm:grid-cols-[minmax(0,17rem)_10rem_minmax(0,1fr)_5rem]"
            >
              <span className="font-mono text-xs max-sm:wrap-anywhere sm:truncate" title={item.key}>
                {item.key}
              </span>
              <span>
                <Badge tone={item.outcome === "failed" ? "failed" : "ok"}>{item.outcome}</Badge>
              </span>
              {item.error ? (
                <span
                  className="text-xs text-failed-ink max-sm:wrap-anywhere sm:truncate"
                  title={item.error.message}
                >
                  {item.error.message}
                </span>
              ) : (
                <span className="truncate text-xs text-muted" title={JSON.stringify(item.value)}>
                  {JSON.stringify(item.value)}
                </span>
              )}
              <span className="text-right text-xs">
                {durationText(item.durationMs)}
                <span className="mt-0.5 block h-0.5 rounded bg-sunken">
                  <span
                    className="block h-full rounded bg-accent"
                    style={{ width: `${(item.durationMs / longest) * 100}%` }}
                  />
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
      <NextPage of={pages} label="More" />
    </Panel>
  );
}
