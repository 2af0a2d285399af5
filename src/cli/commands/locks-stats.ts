// `holdfast locks stats`: how many grants there are in each state.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import type { CommonFlags } from "../instance.js";
import { lockStatsPage } from "../output/locks.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

export function locksStatsCommand(call: Call): Command {
  const command = newCommand({
    name: "stats",
    summary: "Count locks by state: held now, released, expired, revoked.",
    examples: ["locks stats --json"],
  });
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags) => {
      const { shell } = call;
      return showLook({ flags, shell, needsCode: true }, async (holdfast) => {
        const stats = await holdfast.locks.stats();
        return { text: lockStatsPage(stats, shell.colours), document: stats };
      });
    },
  );
}
