// The overview: the timeline of ticks, the main figures, open alerts, errors and instances.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { AlertsNow } from "../alerts/alerts-now.js";
import { call } from "../api/call.js";
import type { Timeline as TimelineData } from "../api/wire.js";
import { Code, Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { PauseAll } from "../shell/pause-all.js";
import { Legend, Timeline } from "../timeline/timeline.js";
import { fittingRange, RANGES, type Range, windowAt } from "../timeline/window.js";
import { Figures } from "./figures.js";
import { InstancesNow } from "./instances-now.js";
import { TopErrors } from "./top-errors.js";

export function Overview() {
  const [search, setSearch] = useSearchParams();
  const asked = search.get("range") ?? "";
  const lately = useTimeline("6h");
  const range: Range = asked in RANGES ? (asked as Range) : rangeOf(lately.data);
  const timeline = useTimeline(range);
  return (
    <>
      <PageHead title="Overview" actions={<PauseAll />} />
      <div className="grid gap-4">
        <AlertsNow />
        <Figures timeline={timeline.data} />
        <Panel
          title="Ticks"
          note="expected against actual"
          actions={
            <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
              <Legend />
              <label className="text-xs text-muted">
                <span className="sr-only">Time range</span>
                <select
                  className="field min-h-7 py-0.5 text-xs"
                  value={range}
                  onChange={(event) => setSearch({ range: event.target.value }, { replace: true })}
                >
                  {Object.entries(RANGES).map(([key, { words }]) => (
                    <option key={key} value={key}>
                      last {words}
                    </option>
                  ))}
                </select>
              </label>
            </div>
          }
        >
          {timeline.error && !timeline.data ? <RefusalNote error={timeline.error} /> : null}
          {timeline.data === undefined ? (
            timeline.error ? null : (
              <Waiting rows={5} />
            )
          ) : timeline.data.schedules.length === 0 ? (
            <NoSchedules />
          ) : (
            <Timeline data={timeline.data} />
          )}
        </Panel>
        <div className="grid items-start gap-4 lg:grid-cols-2">
          <TopErrors />
          <InstancesNow />
        </div>
      </div>
    </>
  );
}

/** The range that fits the ticks of the last six hours. */
function rangeOf(lately: TimelineData | undefined): Range {
  if (lately === undefined || lately.schedules.length === 0) return "6h";
  const nowMs = Date.parse(lately.now);
  const ticks = lately.schedules.flatMap((row) => row.ticks);
  return fittingRange(ticks.map(({ at }) => nowMs - Date.parse(at)));
}

function useTimeline(range: Range) {
  return useQuery({
    queryKey: ["timeline", range],
    queryFn: ({ signal }) => {
      const { fromMs, toMs } = windowAt(range, Date.now());
      const query = {
        from: new Date(fromMs).toISOString(),
        to: new Date(toMs).toISOString(),
        limit: 100,
      };
      return call("timeline", "GET /api/timeline", { query, signal });
    },
    placeholderData: keepPreviousData,
  });
}

function NoSchedules() {
  return (
    <Empty title="No schedules yet">
      Declare one in code, <Code>{'holdfast.schedule("nightly", job, { cron: "0 2 * * *" })'}</Code>
      , or create one on the page Schedules. Its ticks then appear here, each with its outcome.
    </Empty>
  );
}
