// `holdfast schedules show`: everything about one schedule.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { Preview } from "../../schedules/preview.js";
import type { Schedule } from "../../schedules/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, requireSchedule } from "../flags/names.js";
import type { CommonFlags } from "../instance.js";
import { underPause } from "../output/pause.js";
import { type ScheduleDetails, schedulePage } from "../output/schedules.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & WatchFlags;

const NEXT_SHOWN = 5;
const LAST_SHOWN = 10;

export function schedulesShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one schedule: its rules, its next ticks, and what became of the last ones.",
    examples: ["schedules show nightly-report", "schedules show nightly-report --watch 5s"],
  }).argument("<name>", "name of the schedule", readName);
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, name = "") => {
    const { shell } = call;
    return showLook({ flags, shell }, async (holdfast) => {
      const details = await look(holdfast, name);
      const { schedule, ...rest } = details;
      const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
      const shown = { text: schedulePage(details, setting), document: { ...schedule, ...rest } };
      return underPause(holdfast, shown, shell.colours);
    });
  });
}

async function look(holdfast: Holdfast, name: string): Promise<ScheduleDetails> {
  const schedule = await requireSchedule(holdfast, name);
  const { schedules } = holdfast;
  const [preview, { ticks }, versions, backfills] = await Promise.all([
    previewOf(holdfast, schedule),
    schedules.ticks(name, { limit: LAST_SHOWN }),
    schedules.versions(name),
    schedules.backfills(name),
  ]);
  const backfill = backfills.find(({ status }) => status === "running") ?? null;
  return { schedule, preview, ticks, versionCount: versions.length, backfill };
}

/** A broken schedule may have no ticks that anybody can compute; everything else of it is shown. */
async function previewOf(holdfast: Holdfast, schedule: Schedule): Promise<Preview | null> {
  try {
    return await holdfast.schedules.preview(schedule.name, NEXT_SHOWN);
  } catch (error) {
    if (schedule.brokenAt === null) throw error;
    return null;
  }
}
