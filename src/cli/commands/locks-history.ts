// `holdfast locks history`: every grant within retention, and how it ended.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/names.js";
import { wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { lockHistoryPage } from "../output/locks.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & WatchFlags & { readonly limit?: number; readonly cursor?: string };

export function locksHistoryCommand(call: Call): Command {
  const command = newCommand({
    name: "history",
    summary: "List grants of one lock or of all, the newest first.",
    examples: ["locks history import --limit 20"],
  })
    .argument("[name]", "name of the lock (default: all of them)", readName)
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <fence>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, name) => {
    const { shell } = call;
    const { limit, cursor } = flags;
    return showLook({ flags, shell, needsCode: true }, async (holdfast) => {
      const page = await holdfast.locks.history({
        ...(name === undefined ? {} : { name }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      return { text: lockHistoryPage(page, shell.colours), document: page };
    });
  });
}
