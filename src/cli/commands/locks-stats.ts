// `holdfast locks stats`: how many grants there are in each state.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { lockStatsPage } from "../lock-page.js";
import { EXIT } from "../shell.js";

export function locksStatsCommand(call: Call): Command {
  const command = newCommand({
    name: "stats",
    summary: "Count locks by state: held now, released, expired, revoked.",
    examples: ["locks stats --json"],
  });
  return act<CommonFlags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const stats = await holdfast.locks.stats();
      await shell.say(lockStatsPage(stats, shell.colours));
      await shell.answer(stats);
      return EXIT.done;
    });
  });
}
