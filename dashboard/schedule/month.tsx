// A month as a heat map: for each day of the schedule's zone, the number of ticks and their outcomes.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { call } from "../api/call.js";
import type { Schedule, Timeline } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { Panel } from "../shared/panel.js";
import { MARK_ORDER, MARK_WORDS, type Mark, markOf } from "../shared/status.js";
import { clockOf, useZone } from "../shared/zone.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

type Day = { readonly counts: Map<Mark, number>; total: number };

export function Month({ schedule }: { readonly schedule: Schedule }) {
  const reader = useZone();
  const zone = schedule.timezone === "UTC" ? reader : schedule.timezone;
  const today = clockOf(Date.now(), zone);
  const [shift, setShift] = useState(0);
  const first = new Date(Date.UTC(today.year ?? 2000, (today.month ?? 1) - 1 + shift, 1));
  const year = first.getUTCFullYear();
  const month = first.getUTCMonth();
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const fromMs = first.getTime() - DAY_MS;
  const toMs = Date.UTC(year, month + 1, 1) + DAY_MS;
  const query = useQuery({
    queryKey: ["timeline", "month", schedule.name, fromMs],
    queryFn: ({ signal }) =>
      call("timeline", "GET /api/timeline", {
        query: {
          from: new Date(fromMs).toISOString(),
          to: new Date(toMs).toISOString(),
          cell: "1h",
          schedule: schedule.name,
        },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
  const days = useMemo(
    () => daysOf(query.data, { zone, year, month }),
    [query.data, zone, year, month],
  );
  const most = Math.max(1, ...[...days.values()].map(({ total }) => total));
  const lead = (first.getUTCDay() + 6) % 7;
  const title = first.toLocaleDateString("en-GB", {
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });
  return (
    <Panel
      title="Month"
      note={zone}
      actions={
        <div className="flex items-center gap-1 text-xs">
          <Button
            isSmall
            kind="quiet"
            aria-label="The month before"
            onClick={() => setShift(shift - 1)}
          >
            ←
          </Button>
          <span className="w-28 text-center">{title}</span>
          <Button
            isSmall
            kind="quiet"
            aria-label="The month after"
            onClick={() => setShift(shift + 1)}
          >
            →
          </Button>
        </div>
      }
    >
      <div
        className="grid grid-cols-7 gap-1 text-2xs"
        role="img"
        aria-label={`Ticks by day, ${title}`}
      >
        {WEEKDAYS.map((day) => (
          <span key={day} className="text-center text-muted">
            {day}
          </span>
        ))}
        {lead > 0 ? <span style={{ gridColumn: `span ${lead}` }} /> : null}
        {Array.from({ length: daysInMonth }, (_, index) => index + 1).map((day) => (
          <DayCell
            key={day}
            no={day}
            day={days.get(day)}
            most={most}
            isToday={shift === 0 && day === today.day}
          />
        ))}
      </div>
    </Panel>
  );
}

const FILLS: Partial<Record<Mark, string>> = {
  failed: "bg-failed",
  missed: "bg-missed",
  late: "bg-late",
  running: "bg-running",
  skipped: "bg-skipped",
  ok: "bg-ok",
};

function DayCell(props: {
  readonly no: number;
  readonly day: Day | undefined;
  readonly most: number;
  readonly isToday: boolean;
}) {
  const { no, day, most, isToday } = props;
  const past = day ? [...day.counts].filter(([mark]) => mark !== "planned" && mark !== "due") : [];
  const done = past.reduce((sum, [, count]) => sum + count, 0);
  const words = day
    ? MARK_ORDER.filter((mark) => day.counts.has(mark))
        .map((mark) => `${day.counts.get(mark)} ${MARK_WORDS[mark]}`)
        .join(", ")
    : "no tick";
  const strength = day ? 0.25 + 0.75 * (day.total / most) : 0;
  return (
    <span
      title={`${no}: ${words}`}
      className={`relative h-8 overflow-hidden rounded bg-sunken ${isToday ? "outline-2 outline-accent" : ""}`}
    >
      {day && done === 0 ? (
        <span className="absolute inset-0 rounded border border-dashed border-planned" />
      ) : null}
      {done > 0 ? (
        <span className="absolute inset-x-0 bottom-0 flex" style={{ height: `${strength * 100}%` }}>
          {MARK_ORDER.filter((mark) => FILLS[mark] !== undefined && day?.counts.has(mark)).map(
            (mark) => (
              <span
                key={mark}
                className={`${FILLS[mark]} opacity-80`}
                style={{ flex: Math.max(0.08 * done, day?.counts.get(mark) ?? 0) }}
              />
            ),
          )}
        </span>
      ) : null}
      <span className="absolute top-0.5 left-1 rounded-sm bg-surface/75 px-0.5 leading-3">
        {no}
      </span>
    </span>
  );
}

function daysOf(
  data: Timeline | undefined,
  { zone, year, month }: { readonly zone: string; readonly year: number; readonly month: number },
): Map<number, Day> {
  const days = new Map<number, Day>();
  const add = (atMs: number, mark: Mark, count: number) => {
    const clock = clockOf(atMs, zone);
    if (clock.year !== year || clock.month !== month + 1) return;
    const day = days.get(clock.day ?? 0) ?? { counts: new Map<Mark, number>(), total: 0 };
    day.counts.set(mark, (day.counts.get(mark) ?? 0) + count);
    day.total += count;
    days.set(clock.day ?? 0, day);
  };
  for (const row of data?.schedules ?? []) {
    for (const ticks of row.ticks) {
      const [from, last] = [Date.parse(ticks.at), Date.parse(ticks.lastAt)];
      // A stretch of several days is spread over them.
      const parts = Math.max(1, Math.min(ticks.count, Math.ceil((last - from) / DAY_MS)));
      for (let part = 0; part < parts; part += 1)
        add(
          from + ((last - from) * part) / Math.max(1, parts - 1),
          markOf(ticks),
          Math.round(ticks.count / parts),
        );
    }
    for (const { at, count } of row.planned) add(Date.parse(at), "planned", count);
  }
  return days;
}
