// The most frequent failures of the last day; equal errors form one group.

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/call.js";
import { numberText } from "../shared/format.js";
import { Empty, Panel, Waiting } from "../shared/panel.js";
import { Ago } from "../shared/time.js";

const SHOWN = 6;

export function TopErrors() {
  const errors = useQuery({
    queryKey: ["overview", "errors"],
    queryFn: ({ signal }) =>
      call("listErrors", "GET /api/errors", { query: { since: "24h" }, signal }),
  });
  const top = [...(errors.data?.errors ?? [])].sort((a, b) => b.runs - a.runs).slice(0, SHOWN);
  return (
    <Panel title="Top errors" note="24 h" isFlush>
      {errors.data === undefined ? (
        <Waiting />
      ) : top.length === 0 ? (
        <Empty title="Nothing failed">
          Runs that fail are gathered here, equal errors of a job together.
        </Empty>
      ) : (
        <ul>
          {top.map((error) => (
            <li
              key={error.lastRunId}
              className="flex items-start gap-3 border-t border-line px-4 py-2"
            >
              <span className="mt-px min-w-8 text-right font-semibold text-failed-ink">
                {numberText(error.runs)}
              </span>
              <div className="min-w-0 flex-1">
                <Link
                  href={`/runs/${error.lastRunId}`}
                  className="line-clamp-2 hover:text-accent hover:underline"
                >
                  {error.message || error.code}
                </Link>
                <p className="text-xs text-muted max-sm:wrap-anywhere sm:truncate">
                  {error.job} · {error.code} · last <Ago at={error.lastAt} />
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
