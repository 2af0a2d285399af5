// One instance in a line.

import type { Instance } from "../api/wire.js";
import { numberText, plural } from "../shared/format.js";
import { Badge } from "../shared/status.js";
import { Ago } from "../shared/time.js";
import { QuietButton } from "./quiet.js";

export function InstanceRow({ instance }: { readonly instance: Instance }) {
  const { id, app, release, jobs, isScheduler, isLive, startedAt, seenAt, retiredAt, held } =
    instance;
  return (
    <li className="grid items-center gap-x-4 gap-y-1 border-t border-line px-4 py-2.5 md:grid-cols-[minmax(0,1fr)_auto_10rem_4rem]">
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
      <p className="text-xs whitespace-nowrap text-muted">
        {numberText(held)} running · seen <Ago at={seenAt} />
      </p>
      <span>
        <QuietButton instance={instance} />
      </span>
    </li>
  );
}
