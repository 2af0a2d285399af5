// One schedule: what it does in words, what it did, what it will do, and why. Any moment can be asked
// about: it is in the address, so that the answer can be sent to somebody.

import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { call } from "../api/call.js";
import { expressionOf } from "../schedules/schedules.js";
import { Code, PageHead, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { ScheduleBadge } from "../shared/status.js";
import { Ago } from "../shared/time.js";
import { ScheduleActions } from "./actions.js";
import { Backfills } from "./backfills.js";
import { Durations } from "./durations.js";
import { Explain } from "./explain.js";
import { HistoryStrip } from "./history-strip.js";
import { Ledger } from "./ledger.js";
import { Month } from "./month.js";
import { NextTen } from "./next-ten.js";
import { Policies } from "./policies.js";
import { Versions } from "./versions.js";

export function SchedulePage({ name }: { readonly name: string }) {
  const [search, setSearch] = useSearchParams();
  const at = search.get("at");
  const ask = (moment: string | null) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        if (moment === null) next.delete("at");
        else next.set("at", moment);
        return next;
      },
      { replace: true },
    );
  const query = useQuery({
    queryKey: ["schedule", name],
    queryFn: ({ signal }) =>
      call("getSchedule", "GET /api/schedules/{name}", { params: { name }, signal }),
  });
  const schedule = query.data;
  const back = (
    <Link href="/schedules" className="link">
      Schedules
    </Link>
  );
  if (schedule === undefined)
    return (
      <>
        <PageHead title={name} before={back} />
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
        title={schedule.name}
        before={back}
        after={<ScheduleBadge status={schedule.status} />}
        lead={
          <>
            <span className="text-ink">{schedule.description}</span>
            <span className="mt-1 flex flex-wrap items-center gap-x-2 text-xs">
              <Code>{expressionOf(schedule)}</Code>
              <span>
                {schedule.monitor ? "monitor of another system:" : "runs"}{" "}
                <Link href={`/runs?schedule=${encodeURIComponent(schedule.name)}`} className="link">
                  {schedule.monitor ? "its check-ins" : schedule.job}
                </Link>
              </span>
              {schedule.beganAt === null ? null : (
                <span>
                  · began <Ago at={schedule.beganAt} zone={schedule.timezone} />
                </span>
              )}
              {schedule.nextAt === null ? null : (
                <span>
                  · next <Ago at={schedule.nextAt} zone={schedule.timezone} />
                </span>
              )}
            </span>
          </>
        }
        actions={<ScheduleActions schedule={schedule} />}
      />
      {query.error ? <RefusalNote error={query.error} /> : null}
      <div className="grid gap-4">
        {schedule.status === "paused" ? (
          <p className="rounded-lg border border-skipped/50 bg-skipped/14 px-4 py-2.5">
            Paused <Ago at={schedule.pausedAt} />
            {schedule.pausedBy === null ? "" : ` by ${schedule.pausedBy}`}
            {schedule.pauseNote === null ? "." : `: ${schedule.pauseNote}`} Its ticks are recorded
            as skipped and are not caught up.
          </p>
        ) : null}
        {schedule.status === "broken" ? (
          <div role="alert" className="rounded-lg border border-failed/50 bg-failed/8 px-4 py-2.5">
            <p className="font-medium text-failed-ink">It cannot be evaluated and fires nothing.</p>
            <p>{schedule.brokenError}</p>
          </div>
        ) : null}
        <HistoryStrip name={schedule.name} ask={ask} at={at} />
        <Explain schedule={schedule} at={at} ask={ask} />
        <div className="grid gap-4 xl:grid-cols-3">
          <NextTen schedule={schedule} ask={ask} />
          <Month schedule={schedule} />
          <Durations schedule={schedule} />
        </div>
        <div className="grid gap-4 lg:grid-cols-2">
          <Ledger schedule={schedule} ask={ask} />
          <div className="grid content-start gap-4">
            <Policies schedule={schedule} />
            <Backfills schedule={schedule} />
            <Versions schedule={schedule} />
          </div>
        </div>
      </div>
    </>
  );
}
