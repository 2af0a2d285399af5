// The buttons for a schedule.

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
              "This counts as a check-in of the watched system: the waiting tick fires, and an open alert is resolved.",
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
            title="A run of mode test: like any other, but marked as a test and not counted"
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
                  "It fires nothing until it is resumed; its ticks are recorded as skipped and never run later. Its live runs go on.",
                verb: "Pause it",
                note: "Why? Everybody can see this note.",
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
              summary: `It stops firing. Its runs and its ledger stay, and a new schedule with this name never repeats a tick.${schedule.source === "code" ? " It is declared in code: the next start of that code makes it again." : ""}`,
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
  if (paused) return "The monitor is paused; the check-in was not recorded.";
  if (repeated) return "It had checked in already.";
  return tick === null ? "Checked in late: its tick was already recorded." : "Checked in.";
}

export function triggeredWords(answer: AnswerOf<"trigger">): string {
  if ("runId" in answer) return "A run was made.";
  const words: Readonly<Record<string, string>> = {
    locked: "No run was made: an earlier run of this schedule is live.",
    paused: "No run was made: the schedule is paused.",
    not_due: "No run was made: no tick is due.",
    schedule_read_error: "No run was made: the database cannot be read.",
  };
  const held = answer.holder === null ? "" : ` It is held by ${answer.holder}.`;
  return `${words[answer.reason] ?? answer.reason}${held}`;
}
