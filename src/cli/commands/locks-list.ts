// `holdfast locks list`: who holds what, and until when.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { lockListPage } from "../lock-page.js";
import { refuseWatchedJson, repeat, type WatchFlags, withWatchOption } from "../repeat.js";
import { EXIT } from "../shell.js";
import { wholeNumber } from "../usage.js";

type Flags = CommonFlags & WatchFlags & { readonly limit?: number; readonly cursor?: string };

export function locksListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List locks that are held, by name.",
    examples: ["locks list", "locks list --watch 5s"],
  })
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <name>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { watch, limit, cursor } = flags;
    refuseWatchedJson(shell.isJson, watch);
    const options = {
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const show = async () => ({
        text: lockListPage(await holdfast.locks.list(options), shell.colours),
      });
      if (watch !== undefined) return repeat({ shell, everyMs: watch, show });
      const page = await holdfast.locks.list(options);
      await shell.say(lockListPage(page, shell.colours));
      await shell.answer(page);
      return EXIT.done;
    });
  });
}
