// The runs that a run made, and its batches.

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/call.js";
import type { Run } from "../api/wire.js";
import { shortId } from "../shared/format.js";
import { Panel } from "../shared/panel.js";
import { RunBadge } from "../shared/status.js";
import { Ago } from "../shared/time.js";

const SHOWN = 50;

export function Children({ run }: { readonly run: Run }) {
  const children = useQuery({
    queryKey: ["run", run.id, "children"],
    queryFn: ({ signal }) =>
      call("listChildren", "GET /api/runs/{id}/children", {
        params: { id: run.id },
        query: { limit: SHOWN },
        signal,
      }),
  });
  const runs = children.data?.runs ?? [];
  if (runs.length === 0) return null;
  return (
    <Panel
      title="Runs that it made"
      note={children.data?.nextCursor ? `the newest ${SHOWN}` : String(runs.length)}
      isFlush
    >
      <ul className="max-h-80 overflow-y-auto">
        {runs.map((child) => (
          <li key={child.id} className="flex items-center gap-3 border-t border-line px-4 py-1.5">
            <RunBadge status={child.status} />
            <Link
              href={`/runs/${child.id}`}
              className="min-w-0 flex-1 hover:text-accent hover:underline max-sm:wrap-anywhere sm:truncate"
            >
              {child.job}
            </Link>
            <span className="font-mono text-xs text-muted">{shortId(child.id)}</span>
            <span className="text-xs text-muted">
              <Ago at={child.createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
