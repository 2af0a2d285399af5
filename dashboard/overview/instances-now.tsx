// The live instances, each with the number of its runs.

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/call.js";
import { Load, Skew } from "../instances/load.js";
import { shortInstance } from "../shared/format.js";
import { Code, Empty, Panel, Waiting } from "../shared/panel.js";
import { Badge } from "../shared/status.js";
import { Ago } from "../shared/time.js";

const SHOWN = 6;

export function InstancesNow() {
  const instances = useQuery({
    queryKey: ["instances", "now"],
    queryFn: ({ signal }) =>
      call("listInstances", "GET /api/instances", { query: { limit: 50 }, signal }),
  });
  const live = (instances.data?.instances ?? []).filter(({ isLive }) => isLive);
  const most = Math.max(1, ...live.map(({ held }) => held));
  return (
    <Panel
      title="Instances"
      note={instances.data ? `${live.length} alive` : undefined}
      actions={
        <Link href="/instances" className="link text-xs">
          all
        </Link>
      }
      isFlush
    >
      {instances.data === undefined ? (
        <Waiting />
      ) : live.length === 0 ? (
        <Empty title="No instance is running">
          No instance is alive: nothing fires and nothing runs. Start one with{" "}
          <Code>holdfast start</Code>.
        </Empty>
      ) : (
        <ul>
          {live.slice(0, SHOWN).map((instance) => (
            <li
              key={instance.id}
              className="flex flex-wrap items-center gap-x-3 gap-y-0.5 border-t border-line px-4 py-2"
            >
              <span className="min-w-40 flex-1 truncate font-mono text-xs" title={instance.id}>
                {shortInstance(instance.id)}
              </span>
              {instance.isScheduler ? <Badge tone="quiet">scheduler</Badge> : null}
              <span className="w-36 text-xs whitespace-nowrap text-muted">
                started <Ago at={instance.startedAt} />
                <span className="block">
                  <Skew instance={instance} />
                </span>
              </span>
              <Load instance={instance} most={most} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
