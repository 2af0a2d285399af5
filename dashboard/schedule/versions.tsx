// Every definition of a schedule: who changed what, and when.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Schedule, ScheduleVersion } from "../api/wire.js";
import { Panel, Waiting } from "../shared/panel.js";
import { Badge } from "../shared/status.js";
import { Ago, Time } from "../shared/time.js";

export function Versions({ schedule }: { readonly schedule: Schedule }) {
  const query = useQuery({
    queryKey: ["schedule", schedule.name, "versions", schedule.version],
    queryFn: ({ signal }) =>
      call("versions", "GET /api/schedules/{name}/versions", {
        params: { name: schedule.name },
        signal,
      }),
  });
  const versions = query.data?.versions ?? [];
  return (
    <Panel title="Versions" note={query.data ? String(versions.length) : undefined} isFlush>
      {query.data === undefined ? (
        <Waiting />
      ) : (
        <ol>
          {[...versions].reverse().map((version, index, all) => (
            <li key={version.version} className="border-t border-line px-4 py-2">
              <div className="flex flex-wrap items-baseline justify-between gap-2">
                <span>
                  <span className="font-medium">{version.version}</span>{" "}
                  <Badge tone="quiet">{version.kind}</Badge>{" "}
                  <span className="text-muted">{version.description}</span>
                </span>
                <span className="text-xs text-muted">
                  {version.by ?? "somebody"} · <Time at={version.at} style="seconds" /> ·{" "}
                  <Ago at={version.at} />
                </span>
              </div>
              <Diff before={all[index + 1]} after={version} />
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

const HIDDEN = ["version", "kind", "at", "by", "description"];

function Diff({
  before,
  after,
}: {
  readonly before: ScheduleVersion | undefined;
  readonly after: ScheduleVersion;
}) {
  if (before === undefined) return null;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !HIDDEN.includes(name),
  );
  const changed = names.filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  if (changed.length === 0)
    return <p className="mt-1 text-xs text-muted">nothing in its definition</p>;
  return (
    <dl className="mt-1 grid gap-x-3 gap-y-0.5 font-mono text-xs sm:grid-cols-[8rem_minmax(0,1fr)]">
      {changed.map((name) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="break-all">
            <del className="rounded bg-failed/10 px-0.5 text-failed-ink no-underline">
              − {JSON.stringify(before[name])}
            </del>{" "}
            <ins className="rounded bg-ok/12 px-0.5 text-ok-ink no-underline">
              + {JSON.stringify(after[name])}
            </ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}
