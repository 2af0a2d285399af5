// The instances on this database: which are alive, what each runs, and when it was last seen.

import { call } from "../api/call.js";
import { numberText } from "../shared/format.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Code, Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { InstanceRow } from "./instance-row.js";

export function Instances() {
  const pages = usePages(["instances", "all"], ({ cursor, signal }) =>
    call("listInstances", "GET /api/instances", {
      query: { limit: 50, cursor },
      signal,
    }),
  );
  const all = pages.data?.pages.flatMap(({ instances }) => instances) ?? [];
  const live = all.filter(({ isLive }) => isLive);
  const most = Math.max(1, ...all.map(({ held }) => held));
  const gone = all.filter(({ isLive }) => !isLive);
  return (
    <>
      <PageHead
        title="Instances"
        lead="Every process that uses this database. Each can fire schedules and execute runs."
      />
      {pages.error ? <RefusalNote error={pages.error} retry={() => void pages.refetch()} /> : null}
      <div className="grid gap-4">
        <Panel title="Alive" note={pages.data ? numberText(live.length) : undefined} isFlush>
          {pages.data === undefined ? (
            <Waiting />
          ) : live.length === 0 ? (
            <Empty title="No instance is running">
              Nothing fires and nothing runs until an instance starts: <Code>holdfast start</Code>,
              or <Code>await holdfast.start()</Code> in your own process.
            </Empty>
          ) : (
            <ul>
              {live.map((instance) => (
                <InstanceRow key={instance.id} instance={instance} most={most} />
              ))}
            </ul>
          )}
          {gone.length === 0 ? <NextPage of={pages} label="More" /> : null}
        </Panel>
        {gone.length === 0 ? null : (
          <Panel title="Gone" note="stopped, or not seen lately" isFlush>
            <ul>
              {gone.map((instance) => (
                <InstanceRow key={instance.id} instance={instance} most={most} />
              ))}
            </ul>
            <NextPage of={pages} />
          </Panel>
        )}
      </div>
    </>
  );
}
