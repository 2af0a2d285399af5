// The ledger of a schedule, tick by tick, newest first.

import { Link } from "wouter";
import { call } from "../api/call.js";
import type { Schedule, Tick } from "../api/wire.js";
import { durationText, numberText, shortId } from "../shared/format.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Empty, Panel, Waiting } from "../shared/panel.js";
import { Badge, REASON_WORDS, RunBadge } from "../shared/status.js";
import { useStillList } from "../shared/still.js";
import { Time } from "../shared/time.js";
import { styleFor } from "../shared/zone.js";

export function Ledger({
  schedule,
  ask,
}: {
  readonly schedule: Schedule;
  readonly ask: (at: string) => void;
}) {
  const pages = usePages(["schedule", schedule.name, "ticks"], ({ cursor, signal }) =>
    call("listTicks", "GET /api/ticks", {
      query: { schedule: schedule.name, limit: 25, cursor },
      signal,
    }),
  );
  const ticks = pages.data?.pages.flatMap((page) => page.ticks) ?? [];
  const { shown, still } = useStillList(ticks, {
    keyOf: ({ at }) => at,
    scope: schedule.name,
    isPlaceholder: pages.isPlaceholderData,
  });
  const style = styleFor(shown.flatMap(({ at, lastAt }) => [at, lastAt]));
  return (
    <Panel title="Ledger" note="one outcome for every tick" isFlush>
      {pages.data === undefined ? (
        <Waiting />
      ) : ticks.length === 0 ? (
        <Empty title="No tick yet">
          Each tick gets one row here, with its outcome and the reason.
        </Empty>
      ) : (
        <ul className="max-h-120 overflow-y-auto" {...still}>
          {shown.map((tick) => (
            <li
              key={tick.at}
              className="flex flex-wrap items-center gap-x-3 gap-y-0.5 border-t border-line px-4 py-1.5"
            >
              <TickBadge tick={tick} />
              <button
                type="button"
                className="hover:text-accent hover:underline"
                title="Why?"
                onClick={() => ask(tick.at)}
              >
                <Time at={tick.at} zone={schedule.timezone} style={style} />
                {tick.count > 1 ? (
                  <>
                    {" – "}
                    <Time at={tick.lastAt} zone={schedule.timezone} style={style} />
                  </>
                ) : null}
              </button>
              <span className="min-w-0 text-xs text-muted max-sm:flex-auto sm:flex-1 sm:truncate">
                {tick.count > 1 ? `${numberText(tick.count)} ticks: ` : ""}
                {tick.reason === "on_time" ? "fired " : ""}
                {REASON_WORDS[tick.reason] ?? tick.reason}
                {tick.lateMs !== null && tick.lateMs >= 1_000
                  ? `, ${durationText(tick.lateMs)} late`
                  : ""}
              </span>
              {tick.runId === null ? null : (
                <Link href={`/runs/${tick.runId}`} className="link font-mono text-xs">
                  {shortId(tick.runId)}
                </Link>
              )}
            </li>
          ))}
        </ul>
      )}
      <NextPage of={pages} />
    </Panel>
  );
}

/** The status of the run of a tick; without a run, the outcome of the tick. */
function TickBadge({ tick }: { readonly tick: Tick }) {
  if (tick.outcome !== "fired") return <Badge tone={tick.outcome}>{tick.outcome}</Badge>;
  if (tick.runStatus !== null) return <RunBadge status={tick.runStatus} />;
  // Its run is no longer kept, so its end is unknown.
  return <Badge tone="quiet">fired</Badge>;
}
