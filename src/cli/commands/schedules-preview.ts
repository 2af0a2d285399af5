// `holdfast schedules preview`: the next ticks of a schedule, as its definition has them.

import type { Command } from "commander";
import { systemClock } from "../../shared/adapters/clock.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, requireSchedule } from "../flags/names.js";
import { wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { underPause } from "../output/pause.js";
import { previewText } from "../output/schedules.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import { plain } from "../shell.js";

type Flags = CommonFlags & WatchFlags & { readonly count: number };

export function schedulesPreviewCommand(call: Call): Command {
  const command = newCommand({
    name: "preview",
    summary: "Show the next ticks of a schedule, with notes where the clocks change.",
    examples: ["schedules preview nightly-report --count 30"],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--count <count>", "how many", wholeNumber({ min: 1, max: 1_000 }), 10);
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, name = "") => {
    const { shell } = call;
    return showLook({ flags, shell }, async (holdfast) => {
      const schedule = await requireSchedule(holdfast, name);
      const preview = await holdfast.schedules.preview(name, flags.count);
      const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
      const lines = [
        shell.colours.dim(plain(schedule.description)),
        ...(schedule.status === "paused" ? ["It is paused: these fire if it is resumed."] : []),
        previewText(preview, schedule, setting),
      ];
      const { text } = await underPause(
        holdfast,
        { text: lines.join("\n"), document: {} },
        shell.colours,
      );
      return { text, document: preview };
    });
  });
}
