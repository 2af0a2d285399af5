// Describes the ticks under the pointer. It floats, so that nothing moves.

import type { TimelineRow } from "../api/wire.js";
import { durationText } from "../shared/format.js";
import { timeText } from "../shared/zone.js";
import { countWords, type Drawn } from "./marks.js";

export type Pointed = {
  readonly row: TimelineRow;
  readonly atMs: number;
  readonly found: readonly Drawn[];
  readonly x: number;
  readonly y: number;
  readonly summary: string;
};

const WIDTH = 270;

export function Tip({ pointed, zone }: { readonly pointed: Pointed; readonly zone: string }) {
  const { row, atMs, found, x, y, summary } = pointed;
  const left = Math.max(
    8,
    Math.min(x - WIDTH / 2, document.documentElement.clientWidth - WIDTH - 8),
  );
  const isLow = y > window.innerHeight - 170;
  return (
    <div
      role="presentation"
      className="pointer-events-none fixed z-40 rounded-lg border border-line bg-surface px-3 py-2 text-xs shadow-xl"
      style={{
        left,
        width: WIDTH,
        ...(isLow ? { bottom: window.innerHeight - y + 36 } : { top: y + 8 }),
      }}
    >
      <p className="truncate font-medium">{row.name}</p>
      {found.length === 0 ? (
        <>
          <p className="text-muted">{timeText(atMs, zone, "full")}</p>
          <p className="mt-1 text-muted">No tick here. {summary}.</p>
        </>
      ) : (
        found.slice(0, 4).map((each) => (
          <div key={`${each.words}${each.atMs}`} className="mt-1">
            <p>
              {each.count > 1 ? `${countWords(each.count)} ` : ""}
              {each.words}
              {each.lateMs !== null && each.lateMs >= 1_000
                ? `, ${durationText(each.lateMs)} ${row.monitor ? "after its time" : "late"}`
                : ""}
            </p>
            <p className="text-muted">
              {timeText(each.atMs, zone, "full")}
              {each.lastMs > each.atMs ? ` – ${timeText(each.lastMs, zone, "time")}` : ""}
            </p>
          </div>
        ))
      )}
      <p className="mt-1 text-muted">Click: why?</p>
    </div>
  );
}
