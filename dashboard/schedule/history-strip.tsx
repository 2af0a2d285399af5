// The last day and the next hours of one schedule; a click asks why.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/call.js";
import { Panel, Waiting } from "../shared/panel.js";
import { Legend, Timeline } from "../timeline/timeline.js";
import { RANGES, type Range, windowAt } from "../timeline/window.js";

export function HistoryStrip(props: {
  readonly name: string;
  readonly at: string | null;
  readonly ask: (at: string) => void;
}) {
  const [range, setRange] = useState<Range>("24h");
  const query = useQuery({
    queryKey: ["timeline", "one", props.name, range],
    queryFn: ({ signal }) => {
      const { fromMs, toMs } = windowAt(range, Date.now());
      const [from, to] = [new Date(fromMs).toISOString(), new Date(toMs).toISOString()];
      return call("timeline", "GET /api/timeline", {
        query: { from, to, schedule: props.name },
        signal,
      });
    },
    placeholderData: keepPreviousData,
  });
  return (
    <Panel
      title="History"
      note="click a moment: why?"
      actions={
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <Legend />
          <select
            aria-label="Time range"
            className="field min-h-7 w-auto py-0.5 text-xs"
            value={range}
            onChange={(event) => setRange(event.target.value as Range)}
          >
            {Object.entries(RANGES).map(([key, { words }]) => (
              <option key={key} value={key}>
                last {words}
              </option>
            ))}
          </select>
        </div>
      }
    >
      {query.data === undefined ? (
        <Waiting rows={2} />
      ) : (
        <Timeline data={query.data} isNamed={false} />
      )}
    </Panel>
  );
}
