// What can be done with a schedule.

import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/call.js";
import type { AnswerOf, Schedule } from "../api/wire.js";
import { ScheduleDialog } from "../schedules/edit-dialog.js";
import { ActionButton } from "../shared/action.js";
import { Button } from "../shared/button.js";
import { useMay } from "../shell/me.js";
import { BackfillDialog } from "./backfill-dialog.js";
import { TriggerDialog } from "./trigger-dialog.js";

export function ScheduleActions({ schedule }: { readonly schedule: Schedule }) {
  const mayTrigger = useMay("trigger");
  const mayChange = useMay("admin");
  const [open, setOpen] = useState<"trigger" | "edit" | "clone" | "backfill" | null>(null);
  const [, navigate] = useLocation();
  const params = { name: schedule.name };
  const close = () => setOpen(null);
  const go = (name: string) => navigate(`/schedules/${encodeURIComponent(name)}`);
  return (
    <>
      {mayTrigger && schedule.monitor ? (
        <ActionButton
          label="Check in"
          kind="main"
          confirm={{
            title: `Check in for ${schedule.name}?`,
            summary:
              "As if what it watches had said that it is done: the tick that waits is fired, and an open alert is resolved.",
            verb: "Check in",
          }}
          act={async () => checkedInWords(await ping(schedule.name))}
        />
      ) : null}
      {mayTrigger && !schedule.monitor ? (
        <>
          <Button kind="main" onClick={() => setOpen("trigger")}>
            Trigger…
          </Button>
          <ActionButton
            label="Test"
            title="A run of mode test: like any other, but it says so and does not count"
            act={async () =>
              triggeredWords(
                await call("trigger", "POST /api/schedules/{name}/trigger", {
                  params,
                  body: { mode: "test" },
                }),
              )
            }
          />
        </>
      ) : null}
      {mayChange ? (
        <>
          {schedule.status === "paused" || schedule.status === "broken" ? (
            <ActionButton
              label="Resume"
              act={async () => {
                await call("resumeSchedule", "POST /api/schedules/{name}/resume", {
                  params,
                  body: {},
                });
                return "It fires again, from now on.";
              }}
            />
          ) : (
            <ActionButton
              label="Pause"
              confirm={{
                title: `Pause ${schedule.name}?`,
                summary:
                  "It fires nothing until it is resumed; its ticks are recorded as skipped and are not caught up. Runs that it has made go on.",
                verb: "Pause it",
                note: "Why? It is shown to everybody who looks.",
              }}
              act={async (note) => {
                await call("pauseSchedule", "POST /api/schedules/{name}/pause", {
                  params,
                  body: note === undefined ? {} : { note },
                });
                return "Paused.";
              }}
            />
          )}
          <Button onClick={() => setOpen("edit")}>Edit</Button>
          {schedule.monitor ? null : <Button onClick={() => setOpen("backfill")}>Backfill</Button>}
          <Button onClick={() => setOpen("clone")}>Clone</Button>
          <ActionButton
            label="Delete"
            kind="danger"
            confirm={{
              title: `Delete ${schedule.name}?`,
              summary: `It fires no more. Its runs and its ledger stay, and a schedule that is made again under this name never repeats a tick.${schedule.source === "code" ? " It is declared in code: the next start of that code makes it again." : ""}`,
              verb: "Delete it",
              isDangerous: true,
            }}
            act={async () => {
              await call("deleteSchedule", "DELETE /api/schedules/{name}", { params });
              navigate("/schedules");
              return `Deleted ${schedule.name}.`;
            }}
          />
        </>
      ) : null}
      {open === "trigger" ? <TriggerDialog schedule={schedule} onClose={close} /> : null}
      {open === "backfill" ? <BackfillDialog schedule={schedule} onClose={close} /> : null}
      {open === "edit" ? (
        <ScheduleDialog
          title={`Edit ${schedule.name}`}
          from={schedule}
          isEdit
          onClose={close}
          onSaved={close}
        />
      ) : null}
      {open === "clone" ? (
        <ScheduleDialog
          title={`Clone ${schedule.name}`}
          from={schedule}
          onClose={close}
          onSaved={go}
        />
      ) : null}
    </>
  );
}

function ping(monitor: string): Promise<AnswerOf<"ping">> {
  return call("ping", "POST /api/ping/{monitor}", { params: { monitor }, body: {} });
}

function checkedInWords({ tick, paused, repeated }: AnswerOf<"ping">): string {
  if (paused) return "Nothing is expected while it is paused, and nothing was kept.";
  if (repeated) return "It had checked in already.";
  return tick === null ? "Checked in, after its tick was judged." : "Checked in.";
}

export function triggeredWords(answer: AnswerOf<"trigger">): string {
  if ("runId" in answer) return "A run was made.";
  const words: Readonly<Record<string, string>> = {
    locked: "Nothing was made: a run of this schedule is not over yet.",
    paused: "Nothing was made: it is paused.",
    not_due: "Nothing was made: no tick is due.",
    schedule_read_error: "Nothing was made: the database cannot be read.",
  };
  const held = answer.holder === null ? "" : ` It is held by ${answer.holder}.`;
  return `${words[answer.reason] ?? answer.reason}${held}`;
}
