// The attempts of a run on a time axis: the holder and fence of each, and how it ended.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Attempt, Run } from "../api/wire.js";
import { useNow } from "../live/live.js";
import { durationText, shortInstance } from "../shared/format.js";
import { Panel } from "../shared/panel.js";
import { Time } from "../shared/time.js";

type Bar = {
  readonly key: string;
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly end: string;
  readonly fill: string;
  readonly holder: string;
  readonly fence: number;
  readonly startedAt: string;
  readonly problem: string | null;
};

const END_WORDS: Readonly<Record<string, string>> = {
  failed: "failed",
  lost: "lost: its holder fell silent",
  handed_back: "handed back",
  later: "postponed by its handler",
  suspended: "suspended until a wait ends",
  timeout: "ran out of time",
};

export function Attempts({ run }: { readonly run: Run }) {
  const now = useNow();
  const query = useQuery({
    queryKey: ["run", run.id, "attempts", run.status],
    queryFn: ({ signal }) =>
      call("listAttempts", "GET /api/runs/{id}/attempts", { params: { id: run.id }, signal }),
  });
  const bars = barsOf(run, query.data?.attempts ?? [], now);
  if (bars.length === 0) return null;
  const fromMs = Math.min(Date.parse(run.dueAt), ...bars.map((bar) => bar.fromMs));
  const toMs = Math.max(...bars.map((bar) => bar.toMs), fromMs + 1);
  const place = (ms: number) => ((ms - fromMs) / (toMs - fromMs)) * 100;
  return (
    <Panel
      title="Attempts"
      note={`${durationText(toMs - fromMs)} from due to ${run.finishedAt ? "end" : "now"}`}
    >
      <ol className="grid gap-2">
        {bars.map((bar) => (
          <li
            key={bar.key}
            className="grid items-center gap-x-4 gap-y-0.5 sm:grid-cols-[minmax(0,15rem)_minmax(0,1fr)]"
          >
            <div className="min-w-0 text-xs">
              <span className="font-medium">{bar.name}</span>{" "}
              <span className="text-muted">{bar.end}</span>
              <div
                className="font-mono text-2xs text-muted max-sm:wrap-anywhere sm:truncate"
                title={`held by ${bar.holder} under fence ${bar.fence}`}
              >
                {shortInstance(bar.holder)} · fence {bar.fence}
              </div>
            </div>
            <div className="min-w-0">
              <svg
                role="img"
                aria-label={`${bar.name}: ${bar.end}, ${durationText(bar.toMs - bar.fromMs)}`}
                className="block w-full"
                height="18"
              >
                <line x1="0" x2="100%" y1="9" y2="9" className="stroke-line" />
                <rect
                  x={`${place(bar.fromMs)}%`}
                  width={`${Math.max(0.4, place(bar.toMs) - place(bar.fromMs))}%`}
                  y="2"
                  height="14"
                  rx="3"
                  className={bar.fill}
                />
              </svg>
              <div className="flex justify-between gap-2 text-2xs text-muted">
                <Time at={bar.startedAt} style="time" />
                <span
                  className="min-w-0 text-failed-ink max-sm:wrap-anywhere sm:truncate"
                  title={bar.problem ?? undefined}
                >
                  {bar.problem}
                </span>
                <span className="whitespace-nowrap">{durationText(bar.toMs - bar.fromMs)}</span>
              </div>
            </div>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function barsOf(run: Run, attempts: readonly Attempt[], now: number): readonly Bar[] {
  const done = attempts.map((attempt): Bar => {
    const { end, startedAt, endedAt, fence, holder, error } = attempt;
    const isOpen = end === "completed" || end === "cancelled";
    return {
      key: `${attempt.attempt}.${fence}`,
      name: `Attempt ${attempt.attempt}`,
      fromMs: Date.parse(startedAt),
      toMs: Math.max(Date.parse(endedAt), Date.parse(startedAt)),
      end: END_WORDS[end] ?? end.replaceAll("_", " "),
      fill:
        end === "completed"
          ? "fill-ok"
          : isOpen || end === "handed_back" || end === "later" || end === "suspended"
            ? "fill-skipped"
            : "fill-failed",
      holder: holder ?? "",
      fence,
      startedAt,
      problem: error?.message ?? null,
    };
  });
  if (run.status !== "running" || run.startedAt === null) return done;
  const fromMs = Date.parse(run.startedAt);
  return [
    ...done,
    {
      key: "now",
      name: `Attempt ${run.attempt}`,
      fromMs,
      toMs: Math.max(now, fromMs + 1),
      end: "running",
      fill: "fill-running",
      holder: run.holder ?? "",
      fence: run.fence ?? 0,
      startedAt: run.startedAt,
      problem: null,
    },
  ];
}
