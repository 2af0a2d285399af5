// `holdfast runs show`: everything about one run, with its attempts.

import type { Command } from "commander";
import type { Holdfast } from "../../engine/holdfast.js";
import type { RunAttempt, RunDetails } from "../../engine/runs.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { runPage } from "../page.js";
import { refuseWatchedJson, repeat, type WatchFlags } from "../repeat.js";
import { EXIT } from "../shell.js";
import { readDurationFlag, readRunId } from "../usage.js";

type Flags = CommonFlags & WatchFlags;
type Shown = { readonly run: RunDetails; readonly attempts: readonly RunAttempt[] };

export function runsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one run with its attempts.",
    examples: [
      "runs show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --watch 1s",
    ],
  })
    .argument("<run>", "id of the run", readRunId)
    .option("--watch <interval>", "show it until it has ended, for example 1s", readDurationFlag);
  return act<Flags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    const { watch } = flags;
    refuseWatchedJson(shell.isJson, watch);
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const found = await look(holdfast, id);
      if (!found) {
        shell.complain(`There is no run ${id}: it never existed, or it was pruned.`);
        await shell.answer(null);
        return EXIT.no;
      }
      if (watch !== undefined) {
        const show = async () => {
          const { run, attempts } = (await look(holdfast, id)) ?? found;
          return { text: runPage(run, attempts, shell.colours), isLast: run.finishedAt !== null };
        };
        return repeat({ shell, everyMs: watch, show });
      }
      await shell.say(runPage(found.run, found.attempts, shell.colours));
      await shell.answer({ ...found.run, attempts: found.attempts });
      return EXIT.done;
    });
  });
}

async function look(holdfast: Holdfast, id: string): Promise<Shown | null> {
  const run = await holdfast.runs.get(id);
  return run && { run, attempts: await holdfast.runs.attempts(id) };
}
