// One run: its status, its attempts over time, its input, result, items and log.

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/call.js";
import type { Run } from "../api/wire.js";
import { keptRun } from "../runs/kept-list.js";
import { CopyButton } from "../shared/copy.js";
import { durationText, shortId } from "../shared/format.js";
import { JsonView } from "../shared/json-view.js";
import { Facts, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { Sentence } from "../shared/sentence.js";
import { RunBadge } from "../shared/status.js";
import { Ago, Time } from "../shared/time.js";
import { RunActions } from "./actions.js";
import { Attempts } from "./attempts.js";
import { Children } from "./children.js";
import { ErrorView } from "./error-view.js";
import { Exchanges } from "./exchanges.js";
import { Items } from "./items.js";
import { Logs } from "./logs.js";
import { Progress } from "./progress.js";
import { Steps } from "./steps.js";
import { waitingWords } from "./waiting-words.js";

export function RunPage({ id }: { readonly id: string }) {
  const query = useQuery({
    queryKey: ["run", id],
    queryFn: ({ signal }) => call("getRun", "GET /api/runs/{id}", { params: { id }, signal }),
    placeholderData: () => keptRun(id),
  });
  const run = query.data;
  const back = (
    <Link href="/runs" className="link">
      Runs
    </Link>
  );
  if (run === undefined)
    return (
      <>
        <PageHead title={`Run ${shortId(id)}`} before={back} />
        {query.error ? (
          <RefusalNote error={query.error} retry={() => void query.refetch()} />
        ) : (
          <Waiting rows={8} />
        )}
      </>
    );
  return (
    <>
      <PageHead
        title={run.job}
        before={back}
        after={<RunBadge status={run.status} partial={run.partial} />}
        lead={
          <span className="inline-flex flex-wrap items-center gap-x-1 font-mono text-xs">
            {run.id} <CopyButton text={run.id} what="the run's id" />
          </span>
        }
        actions={<RunActions run={run} />}
      />
      {query.error ? <RefusalNote error={query.error} /> : null}
      <div className="grid gap-4">
        {run.status === "pending" && run.waitingFor ? (
          <p className="rounded-lg border border-line bg-surface px-4 py-2.5">
            <Sentence text={waitingWords(run.waitingFor)} />
          </p>
        ) : null}
        {run.progress !== null ? <Progress run={run} /> : null}
        {run.error !== null && run.status !== "completed" ? (
          <ErrorView error={run.error} isFinal={run.status === "failed"} />
        ) : null}
        <Steps run={run} />
        <Attempts run={run} />
        <Exchanges run={run} />
        <div className="grid gap-4 lg:grid-cols-2">
          <Panel title="Facts">
            <Facts facts={factsOf(run)} />
          </Panel>
          <div className="grid content-start gap-4">
            <JsonView title="Input" value={run.input} />
            {run.status === "completed" ? <JsonView title="Result" value={run.result} /> : null}
          </div>
        </div>
        {run.items.total > 0 ? <Items run={run} /> : null}
        <Logs run={run} />
        <Children run={run} />
      </div>
    </>
  );
}

function factsOf(run: Run): readonly (readonly [string, React.ReactNode])[] {
  const facts: (readonly [string, React.ReactNode])[] = [
    ["Mode", run.mode],
    [
      "Schedule",
      run.schedule === null ? null : (
        <Link
          key="s"
          href={`/schedules/${encodeURIComponent(run.schedule)}${run.nominalAt ? `?at=${encodeURIComponent(run.nominalAt)}` : ""}`}
          className="link"
        >
          {run.schedule}
        </Link>
      ),
    ],
    ["Tick", run.nominalAt === null ? null : <Time key="n" at={run.nominalAt} style="full" />],
    ["Queue", run.queue],
    ["Priority", run.priority === 0 ? null : String(run.priority)],
    ["Stored", <Stamp key="c" at={run.createdAt} />],
    ["Due", <Stamp key="d" at={run.dueAt} />],
    ["Started", run.startedAt === null ? null : <Stamp key="st" at={run.startedAt} />],
    ["Ended", run.finishedAt === null ? null : <Stamp key="f" at={run.finishedAt} />],
    ["Took", run.durationMs === null ? null : durationText(run.durationMs)],
    [
      "Holder",
      run.holder === null ? null : (
        <span key="h" className="font-mono text-xs">
          {run.holder}
        </span>
      ),
    ],
    ["Fence", run.fence === null ? null : String(run.fence)],
    ["Last heartbeat", run.heartbeatAt === null ? null : <Stamp key="hb" at={run.heartbeatAt} />],
    ["Lease until", run.leaseUntil === null ? null : <Stamp key="l" at={run.leaseUntil} />],
    [
      "Cancel asked for",
      run.cancelRequestedAt === null ? null : <Stamp key="cr" at={run.cancelRequestedAt} />,
    ],
    [
      "Key",
      run.key === null ? null : (
        <span key="k" className="font-mono text-xs">
          {run.key}
        </span>
      ),
    ],
    ["Tags", run.tags.length === 0 ? null : run.tags.join(", ")],
    [
      "Trace",
      typeof run.traceId === "string" ? (
        <span key="t" className="font-mono text-xs">
          {run.traceId}
        </span>
      ) : null,
    ],
  ];
  return facts.filter(([, value]) => value !== null);
}

function Stamp({ at }: { readonly at: string }) {
  return (
    <>
      <Time at={at} style="full" />{" "}
      <span className="text-xs text-muted">
        <Ago at={at} />
      </span>
    </>
  );
}
