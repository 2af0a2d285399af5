// `holdfast schedules delete`: it fires no more; runs it has made go on.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { aboutSchedule, readName, requireSchedule } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { codeNote } from "../output/schedule-saved.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & AskerFlags;

export function schedulesDeleteCommand(call: Call): Command {
  const command = newCommand({
    name: "delete",
    summary: "Delete a schedule. Its history stays, and runs it has made go on.",
    examples: ["schedules delete nightly-report"],
  }).argument("<name>", "name of the schedule", readName);
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const schedule = await requireSchedule(holdfast, name);
      await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.delete(name, { by: askedBy(flags) }),
      );
      const note = codeNote(schedule, "deleted");
      await shell.say(`Schedule ${quoteShort(name)} deleted.${note === null ? "" : `\n${note}`}`);
      await shell.answer({ name, answer: "deleted" });
      return EXIT.done;
    });
  });
}
