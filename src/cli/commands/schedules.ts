// `holdfast schedules`: the group of commands that look at schedules, change them and act on them.

import type { Command } from "commander";
import { type Call, newCommand } from "../command.js";
import { schedulesApplyCommand } from "./schedules-apply.js";
import { schedulesBackfillCommand } from "./schedules-backfill.js";
import { schedulesCreateCommand } from "./schedules-create.js";
import { schedulesDeleteCommand } from "./schedules-delete.js";
import { schedulesExplainCommand } from "./schedules-explain.js";
import { schedulesListCommand } from "./schedules-list.js";
import { schedulesPauseCommand } from "./schedules-pause.js";
import { schedulesPingCommand } from "./schedules-ping.js";
import { schedulesPlanCommand } from "./schedules-plan.js";
import { schedulesPreviewCommand } from "./schedules-preview.js";
import { schedulesResumeCommand } from "./schedules-resume.js";
import { schedulesShowCommand } from "./schedules-show.js";
import { schedulesTestCommand } from "./schedules-test.js";
import { schedulesTicksCommand } from "./schedules-ticks.js";
import { schedulesTriggerCommand } from "./schedules-trigger.js";
import { schedulesUpdateCommand } from "./schedules-update.js";
import { schedulesVersionsCommand } from "./schedules-versions.js";

const COMMANDS = [
  schedulesListCommand,
  schedulesShowCommand,
  schedulesCreateCommand,
  schedulesUpdateCommand,
  schedulesDeleteCommand,
  schedulesPauseCommand,
  schedulesResumeCommand,
  schedulesTriggerCommand,
  schedulesTestCommand,
  schedulesPingCommand,
  schedulesPreviewCommand,
  schedulesExplainCommand,
  schedulesTicksCommand,
  schedulesBackfillCommand,
  schedulesVersionsCommand,
  schedulesPlanCommand,
  schedulesApplyCommand,
];

export function schedulesCommand(call: Call): Command {
  const command = newCommand({
    name: "schedules",
    summary: "Look at schedules, change them, run them, and ask why they did or did not fire.",
    examples: [
      "schedules list",
      'schedules create nightly-report --job report --cron "0 2 * * *" --tz Europe/Paris',
      "schedules explain nightly-report 2026-03-29T02:00:00+01:00",
    ],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}
