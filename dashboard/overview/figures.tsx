// Four figures with their recent course: success rate, throughput, lateness, queue depth.

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { call } from "../api/call.js";
import type { Queue, Stats, Timeline } from "../api/wire.js";
import { Bars, Line, type Point } from "../shared/charts.js";
import { durationText, numberText, percentText } from "../shared/format.js";
import { timeText, useZone } from "../shared/zone.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;

export function Figures({ timeline }: { readonly timeline: Timeline | undefined }) {
  const zone = useZone();
  const stats = useQuery({
    queryKey: ["overview", "stats"],
    queryFn: ({ signal }) => call("stats", "GET /api/stats", { query: { since: "24h" }, signal }),
  });
  const queues = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => call("listQueues", "GET /api/queues", { signal }),
  });
  const hours = hoursOf(stats.data, zone);
  const overall = stats.data?.overall;
  const late = latenessOf(timeline, zone);
  const depth = (queues.data?.queues ?? []).reduce(
    (sum, { ready, waiting, running }) => ({
      ready: sum.ready + ready,
      waiting: sum.waiting + waiting,
      running: sum.running + running,
    }),
    { ready: 0, waiting: 0, running: 0 },
  );
  return (
    <div className="grid grid-cols-2 gap-3 xl:grid-cols-4">
      <Figure
        name="Success rate"
        value={overall?.successRate == null ? "–" : percentText(overall.successRate)}
        note={
          overall ? (
            <>
              24 h ·{" "}
              <Link href="/runs?status=failed" className="link">
                {numberText(overall.failed)} failed
              </Link>
            </>
          ) : (
            "24 h"
          )
        }
      >
        <Line
          label="Success rate by hour"
          min={Math.min(0.9, ...hours.flatMap(({ rate }) => (rate === null ? [] : [rate - 0.02])))}
          max={1}
          points={hours.map(({ label, rate }) => ({ label, value: rate }))}
          className="stroke-ok fill-ok"
        />
      </Figure>
      <Figure
        name="Throughput"
        value={overall ? numberText(overall.total) : "–"}
        note={
          overall?.meanMs == null
            ? "runs ended in 24 h"
            : `runs in 24 h · mean ${durationText(overall.meanMs)}`
        }
      >
        <Bars
          label="Runs that ended, by hour"
          stacks={hours.map(({ label, completed, failed, cancelled }) => ({
            label: `${label}: ${completed} completed, ${failed} failed, ${cancelled} cancelled`,
            parts: [completed, failed, cancelled],
          }))}
        />
      </Figure>
      <Figure
        name="Lateness"
        value={late.max === null ? "–" : durationText(late.max)}
        note={late.max === null ? "no tick in this time" : "worst delay in this window"}
      >
        <Line label="How late ticks fired" points={late.points} className="stroke-late fill-late" />
      </Figure>
      <Figure
        name="Queue depth"
        value={numberText(depth.ready)}
        note={
          <>
            ready ·{" "}
            <Link href="/runs?status=running" className="link">
              {numberText(depth.running)} running
            </Link>{" "}
            · {numberText(depth.waiting)} waiting
          </>
        }
      >
        <Depths queues={queues.data?.queues ?? []} />
      </Figure>
    </div>
  );
}

function Figure(props: {
  readonly name: string;
  readonly value: string;
  readonly note: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section
      aria-label={props.name}
      className="min-w-0 rounded-lg border border-line bg-surface px-3.5 pt-3 pb-3"
    >
      <h2 className="text-xs text-muted">{props.name}</h2>
      <p className="text-2xl leading-8 font-semibold tracking-tight" data-figure={props.name}>
        {props.value}
      </p>
      <p className="mb-2 sm:truncate text-2xs text-muted">{props.note}</p>
      {props.children}
    </section>
  );
}

const QUEUES_SHOWN = 3;

/** The deepest queues, each as a line. */
function Depths({ queues }: { readonly queues: readonly Queue[] }) {
  const sized = queues
    .map((queue) => ({ ...queue, total: queue.ready + queue.running + queue.waiting }))
    .sort((a, b) => b.total - a.total)
    .slice(0, QUEUES_SHOWN);
  const most = Math.max(1, ...sized.map(({ total }) => total));
  return (
    <ul className="grid h-10 content-end gap-0.5 text-2xs text-muted">
      {sized.map(({ name, ready, running, waiting }) => (
        <li
          key={name}
          className="grid grid-cols-[minmax(0,5rem)_minmax(0,1fr)] items-center gap-2 leading-3"
        >
          <span className="truncate">{name}</span>
          <span
            className="flex h-1.5 overflow-hidden rounded-full bg-sunken"
            title={`${name}: ${ready} ready, ${running} running, ${waiting} waiting`}
          >
            <span className="bg-running" style={{ width: `${(running / most) * 100}%` }} />
            <span className="bg-accent" style={{ width: `${(ready / most) * 100}%` }} />
            <span className="bg-planned" style={{ width: `${(waiting / most) * 100}%` }} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function hoursOf(stats: Stats | undefined, zone: string) {
  const known = new Map(stats?.stretches.map((each) => [Date.parse(each.at), each]));
  const last = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  return Array.from({ length: HOURS }, (_, index) => {
    const at = last - (HOURS - 1 - index) * HOUR_MS;
    const hour = known.get(at);
    return {
      label: timeText(at, zone, "short"),
      rate: hour?.successRate ?? null,
      completed: hour?.completed ?? 0,
      failed: hour?.failed ?? 0,
      cancelled: hour?.cancelled ?? 0,
    };
  });
}

const LATE_CELLS = 48;

function latenessOf(
  timeline: Timeline | undefined,
  zone: string,
): { points: readonly Point[]; max: number | null } {
  if (timeline === undefined) return { points: [], max: null };
  const fromMs = Date.parse(timeline.from);
  const wholeMs = Date.parse(timeline.now) - fromMs;
  const cells = new Array<number | null>(LATE_CELLS).fill(null);
  for (const { ticks } of timeline.schedules) {
    for (const { at, lateMs } of ticks) {
      if (lateMs === null) continue;
      const cell = Math.min(
        LATE_CELLS - 1,
        Math.max(0, Math.floor(((Date.parse(at) - fromMs) / wholeMs) * LATE_CELLS)),
      );
      cells[cell] = Math.max(cells[cell] ?? 0, lateMs);
    }
  }
  const values = cells.flatMap((value) => (value === null ? [] : [value]));
  return {
    points: cells.map((value, index) => ({
      label: timeText(fromMs + (index / LATE_CELLS) * wholeMs, zone),
      value,
    })),
    max: values.length === 0 ? null : Math.max(...values),
  };
}
