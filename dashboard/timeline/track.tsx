// One row of the timeline as a picture. Form and colour both show the outcome of a tick: fired is a whole bar, skipped
// half of one, missed a hollow one, planned a small line.

import { memo } from "react";
import type { Mark } from "../shared/status.js";
import type { Drawn } from "./marks.js";
import { percent, placeOf, type Window } from "./window.js";

const HEIGHT = 26;
const BAR = 3;

const SHAPES: Readonly<Record<Mark, { y: number; height: number; className: string }>> = {
  ok: { y: 4, height: 18, className: "fill-ok" },
  late: { y: 4, height: 18, className: "fill-late" },
  running: { y: 4, height: 18, className: "fill-running pulse" },
  waiting: { y: 9, height: 13, className: "fill-running/60" },
  failed: { y: 1, height: 24, className: "fill-failed" },
  cancelled: { y: 13, height: 9, className: "fill-skipped" },
  skipped: { y: 13, height: 9, className: "fill-skipped" },
  missed: { y: 4.5, height: 17, className: "fill-surface stroke-missed" },
  due: { y: 4.5, height: 17, className: "fill-surface stroke-late" },
  planned: { y: 9, height: 8, className: "fill-planned" },
};

type TrackProps = {
  readonly drawn: readonly Drawn[];
  readonly window: Window;
  readonly nowMs: number;
  readonly pausedMs: number | null;
  readonly label: string;
};

export const Track = memo(function Track({ drawn, window, nowMs, pausedMs, label }: TrackProps) {
  const cellMs = (window.toMs - window.fromMs) / 240;
  return (
    <svg role="img" aria-label={label} className="block w-full overflow-hidden" height={HEIGHT}>
      <line x1="0" x2="100%" y1={HEIGHT - 3.5} y2={HEIGHT - 3.5} className="stroke-line" />
      {pausedMs === null ? null : (
        <Band fromMs={pausedMs} toMs={window.toMs} window={window} className="fill-skipped/18" />
      )}
      {drawn.map((each) => {
        const { mark, atMs, lastMs } = each;
        const key = `${mark}${each.words}${atMs}`;
        if (lastMs - atMs > cellMs * 2)
          return (
            <Band
              key={key}
              fromMs={atMs}
              toMs={lastMs}
              window={window}
              className={mark === "missed" ? "fill-missed/25 stroke-missed" : "fill-skipped/45"}
            />
          );
        const { y, height, className } = SHAPES[mark];
        return (
          <g key={key}>
            {mark === "running" ? (
              <Band fromMs={atMs} toMs={nowMs} window={window} className="fill-running/20" />
            ) : null}
            <rect
              x={percent(placeOf(atMs, window))}
              y={y}
              width={mark === "planned" ? 2 : BAR}
              height={height}
              rx={1}
              className={className}
            />
          </g>
        );
      })}
    </svg>
  );
});

function Band(props: {
  readonly fromMs: number;
  readonly toMs: number;
  readonly window: Window;
  readonly className: string;
}) {
  const from = Math.max(0, placeOf(props.fromMs, props.window));
  const to = Math.min(1, placeOf(props.toMs, props.window));
  if (to <= from) return null;
  return (
    <rect
      x={percent(from)}
      width={percent(to - from)}
      y={8}
      height={10}
      rx={2}
      className={props.className}
    />
  );
}

/** A sample of each form, for the legend. */
export function Sample({ mark }: { readonly mark: Mark }) {
  const { y, height, className } = SHAPES[mark];
  return (
    <svg width="9" height={HEIGHT} viewBox={`0 0 9 ${HEIGHT}`} aria-hidden="true">
      <rect x={3} y={y} width={BAR} height={height} rx={1} className={className} />
    </svg>
  );
}
