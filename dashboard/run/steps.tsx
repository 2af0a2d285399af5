// The steps and waits of a run on a time axis: finished ones, then the open ones.

import { Link } from "wouter";
import { call } from "../api/call.js";
import type { Run, Step } from "../api/wire.js";
import { useNow } from "../live/live.js";
import { ActionButton } from "../shared/action.js";
import { durationText, shortId } from "../shared/format.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Panel } from "../shared/panel.js";
import { Sentence } from "../shared/sentence.js";
import { Time } from "../shared/time.js";
import { useMay } from "../shell/me.js";

const KIND_WORDS: Readonly<Record<Step["kind"], string>> = {
  step: "step",
  sleep: "sleep",
  signal: "signal",
  run: "call",
};

const FILLS: Readonly<Record<Step["state"], string>> = {
  waiting: "fill-running",
  done: "fill-skipped",
  timeout: "fill-late",
  failed: "fill-failed",
  cancelled: "fill-skipped",
};

export function Steps({ run }: { readonly run: Run }) {
  const now = useNow();
  const mayRetry = useMay("admin") && (run.status === "failed" || run.status === "cancelled");
  const pages = usePages(["run", run.id, "steps"], ({ cursor, signal }) =>
    call("listSteps", "GET /api/runs/{id}/steps", {
      params: { id: run.id },
      query: { limit: 100, cursor },
      signal,
    }),
  );
  const found = pages.data?.pages.flatMap((page) => page.steps) ?? [];
  // One that ended between two pages is on both; the later page is newer.
  const steps = [...new Map(found.map((step) => [step.name, step])).values()];
  if (steps.length === 0) return null;
  const spans = steps.map((step) => spanOf(step, now));
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs), fromMs + 1);
  const place = (ms: number) => ((ms - fromMs) / (toMs - fromMs)) * 100;
  const open = steps.filter(({ state }) => state === "waiting").length;
  return (
    <Panel
      title="Steps and waits"
      note={`${steps.length - open} done${open === 0 ? "" : `, ${open} open`}`}
    >
      <ol className="grid gap-2">
        {steps.map((step, at) => {
          const { fromMs: startMs, toMs: endMs } = spans[at] as Span;
          const took = durationText(endMs - startMs);
          return (
            <li
              key={step.name}
              data-step={step.name}
              className="grid items-center gap-x-4 gap-y-0.5 sm:grid-cols-[minmax(0,15rem)_minmax(0,1fr)]"
            >
              <div className="min-w-0 text-xs">
                <div className="font-medium max-sm:wrap-anywhere sm:truncate" title={step.name}>
                  {step.name}
                </div>
                <div className="text-muted">
                  {KIND_WORDS[step.kind]} · {step.state}
                </div>
              </div>
              <div className="min-w-0">
                <svg
                  role="img"
                  aria-label={`${step.name}: ${step.state}, ${took}`}
                  className="block w-full"
                  height="14"
                >
                  <line x1="0" x2="100%" y1="7" y2="7" className="stroke-line" />
                  <rect
                    x={`${Math.min(place(startMs), 99.6)}%`}
                    width={`${Math.max(0.4, place(endMs) - place(startMs))}%`}
                    y="2"
                    height="10"
                    rx="3"
                    className={
                      step.kind === "step" && step.state === "done" ? "fill-ok" : FILLS[step.state]
                    }
                  />
                </svg>
                <div className="flex justify-between gap-2 text-2xs text-muted">
                  <Time at={step.startedAt} style="time" />
                  <span className="min-w-0 flex-1 max-sm:wrap-anywhere sm:truncate">
                    <Note step={step} />
                  </span>
                  <span className="whitespace-nowrap">{took}</span>
                  {mayRetry && step.endedAt !== null ? <RetryFrom run={run} step={step} /> : null}
                </div>
              </div>
            </li>
          );
        })}
      </ol>
      <NextPage of={pages} label="More" />
    </Panel>
  );
}

function RetryFrom({ run, step: { name } }: { readonly run: Run; readonly step: Step }) {
  return (
    <ActionButton
      label="Retry from here"
      kind="quiet"
      confirm={{
        title: `Retry from ${name}?`,
        summary: `${name} and everything recorded after it are forgotten and done again. Earlier steps and done items are not repeated.`,
        verb: "Retry",
      }}
      act={async () => {
        const params = { id: run.id };
        await call("retryRun", "POST /api/runs/{id}/retry", { params, body: { fromStep: name } });
        return "It will be retried.";
      }}
    />
  );
}

function Note({ step }: { readonly step: Step }) {
  const { kind, state, signal, key, run, job, value, error, until } = step;
  const words: string[] = [];
  if (kind === "signal") words.push(`the signal ${signal} with the key ${key}`);
  if (state === "waiting" && until !== null)
    words.push(kind === "step" ? `tried again at ${until}` : `until ${until}`);
  const shown = value === null ? "" : JSON.stringify(value);
  return (
    <>
      {kind === "run" ? (
        <>
          {job}{" "}
          {run === null ? null : (
            <Link href={`/runs/${run}`} className="link font-mono">
              {shortId(run)}
            </Link>
          )}{" "}
        </>
      ) : null}
      <Sentence text={words.join(", ")} />
      {error ? (
        <span className="text-failed-ink" title={error.message}>
          {" "}
          {error.message}
        </span>
      ) : null}
      {shown === "" ? null : (
        <span className="font-mono" title={shown}>
          {" "}
          {shown}
        </span>
      )}
    </>
  );
}

type Span = { readonly fromMs: number; readonly toMs: number };

/** An open one extends to now. */
function spanOf({ startedAt, endedAt }: Step, now: number): Span {
  const fromMs = Date.parse(startedAt);
  return { fromMs, toMs: Math.max(fromMs, endedAt === null ? now : Date.parse(endedAt)) };
}
