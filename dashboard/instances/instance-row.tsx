// One instance in a line.

import type { Instance } from "../api/wire.js";
import { plural } from "../shared/format.js";
import { Badge } from "../shared/status.js";
import { Ago } from "../shared/time.js";
import { Load, Skew } from "./load.js";
import { QuietButton } from "./quiet.js";

export function InstanceRow(props: { readonly instance: Instance; readonly most: number }) {
  const { instance, most } = props;
  const { id, app, release, jobs, isScheduler, isLive, startedAt, seenAt, retiredAt } = instance;
  return (
    <li className="grid items-center gap-x-4 gap-y-1 border-t border-line px-4 py-2.5 md:grid-cols-[minmax(0,1fr)_10rem_8rem_11rem_4rem]">
      <div className="min-w-0">
        <p className="font-mono text-xs break-all">{id}</p>
        <p className="text-xs text-muted">
          {app === null ? "" : `${app} `}
          {release === null ? "" : `release ${release} · `}
          <span title={jobs.join(", ")}>{plural(jobs.length, "job")}</span>
          {" · started "}
          <Ago at={startedAt} />
        </p>
        {instance.quietNote === null ? null : <p className="text-xs">{instance.quietNote}</p>}
      </div>
      <div className="flex flex-wrap gap-1.5">
        {instance.quietAt === null ? null : <Badge tone="skipped">quiet</Badge>}
        {isScheduler ? <Badge tone="quiet">scheduler</Badge> : null}
        {isLive ? (
          <Badge tone="ok" sign="●">
            alive
          </Badge>
        ) : (
          <Badge tone={retiredAt === null ? "missed" : "quiet"}>
            {retiredAt === null ? "silent" : "stopped"}
          </Badge>
        )}
      </div>
      <Load instance={instance} most={most} />
      <p className="text-xs whitespace-nowrap text-muted">
        seen <Ago at={seenAt} />
        <span className="block">
          <Skew instance={instance} />
        </span>
      </p>
      <span>
        <QuietButton instance={instance} />
      </span>
    </li>
  );
}
