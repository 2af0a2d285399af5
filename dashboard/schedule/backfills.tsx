// The backfills of a schedule, with their progress.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Schedule } from "../api/wire.js";
import { Meter } from "../shared/charts.js";
import { numberText } from "../shared/format.js";
import { Panel } from "../shared/panel.js";
import { Badge } from "../shared/status.js";
import { Time } from "../shared/time.js";

export function Backfills({ schedule }: { readonly schedule: Schedule }) {
  const query = useQuery({
    queryKey: ["schedule", schedule.name, "backfills"],
    queryFn: ({ signal }) =>
      call("listBackfills", "GET /api/schedules/{name}/backfills", {
        params: { name: schedule.name },
        signal,
      }),
  });
  const backfills = query.data?.backfills ?? [];
  if (backfills.length === 0) return null;
  return (
    <Panel title="Backfills" isFlush>
      <ul>
        {backfills.slice(0, 10).map((each) => (
          <li key={each.id} className="grid gap-1.5 border-t border-line px-4 py-2">
            <div className="flex flex-wrap items-center justify-between gap-2 text-xs">
              <span>
                <Time at={each.from} zone={schedule.timezone} /> –{" "}
                <Time at={each.to} zone={schedule.timezone} />
              </span>
              <Badge
                tone={
                  each.status === "done" ? "ok" : each.status === "running" ? "running" : "quiet"
                }
              >
                {each.status}
              </Badge>
            </div>
            <Meter
              share={each.total === 0 ? 1 : (each.made + each.passed) / each.total}
              label="Checked ticks"
            />
            <p className="text-xs text-muted">
              {numberText(each.made)} runs made, {numberText(each.passed)} had one, of{" "}
              {numberText(each.total)} ticks
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
