// The progress of a run, as its handler reports it.

import type { Run } from "../api/wire.js";
import { Meter } from "../shared/charts.js";
import { numberText } from "../shared/format.js";
import { Panel } from "../shared/panel.js";
import { Ago, Time } from "../shared/time.js";

export function Progress({ run }: { readonly run: Run }) {
  const { progress } = run;
  if (progress === null) return null;
  const { stage, done, total, at, stages } = progress;
  const share = done !== null && total !== null && total > 0 ? done / total : null;
  return (
    <Panel
      title="Progress"
      note={
        <>
          reported <Ago at={at} />
        </>
      }
    >
      <div className="flex flex-wrap items-baseline justify-between gap-2">
        <span className="font-medium">{stage ?? "at work"}</span>
        <span className="text-muted">
          {done === null ? "" : numberText(done)}
          {total === null ? "" : ` of ${numberText(total)}`}
        </span>
      </div>
      {share === null ? null : (
        <div className="mt-1.5">
          <Meter
            share={share}
            label="Done"
            className={run.status === "running" ? "bg-running" : "bg-ok"}
          />
        </div>
      )}
      {stages.length > 1 ? (
        <ol className="mt-2 gap-x-6 text-xs text-muted md:columns-2">
          {stages.map((each) => (
            <li
              key={each.stage + each.at}
              className="flex break-inside-avoid gap-2 py-px"
              title={each.stage}
            >
              <Time at={each.at} style="time" />
              <span className="min-w-0 md:truncate">{each.stage}</span>
            </li>
          ))}
        </ol>
      ) : null}
    </Panel>
  );
}
