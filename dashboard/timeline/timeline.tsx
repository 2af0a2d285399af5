// The timeline of expected against actual ticks for many schedules: fired, failed, skipped, missed and planned ones. It
// freezes while the pointer is over it.

import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Timeline as TimelineData, TimelineRow } from "../api/wire.js";
import { relativeText } from "../shared/format.js";
import { MARK_WORDS, type Mark } from "../shared/status.js";
import { useStillPicture } from "../shared/still.js";
import { timeText, useZone } from "../shared/zone.js";
import { drawnOf, near, summaryOf } from "./marks.js";
import { type Pointed, Tip } from "./tip.js";
import { Sample, Track } from "./track.js";
import { axisTicks, labelScreens, percent, placeOf, type Window } from "./window.js";

const LEGEND: readonly Mark[] = ["ok", "late", "running", "failed", "skipped", "missed", "planned"];

export function Timeline({
  data,
  isNamed = true,
}: {
  readonly data: TimelineData;
  readonly isNamed?: boolean;
}) {
  const zone = useZone();
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const { shown, still } = useStillPicture(data);
  const window = useMemo<Window>(
    () => ({ fromMs: Date.parse(shown.from), toMs: Date.parse(shown.to) }),
    [shown],
  );
  const nowMs = Date.parse(shown.now);
  const ticks = useMemo(() => axisTicks(window, zone), [window, zone]);
  return (
    <div
      className="relative"
      onPointerEnter={still.onPointerEnter}
      onPointerLeave={() => {
        still.onPointerLeave();
        setPointed(null);
      }}
    >
      <div className={isNamed ? LAYOUT : ""}>
        <div className="max-sm:hidden" />
        <Axis ticks={ticks} window={window} zone={zone} nowMs={nowMs} />
        <div className="max-sm:hidden" />
      </div>
      <div className="relative">
        <Grid ticks={ticks} window={window} nowMs={nowMs} isNamed={isNamed} />
        {shown.schedules.map((row) => (
          <Row
            key={row.name}
            row={row}
            window={window}
            nowMs={nowMs}
            point={setPointed}
            isNamed={isNamed}
          />
        ))}
      </div>
      {pointed === null ? null : <Tip pointed={pointed} zone={zone} />}
    </div>
  );
}

const LAYOUT = "sm:grid sm:grid-cols-[minmax(8rem,13rem)_minmax(0,1fr)_6rem] sm:gap-x-3";

function Row(props: {
  readonly row: TimelineRow;
  readonly window: Window;
  readonly nowMs: number;
  readonly point: (pointed: Pointed | null) => void;
  readonly isNamed: boolean;
}) {
  const { row, window, nowMs, point, isNamed } = props;
  const [, navigate] = useLocation();
  const drawn = useMemo(() => drawnOf(row, nowMs), [row, nowMs]);
  const summary = useMemo(() => summaryOf(drawn), [drawn]);
  const path = `/schedules/${encodeURIComponent(row.name)}`;
  const at = (event: { clientX: number; currentTarget: Element }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width;
    const atMs = window.fromMs + place * (window.toMs - window.fromMs);
    const reachMs = ((window.toMs - window.fromMs) / box.width) * 6;
    return { atMs, found: near(drawn, atMs, reachMs), box };
  };
  const next = row.status === "active" ? row.nextAt : null;
  return (
    <div className={`group items-center py-0.5 ${isNamed ? LAYOUT : ""}`}>
      {isNamed ? (
        <div className="flex min-w-0 items-baseline justify-between gap-2 max-sm:relative max-sm:bg-surface">
          <Link
            href={path}
            title={row.description}
            className="truncate hover:text-accent hover:underline"
          >
            {row.name}
          </Link>
          <span className="text-xs text-muted sm:hidden">{standing(row, next, nowMs)}</span>
        </div>
      ) : null}
      {/* The picture is for the pointer; the link beside it and the page behind it are for the keyboard. */}
      <div
        className="cursor-crosshair rounded-sm group-hover:bg-sunken/60"
        onPointerMove={(event) => {
          const { atMs, found, box } = at(event);
          point({ row, atMs, found, x: event.clientX, y: box.bottom, summary });
        }}
        onPointerDown={(event) => {
          if (event.button !== 0 || event.pointerType === "touch") return;
          const { atMs, found } = at(event);
          const moment = new Date(found[0]?.atMs ?? atMs).toISOString();
          navigate(`${path}?at=${encodeURIComponent(moment)}`);
        }}
      >
        <Track
          drawn={drawn}
          window={window}
          nowMs={nowMs}
          pausedMs={row.pausedAt === null ? null : Date.parse(row.pausedAt)}
          label={`${row.name}: ${summary}`}
        />
      </div>
      {isNamed ? (
        <span className="text-xs whitespace-nowrap text-muted max-sm:hidden">
          {standing(row, next, nowMs)}
        </span>
      ) : null}
    </div>
  );
}

