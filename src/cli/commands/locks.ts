// `holdfast locks`: the group of commands for named locks.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/read.js";
import { wholeNumber } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { lockHistoryPage, lockListPage, lockStatsPage } from "../output/locks.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { EXIT, plain } from "../shell.js";

const COMMANDS = [locksListCommand, locksStatsCommand, locksHistoryCommand, locksReleaseCommand];

export function locksCommand(call: Call): Command {
  const command = newCommand({
    name: "locks",
    summary: "Look at named locks, and take one from its holder.",
    examples: ["locks list"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}

// `holdfast locks list`: who holds what, and until when.

type ListFlags = CommonFlags & WatchFlags & { readonly limit?: number; readonly cursor?: string };

function locksListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List locks that are held, by name.",
    examples: ["locks list", "locks list --watch 5s"],
  })
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <name>", "go on where an earlier list ended");
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { limit, cursor } = flags;
    const options = {
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return runReadCommand({ flags, shell, needsCode: true }, async ({ locks }) => {
      const page = await locks.list(options);
      return { text: lockListPage(page, shell.colours), document: page };
    });
  });
}

// `holdfast locks stats`: how many grants there are in each state.

function locksStatsCommand(call: Call): Command {
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
      return runReadCommand({ flags, shell, needsCode: true }, async (holdfast) => {
        const stats = await holdfast.locks.stats();
        return { text: lockStatsPage(stats, shell.colours), document: stats };
      });
    },
  );
}

// `holdfast locks history`: every grant within retention, and how it ended.

type HistoryFlags = CommonFlags &
  WatchFlags & { readonly limit?: number; readonly cursor?: string };

function locksHistoryCommand(call: Call): Command {
  const command = newCommand({
    name: "history",
    summary: "List grants of one lock or of all, the newest first.",
    examples: ["locks history import --limit 20"],
  })
    .argument("[name]", "name of the lock (default: all of them)", readName)
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <fence>", "go on where an earlier list ended");
  return act<HistoryFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, name) => {
      const { shell } = call;
      const { limit, cursor } = flags;
      return runReadCommand({ flags, shell, needsCode: true }, async (holdfast) => {
        const page = await holdfast.locks.history({
          ...(name === undefined ? {} : { name }),
          ...(limit === undefined ? {} : { limit }),
          ...(cursor === undefined ? {} : { cursor }),
        });
        return { text: lockHistoryPage(page, shell.colours), document: page };
      });
    },
  );
}

// `holdfast locks release`: takes a lock from whoever holds it.

type ReleaseFlags = CommonFlags & { readonly note?: string };

function locksReleaseCommand(call: Call): Command {
  const command = newCommand({
    name: "release",
    summary: "Take a lock from its holder, who hears of it when it renews its lease.",
    examples: ['locks release import --note "stuck since the deploy"'],
  })
    .argument("<name>", "name of the lock", readName)
    .option("--note <text>", "why, kept in its history");
  return act<ReleaseFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance(
      { flags, purpose: "existing", needsCode: true, shell },
      async (holdfast) => {
        const answer = await holdfast.locks.release(name, flags.note);
        await shell.say(
          answer.released
            ? `Lock ${quoteShort(name)} was taken from ${plain(answer.holder)} (fence ${answer.fence}).`
            : `Nobody holds lock ${quoteShort(name)}.`,
        );
        await shell.printJson({ name, ...answer });
        return answer.released ? EXIT.done : EXIT.no;
      },
    );
  });
}
