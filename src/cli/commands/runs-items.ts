// `holdfast runs items`: the items of one run, by key or the slowest first.

import type { Command } from "commander";
import type { ItemListOptions } from "../../runs/item-view.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readRunId, wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { itemListPage } from "../output/items.js";
import { noSuchRun, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags &
  WatchFlags &
  Omit<ItemListOptions, "sort"> & { readonly slowest?: boolean };

export function runsItemsCommand(call: Call): Command {
  const command = newCommand({
    name: "items",
    summary: "List the items of a run.",
    examples: [
      "runs items 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --outcome failed",
      "runs items 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --slowest --limit 10",
    ],
  })
    .argument("<run>", "id of the run", readRunId)
    .option("--outcome <outcome>", "only items that turned out so, for example failed")
    .option("--slowest", "those that took longest first (default: by key)")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <cursor>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, id = "") => {
    const { shell } = call;
    const { outcome, slowest, limit, cursor } = flags;
    return showLook({ flags, shell }, async ({ runs }) => {
      const run = await runs.get(id);
      if (!run) return noSuchRun(shell, id);
      const page = await runs.items(id, {
        ...(outcome === undefined ? {} : { outcome }),
        ...(slowest ? { sort: "slowest" } : {}),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      return { text: itemListPage(page, shell.colours), document: page };
    });
  });
}
