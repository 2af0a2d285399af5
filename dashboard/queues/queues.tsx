// The queues: how many runs are ready, waiting and running in each; each can be paused.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Queue } from "../api/wire.js";
import { ActionButton } from "../shared/action.js";
import { numberText } from "../shared/format.js";
import { Code, Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { Badge } from "../shared/status.js";
import { Ago } from "../shared/time.js";
import { useMay } from "../shell/me.js";

export function Queues() {
  const query = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => call("listQueues", "GET /api/queues", { signal }),
  });
  const queues = query.data?.queues ?? [];
  const most = Math.max(
    1,
    ...queues.map(({ ready, waiting, running }) => ready + waiting + running),
  );
  return (
    <>
      <PageHead
        title="Queues"
        lead="A queue routes runs to workers. No run of a paused queue is claimed; active runs go on."
      />
      {query.error ? <RefusalNote error={query.error} retry={() => void query.refetch()} /> : null}
      <Panel isFlush>
        {query.data === undefined ? (
          <Waiting />
        ) : queues.length === 0 ? (
          <Empty title="No queue yet">
            A queue exists once a job names it:{" "}
            <Code>{'holdfast.job("mail", { queue: "mail", … })'}</Code>. Jobs that name none share
            the queue default.
          </Empty>
        ) : (
          <ul>
            {queues.map((queue) => (
              <QueueRow key={queue.name} queue={queue} most={most} />
            ))}
          </ul>
        )}
      </Panel>
    </>
  );
}

const PARTS = [
  ["running", "bg-running"],
  ["ready", "bg-accent"],
  ["waiting", "bg-planned"],
] as const;

function QueueRow({ queue, most }: { readonly queue: Queue; readonly most: number }) {
  const mayChange = useMay("admin");
  const params = { name: queue.name };
  return (
    <li className="grid items-center gap-x-4 gap-y-2 border-t border-line px-4 py-3 first:border-t-0 sm:grid-cols-[minmax(0,14rem)_minmax(0,1fr)_4.5rem]">
      <div className="min-w-0">
        <span className="font-medium">{queue.name}</span>{" "}
        {queue.pausedAt === null ? null : (
          <Badge tone="skipped" sign="❙❙">
            paused
          </Badge>
        )}
        {queue.pausedAt === null ? null : (
          <p className="text-xs text-muted">
            <Ago at={queue.pausedAt} />
            {queue.pauseNote === null ? "" : `: ${queue.pauseNote}`}
          </p>
        )}
      </div>
      <div>
        <div
          className="flex h-2 overflow-hidden rounded-full bg-sunken"
          role="img"
          aria-label={`${queue.running} running, ${queue.ready} ready, ${queue.waiting} waiting`}
        >
          {PARTS.map(([part, fill]) => (
            <span key={part} className={fill} style={{ width: `${(queue[part] / most) * 100}%` }} />
          ))}
        </div>
        <p className="mt-1 flex flex-wrap gap-x-4 text-xs text-muted">
          {PARTS.map(([part, fill]) => (
            <span key={part} className="inline-flex items-center gap-1.5">
              <span className={`size-2 rounded-full ${fill}`} />
              {numberText(queue[part])} {part}
            </span>
          ))}
        </p>
      </div>
      <div className="sm:text-right">
        {mayChange ? (
          queue.pausedAt === null ? (
            <ActionButton
              label="Pause"
              isSmall
              confirm={{
                title: `Pause the queue ${queue.name}?`,
                summary: `No run of it is claimed until it is resumed; ${numberText(queue.ready + queue.waiting)} runs wait in it. Active runs go on.`,
                verb: "Pause it",
                note: "Why? Everybody can see this note.",
              }}
              act={async (note) => {
                await call("pauseQueue", "POST /api/queues/{name}/pause", {
                  params,
                  body: note === undefined ? {} : { note },
                });
                return `The queue ${queue.name} is paused.`;
              }}
            />
          ) : (
            <ActionButton
              label="Resume"
              isSmall
              act={async () => {
                await call("resumeQueue", "POST /api/queues/{name}/resume", { params, body: {} });
                return `The queue ${queue.name} is resumed.`;
              }}
            />
          )
        ) : null}
      </div>
    </li>
  );
}
