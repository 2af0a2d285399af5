// `holdfast locks`: the group of commands for named locks.

import type { Command } from "commander";
import type { Lock, LockGrantView } from "../../locks/locks.js";
import type { LockState, LockStats } from "../../locks/rules/lock.js";
import { formatDuration } from "../../shared/duration.js";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, wholeNumber } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { factLines, newTable, shortTime } from "../output/format.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";

const COMMANDS = [locksListCommand, locksStatsCommand, locksHistoryCommand, locksReleaseCommand];

export function locksCommand(call: Call): Command {
  const command = newCommand({
    name: "locks",
    summary: "List named locks, and take one from its holder.",
    examples: ["locks list"],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}

// `holdfast locks list`: held locks, their holders, and when each lease ends.

type ListFlags = CommonFlags & WatchFlags & { readonly limit?: number; readonly cursor?: string };

function locksListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List locks that are held, by name.",
    examples: ["locks list", "locks list --watch 5s"],
  })
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <name>", "continue where an earlier list ended");
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { limit, cursor } = flags;
    const options = {
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return runReadCommand({ flags, shell, needsCode: true }, async ({ locks }) => {
      const page = await locks.list(options);
      const text = lockListPage(page, shell.colours);
      return { text: page.locks.length === 0 ? text + elsewhere(flags) : text, document: page };
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
        const text = lockStatsPage(stats, shell.colours);
        return { text: isUnused(stats) ? text + elsewhere(flags) : text, document: stats };
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
    summary: "List grants of one lock or of all, newest first.",
    examples: ["locks history import --limit 20"],
  })
    .argument("[name]", "name of the lock (default: all of them)", readName)
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <fence>", "continue where an earlier list ended");
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

// `holdfast locks release`: takes a lock from its holder.

type ReleaseFlags = CommonFlags & { readonly note?: string };

function locksReleaseCommand(call: Call): Command {
  const command = newCommand({
    name: "release",
    summary: "Take a lock from its holder, who notices at the next renewal of its lease.",
    examples: ['locks release import --note "stuck since the deploy"'],
  })
    .argument("<name>", "name of the lock", readName)
    .option("--note <text>", "the reason, stored in its history");
  return act<ReleaseFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance(
      { flags, purpose: "existing", needsCode: true, shell },
      async (holdfast) => {
        const result = await holdfast.locks.release(name, flags.note);
        await shell.say(
          result.released
            ? `Lock ${quoteShort(name)} was taken from ${plain(result.holder)} (fence ${result.fence}).`
            : `Nobody holds lock ${quoteShort(name)}.`,
        );
        await shell.printJson({ name, ...result });
        return result.released ? EXIT.done : EXIT.no;
      },
    );
  });
}

const NOTE_LENGTH_MAX = 40;

function isUnused(stats: LockStats): boolean {
  return Object.values(stats).every((count) => count === 0);
}

/** A database knows nothing of locks that a provider keeps; only the configuration file names the provider. */
function elsewhere({ database, config }: CommonFlags): string {
  if (database === undefined || config !== undefined) return "";
  return "\nThis is what the database has. Locks in Redis or etcd are shown with --config <file>, the file that says `locks: …`.";
}

const COLOUR_OF_STATE: Readonly<Record<LockState, "green" | "yellow" | "red" | "cyan">> = {
  acquired: "yellow",
  released: "green",
  expired: "red",
  revoked: "cyan",
};

function lockListPage(
  page: { readonly locks: readonly Lock[]; readonly nextCursor: string | null },
  colours: Colours,
): string {
  if (page.locks.length === 0) return "No lock is held.";
  const table = newTable(["name", "holder", "fence", "acquired", "until", "waiting"], colours);
  for (const { name, holder, fence, acquiredAt, until, waiting } of page.locks) {
    table.push([
      plain(name),
      plain(holder),
      String(fence),
      shortTime(acquiredAt),
      shortTime(until),
      String(waiting),
    ]);
  }
  return `${table.toString()}${more(page.nextCursor)}`;
}

function lockHistoryPage(
  page: { readonly grants: readonly LockGrantView[]; readonly nextCursor: string | null },
  colours: Colours,
): string {
  if (page.grants.length === 0) return "No lock was held within retention.";
  const table = newTable(["name", "fence", "state", "holder", "acquired", "held", "note"], colours);
  for (const { name, fence, state, holder, acquiredAt, heldMs, note } of page.grants) {
    table.push([
      plain(name),
      String(fence),
      colours[COLOUR_OF_STATE[state]](state),
      plain(holder),
      shortTime(acquiredAt),
      heldMs === null ? "" : formatDuration(heldMs),
      cut(plain(note ?? ""), NOTE_LENGTH_MAX),
    ]);
  }
  return `${table.toString().replace(/(?<! ) +$/gm, "")}${more(page.nextCursor)}`;
}

function lockStatsPage(stats: LockStats, colours: Colours): string {
  return factLines(
    [
      ["acquired", `${stats.acquired} held now`],
      ["waiting", `${stats.waiting} calls waiting`],
      ["released", String(stats.released)],
      ["expired", `${stats.expired} never released by their holder`],
      ["revoked", `${stats.revoked} taken by an operator`],
    ],
    colours,
  ).join("\n");
}

function more(nextCursor: string | null): string {
  return nextCursor === null ? "" : `\nMore: add --cursor '${plain(nextCursor)}'`;
}