function standing(row: TimelineRow, next: string | null, nowMs: number): string {
  if (row.status !== "active") return row.status;
  return next === null ? "–" : relativeText(Date.parse(next), nowMs);
}

function Axis(props: {
  readonly ticks: readonly { atMs: number; isDay: boolean }[];
  readonly window: Window;
  readonly zone: string;
  readonly nowMs: number;
}) {
  const { ticks, window, zone, nowMs } = props;
  const nowPlace = placeOf(nowMs, window);
  return (
    <div className="relative h-6 text-2xs text-muted" aria-hidden="true">
      {ticks
        .map(({ atMs, isDay }) => ({ atMs, isDay, place: placeOf(atMs, window) }))
        .filter(({ place }) => place > 0.015 && place < 0.985)
        .map(({ atMs, isDay, place }) => (
          <span
            key={atMs}
            className={`absolute -translate-x-1/2 whitespace-nowrap ${LABEL_CLASSES[labelScreens(Math.abs(place - nowPlace), isDay)]}`}
            style={{ left: percent(place) }}
          >
            {isDay ? timeText(atMs, zone, "day") : timeText(atMs, zone, "time").slice(0, 5)}
          </span>
        ))}
      <span
        className="absolute -translate-x-1/2 font-semibold text-accent"
        style={{ left: percent(nowPlace) }}
      >
        now
      </span>
    </div>
  );
}

/** On a narrow screen every other label is hidden as well. */
const LABEL_CLASSES = { all: "max-sm:even:hidden", wide: "max-sm:hidden", none: "hidden" } as const;

function Grid(props: {
  readonly ticks: readonly { atMs: number }[];
  readonly window: Window;
  readonly nowMs: number;
  readonly isNamed: boolean;
}) {
  const { ticks, window, nowMs, isNamed } = props;
  return (
    <div
      aria-hidden="true"
      className={`pointer-events-none absolute inset-0 ${isNamed ? LAYOUT : ""}`}
    >
      {isNamed ? <div className="max-sm:hidden" /> : null}
      <div className="relative h-full">
        {ticks.map(({ atMs }) => (
          <div
            key={atMs}
            className="absolute inset-y-0 w-px bg-line/60"
            style={{ left: percent(placeOf(atMs, window)) }}
          />
        ))}
        <div
          className="absolute inset-y-0 right-0 bg-sunken/35"
          style={{ left: percent(placeOf(nowMs, window)) }}
        />
        <div
          className="absolute -top-1 bottom-0 w-px bg-accent"
          style={{ left: percent(placeOf(nowMs, window)) }}
        />
      </div>
    </div>
  );
}

export function Legend() {
  return (
    <ul className="flex flex-wrap gap-x-3 text-2xs text-muted" aria-label="What the marks mean">
      {LEGEND.map((mark) => (
        <li key={mark} className="inline-flex items-center gap-0.5">
          <Sample mark={mark} />
          {MARK_WORDS[mark]}
        </li>
      ))}
    </ul>
  );
}
