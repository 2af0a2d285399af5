// `holdfast locks list`: who holds what, and until when.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { lockListPage } from "../output/locks.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

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
    const { limit, cursor } = flags;
    const options = {
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return showLook({ flags, shell, needsCode: true }, async ({ locks }) => {
      const page = await locks.list(options);
      return { text: lockListPage(page, shell.colours), document: page };
    });
  });
}
