// `holdfast schedules resume`: ends a pause, or has a broken schedule evaluated again.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { aboutSchedule, readName } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { nextText } from "../output/schedule-saved.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & AskerFlags;

export function schedulesResumeCommand(call: Call): Command {
  const command = newCommand({
    name: "resume",
    summary: "Resume a paused schedule, or have a broken one evaluated again.",
    examples: ["schedules resume nightly-report"],
  }).argument("<name>", "name of the schedule", readName);
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const schedule = await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.resume(name, { by: askedBy(flags) }),
      );
      const { status } = schedule;
      await shell.say(`Schedule ${quoteShort(name)} is ${status}. ${nextText(schedule)}`);
      await shell.answer(schedule);
      return EXIT.done;
    });
  });
}
