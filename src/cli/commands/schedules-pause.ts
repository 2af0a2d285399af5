// `holdfast schedules pause`: no tick fires until it is resumed.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { aboutSchedule, readName } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & AskerFlags & { readonly note?: string };

export function schedulesPauseCommand(call: Call): Command {
  const command = newCommand({
    name: "pause",
    summary: "Pause a schedule: its ticks are skipped until it is resumed, and not caught up.",
    examples: ['schedules pause nightly-report --note "the source is being moved"'],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--note <text>", "why, for whoever looks at it");
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const schedule = await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.pause(name, flags.note, { by: askedBy(flags) }),
      );
      const note = schedule.pauseNote === null ? "" : ` (${plain(schedule.pauseNote)})`;
      await shell.say(`Schedule ${quoteShort(name)} is paused${note}; runs it has made go on.`);
      await shell.answer(schedule);
      return EXIT.done;
    });
  });
}
