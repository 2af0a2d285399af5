// `holdfast pause --all`: nothing fires and nothing is claimed until `resume --all`.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { Pause } from "../../operations/pause.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { requireAll } from "../flags/read.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../instance.js";
import { shortTime } from "../output/format.js";
import { type Colours, EXIT, plain } from "../shell.js";

type Flags = CommonFlags & ActorFlags & { readonly all?: boolean; readonly note?: string };

export function pauseCommand(call: Call): Command {
  const command = newCommand({
    name: "pause",
    summary: "Pause everything: nothing fires and nothing is claimed; what runs goes on.",
    examples: ['pause --all --note "moving the database"'],
  })
    .option("--all", "confirms that everything on this database is meant")
    .option("--note <text>", "the reason, shown to others");
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags) => {
    const { shell } = call;
    requireAll(flags.all, "schedules pause <name>, queues pause <name>");
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const { note } = flags;
      const paused = await holdfast.pause({
        by: actorName(flags),
        ...(note === undefined ? {} : { note }),
      });
      await shell.say(
        `Everything is paused ${pauseText(paused)}; runs that are running go on. To lift it: holdfast resume --all`,
      );
      await shell.printJson({ paused });
      return EXIT.done;
    });
  });
}

// `holdfast resume --all`: lifts the pause of everything, and it alone.

type ResumeFlags = CommonFlags & ActorFlags & { readonly all?: boolean };

export function resumeCommand(call: Call): Command {
  const command = newCommand({
    name: "resume",
    summary: "Lift the pause of everything; schedules and queues with their own pause stay paused.",
    examples: ["resume --all"],
  }).option("--all", "confirms that everything on this database is meant");
  return act<ResumeFlags>(withConfigOption(withByOption(command)), call, async (flags) => {
    const { shell } = call;
    requireAll(flags.all, "schedules resume <name>, queues resume <name>");
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const lifted = await holdfast.resume({ by: actorName(flags) });
      await shell.say(
        lifted
          ? `Everything is resumed; it was paused ${pauseText(lifted)}. Ticks of that time never run.`
          : "Nothing to lift: there is no pause of everything.",
      );
      await shell.printJson({ lifted });
      return EXIT.done;
    });
  });
}

// The pause of everything as lines for people, shown above the pages that it affects.

export function pauseText({ since, by, note }: Pause): string {
  const who = by === null ? "" : ` by ${plain(by)}`;
  const why = note === null ? "" : ` (${plain(note)})`;
  return `since ${shortTime(since)}${who}${why}`;
}

/** A line to go before a page; empty where nothing is paused. */
function bannerOf(paused: Pause | null, colours: Colours): string {
  if (!paused) return "";
  const text = `Everything is paused ${pauseText(paused)}: nothing fires and nothing is claimed.`;
  return `${colours.yellow(text)}\n`;
}

/** A page with the banner before it. */
export async function underPause(
  holdfast: Holdfast,
  { text, document }: { readonly text: string; readonly document: object },
  colours: Colours,
): Promise<{ readonly text: string; readonly document: object }> {
  const pausedAll = await holdfast.paused();
  return { text: `${bannerOf(pausedAll, colours)}${text}`, document: { ...document, pausedAll } };
}
