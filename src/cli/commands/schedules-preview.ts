// `holdfast schedules preview`: the next ticks of a schedule, as its definition has them.

import type { Command } from "commander";
import { systemClock } from "../../adapters/clock.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { readName, requireSchedule } from "../names.js";
import { pauseBanner } from "../pause-page.js";
import { previewText } from "../schedule-page.js";
import { EXIT, plain } from "../shell.js";
import { wholeNumber } from "../usage.js";

type Flags = CommonFlags & { readonly count: number };

export function schedulesPreviewCommand(call: Call): Command {
  const command = newCommand({
    name: "preview",
    summary: "Show the next ticks of a schedule, with notes where the clocks change.",
    examples: ["schedules preview nightly-report --count 30"],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--count <count>", "how many", wholeNumber({ min: 1, max: 1_000 }), 10);
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const schedule = await requireSchedule(holdfast, name);
      const preview = await holdfast.schedules.preview(name, flags.count);
      const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
      await shell.say(shell.colours.dim(plain(schedule.description)));
      if (schedule.status === "paused")
        await shell.say("It is paused: these fire if it is resumed.");
      const paused = await holdfast.paused();
      if (paused) await shell.say(pauseBanner(paused, shell.colours).trimEnd());
      await shell.say(previewText(preview, schedule, setting));
      await shell.answer(preview);
      return EXIT.done;
    });
  });
}
