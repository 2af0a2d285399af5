// `holdfast instances list`: who is there, what each holds, and who is quiet.

import type { Command } from "commander";
import type { Instance, InstanceListOptions } from "../../operations/overview.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { underPause } from "../output/pause.js";
import { newTable } from "../output/runs.js";
import { shortTime } from "../output/times.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import { type Colours, cut, plain } from "../shell.js";

type Flags = CommonFlags & WatchFlags & InstanceListOptions;

const NOTE_LENGTH_MAX = 40;

export function instancesListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List instances: live ones first, then the newest.",
    examples: ["instances list", "instances list --limit 5 --json"],
  })
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <cursor>", "go on where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { limit, cursor } = flags;
    return showLook({ flags, shell }, async (holdfast) => {
      const page = await holdfast.instances.list({
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      const more = page.nextCursor === null ? "" : `\nMore: add --cursor ${page.nextCursor}`;
      const text = `${listPage(page.instances, shell.colours)}${more}`;
      return underPause(holdfast, { text, document: page }, shell.colours);
    });
  });
}

function listPage(instances: readonly Instance[], colours: Colours): string {
  if (instances.length === 0) return "No instances.";
  const table = newTable(["id", "state", "app", "release", "seen", "holds", "note"], colours);
  for (const each of instances) {
    table.push([
      plain(each.id),
      stateText(each, colours),
      plain(each.app ?? ""),
      plain(each.release ?? ""),
      shortTime(each.seenAt),
      String(each.held),
      cut(plain(each.quietNote ?? ""), NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString().replace(/(?<! ) +$/gm, "");
}

function stateText({ isLive, retiredAt, quietAt }: Instance, colours: Colours): string {
  if (!isLive) return colours.dim(retiredAt === null ? "silent" : "stopped");
  return quietAt === null ? colours.green("live") : colours.yellow("quiet");
}
