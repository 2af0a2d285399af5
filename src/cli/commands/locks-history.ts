// `holdfast locks history`: every grant within retention, and how it ended.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { lockHistoryPage } from "../lock-page.js";
import { readName } from "../names.js";
import { EXIT } from "../shell.js";
import { wholeNumber } from "../usage.js";

type Flags = CommonFlags & { readonly limit?: number; readonly cursor?: string };

export function locksHistoryCommand(call: Call): Command {
  const command = newCommand({
    name: "history",
    summary: "List grants of one lock or of all, the newest first.",
    examples: ["locks history import --limit 20"],
  })
    .argument("[name]", "name of the lock (default: all of them)", readName)
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <fence>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(command), call, async (flags, name) => {
    const { shell } = call;
    const { limit, cursor } = flags;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const page = await holdfast.locks.history({
        ...(name === undefined ? {} : { name }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      await shell.say(lockHistoryPage(page, shell.colours));
      await shell.answer(page);
      return EXIT.done;
    });
  });
}
