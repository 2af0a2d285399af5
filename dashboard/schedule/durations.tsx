// The durations of its recent runs, in order.

import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { call } from "../api/call.js";
import type { Run, Schedule } from "../api/wire.js";
import { durationText } from "../shared/format.js";
import { Facts, Panel, Waiting } from "../shared/panel.js";
import { useStillPicture } from "../shared/still.js";
import { timeText, useZone } from "../shared/zone.js";

const SHOWN = 60;

export function Durations({ schedule }: { readonly schedule: Schedule }) {
  const zone = useZone();
  const [, navigate] = useLocation();
  const query = useQuery({
    queryKey: ["runs", "durations", schedule.name],
    queryFn: ({ signal }) =>
      call("listRuns", "GET /api/runs", {
        query: { schedule: schedule.name, limit: SHOWN },
        signal,
      }),
  });
  const { shown, still } = useStillPicture(query.data?.runs);
  const runs = [...(shown ?? [])].reverse();
  const done = runs.filter((run): run is Run & { durationMs: number } => run.durationMs !== null);
  const sorted = done.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  const quantile = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const longest = Math.max(1, sorted.at(-1) ?? 1);
  // A very long run must not flatten the others.
  const most = Math.min(longest, Math.max(1, quantile(0.95) * 1.3));
  return (
    <Panel title="Durations" note={done.length === 1 ? "last run" : `last ${done.length} runs`}>
      {query.data === undefined ? (
        <Waiting />
      ) : done.length === 0 ? (
        <p className="text-muted">No run of this schedule has ended yet.</p>
      ) : (
        <>
          {/* Each bar leads to its run. */}
          <div className="flex h-24 items-end gap-px border-b border-line" {...still}>
            {done.map((run) => (
              <button
                key={run.id}
                type="button"
                aria-label={`${run.status} in ${durationText(run.durationMs)}`}
                title={`${timeText(run.createdAt, zone)}: ${run.status} in ${durationText(run.durationMs)}`}
                onClick={() => navigate(`/runs/${run.id}`)}
                className="flex h-full min-w-0 flex-1 items-end hover:bg-sunken"
              >
                <span
                  className={`w-full rounded-t-xs ${run.status === "failed" ? "bg-failed" : run.status === "cancelled" ? "bg-skipped" : "bg-ok"}`}
                  style={{
                    height: `${Math.min(100, Math.max(2, (run.durationMs / most) * 100))}%`,
                  }}
                />
              </button>
            ))}
          </div>
          <div className="mt-3">
            <Facts
              facts={[
                ["Median", durationText(quantile(0.5))],
                ["95th percentile", durationText(quantile(0.95))],
                ["Longest", durationText(longest)],
              ]}
            />
          </div>
        </>
      )}
    </Panel>
  );
}
