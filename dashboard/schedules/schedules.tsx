// Every schedule: when it runs in words, its next tick, its last run and its recent days.

import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { call } from "../api/call.js";
import type { RunStatus, Schedule } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { useListKeys } from "../shared/list-keys.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Code, Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { RunBadge, ScheduleBadge } from "../shared/status.js";
import { Ago, Time } from "../shared/time.js";
import { styleFor } from "../shared/zone.js";
import { useMay } from "../shell/me.js";
import { ScheduleDialog } from "./edit-dialog.js";

const STATUSES = ["active", "paused", "ended", "broken"] as const;

export function Schedules() {
  const [search, setSearch] = useSearchParams();
  const status = STATUSES.find((each) => each === search.get("status"));
  const text = search.get("text") ?? "";
  const [isMaking, setMaking] = useState(false);
  const mayChange = useMay("admin");
  const [, navigate] = useLocation();
  const pages = usePages(["schedules", status ?? "any"], ({ cursor, signal }) =>
    call("listSchedules", "GET /api/schedules", {
      query: { status, limit: 200, cursor },
      signal,
    }),
  );
  const all = pages.data?.pages.flatMap(({ schedules }) => schedules) ?? [];
  const wanted = text.toLowerCase();
  const shown = all.filter(({ name, job, description }) =>
    `${name} ${job} ${description}`.toLowerCase().includes(wanted),
  );
  const at = useListKeys({
    count: shown.length,
    open: (index) => navigate(`/schedules/${encodeURIComponent(shown[index]?.name ?? "")}`),
  });
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        if (value === "") next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return (
    <>
      <PageHead
        title="Schedules"
        actions={
          mayChange ? (
            <Button kind="main" onClick={() => setMaking(true)}>
              New schedule
            </Button>
          ) : undefined
        }
      />
      <div className="mb-3 flex flex-wrap gap-2">
        <label className="min-w-48 flex-1 sm:max-w-80">
          <span className="sr-only">Search schedules</span>
          <input
            data-search
            className="field"
            type="search"
            placeholder="Search name, job, description   /"
            value={text}
            onChange={(event) => set("text", event.target.value)}
          />
        </label>
        <label>
          <span className="sr-only">Status</span>
          <select
            className="field"
            value={status ?? ""}
            onChange={(event) => set("status", event.target.value)}
          >
            <option value="">any status</option>
            {STATUSES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </div>
      {pages.error ? <RefusalNote error={pages.error} retry={() => void pages.refetch()} /> : null}
      <Panel isFlush>
        {pages.data === undefined ? (
          <Waiting rows={6} />
        ) : shown.length === 0 ? (
          all.length === 0 && status === undefined ? (
            <Empty title="No schedules yet">
              Declare one in code,{" "}
              <Code>{'holdfast.schedule("nightly", job, { cron: "0 2 * * *" })'}</Code>
              {mayChange ? ", or make one here." : "."}
            </Empty>
          ) : (
            <Empty title="No schedule fits">Try another word, or any status.</Empty>
          )
        ) : (
          <ScheduleTable schedules={shown} at={at} />
        )}
        <NextPage of={pages} label="More" />
      </Panel>
      {isMaking ? (
        <ScheduleDialog
          title="New schedule"
          onClose={() => setMaking(false)}
          onSaved={(name) => navigate(`/schedules/${encodeURIComponent(name)}`)}
        />
      ) : null}
    </>
  );
}

function ScheduleTable({
  schedules,
  at,
}: {
  readonly schedules: readonly Schedule[];
  readonly at: number;
}) {
  return (
    <table className="rows w-full max-sm:block">
      <thead className="max-sm:sr-only">
        <tr>
          <th>Schedule</th>
          <th>When</th>
          <th>Next</th>
          <th>Last run</th>
          <th>Status</th>
        </tr>
      </thead>
      <tbody className="max-sm:block">
        {schedules.map((schedule, index) => (
          <tr
            key={schedule.name}
            data-at={index === at ? "" : undefined}
            className="max-sm:grid max-sm:grid-cols-[minmax(0,1fr)_auto] data-at:bg-sunken data-at:shadow-[inset_2px_0_var(--accent)]"
          >
            <td className="min-w-0 sm:min-w-44">
              <Link
                href={`/schedules/${encodeURIComponent(schedule.name)}`}
                className="font-medium hover:text-accent hover:underline"
              >
                {schedule.name}
              </Link>
              <div className="text-xs text-muted">{jobWords(schedule)}</div>
            </td>
            <td className="max-sm:col-span-2 max-sm:row-start-2 max-sm:pt-0">
              {schedule.description}
              <div className="font-mono text-xs text-muted">{expressionOf(schedule)}</div>
            </td>
            <td className="whitespace-nowrap max-sm:hidden">
              <Ago at={schedule.nextAt} zone={schedule.timezone} />
              <div className="text-xs text-muted">
                <Time
                  at={schedule.nextAt}
                  zone={schedule.timezone}
                  style={styleFor([schedule.nextAt])}
                  none=""
                />
              </div>
            </td>
            <td className="whitespace-nowrap max-sm:hidden">
              {schedule.lastStatus === null ? (
                <span className="text-muted">none yet</span>
              ) : (
                <Link href={`/runs/${schedule.lastRunId}`}>
                  <RunBadge status={schedule.lastStatus as RunStatus} />
                </Link>
              )}
              <div className="text-xs text-muted">
                <Ago at={schedule.lastRunAt} zone={schedule.timezone} none="" />
              </div>
            </td>
            <td className="max-sm:text-right">
              <ScheduleBadge status={schedule.status} />
              {schedule.pauseNote === null ? null : (
                <div
                  className="mt-0.5 text-xs text-muted max-sm:wrap-anywhere sm:max-w-48 sm:truncate"
                  title={schedule.pauseNote}
                >
                  {schedule.pauseNote}
                </div>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The job that it runs; a monitor runs none. */
export function jobWords({ job, monitor }: Pick<Schedule, "job" | "monitor">): string {
  return monitor ? "monitor of another system" : job;
}

export function expressionOf({
  cron,
  every,
  at,
  timezone,
}: Pick<Schedule, "cron" | "every" | "at" | "timezone">): string {
  if (cron !== null) return timezone === "UTC" ? cron : `${cron}  ${timezone}`;
  if (every !== null) return `every ${every}`;
  return at === null ? "" : "once";
}
