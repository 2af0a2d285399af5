// `holdfast instances`: the group of commands that list instances, and make one quiet or wake it;
// by itself it lists them.

import type { Command } from "commander";
import type { Instance, InstanceListOptions } from "../../operations/instances.js";
import { act, type Call, listedByName, newCommand, withConfigOption } from "../command.js";
import { wholeNumber } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { newTable, shortTime } from "../output/format.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";
import { underPause } from "./pause.js";

export function instancesCommand(call: Call): Command {
  const command = newCommand({
    name: "instances",
    summary: "List instances, make one quiet, wake it.",
    examples: ["instances", "instances --limit 5 --json"],
  });
  listedByName(command, instancesListCommand(call));
  for (const add of [instancesQuietCommand, instancesWakeCommand]) command.addCommand(add(call));
  return command;
}

// `holdfast instances list`: instances, how many runs each holds, and which are quiet.

type ListFlags = CommonFlags & WatchFlags & InstanceListOptions;

const NOTE_LENGTH_MAX = 40;

function instancesListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List instances: live ones first, then the newest.",
    examples: ["instances list", "instances list --limit 5 --json"],
  })
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <cursor>", "continue where an earlier list ended");
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { limit, cursor } = flags;
    return runReadCommand({ flags, shell }, async (holdfast) => {
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

// `holdfast instances quiet`: one instance claims and fires nothing while the others go on.

type QuietFlags = CommonFlags & { readonly note?: string };

function instancesQuietCommand(call: Call): Command {
  const command = newCommand({
    name: "quiet",
    summary: "Make an instance quiet: it claims and fires nothing new until it is woken.",
    examples: ['instances quiet web-1:4711:0199c1f2 --note "looking at its memory"'],
  })
    .argument("<id>", "id of the instance, or a part of it as `top` shows it")
    .option("--note <text>", "the reason, shown to others");
  return act<QuietFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      await holdfast.instances.quiet(id, flags.note);
      await shell.say(
        `Instance ${plain(id)} becomes quiet with its next poll; its running runs go on.`,
      );
      await shell.printJson({ id, quiet: true });
      return EXIT.done;
    });
  });
}

// `holdfast instances wake`: a quiet instance claims and fires again.

type WakeFlags = CommonFlags;

function instancesWakeCommand(call: Call): Command {
  const command = newCommand({
    name: "wake",
    summary: "Wake a quiet instance: it claims and fires again.",
    examples: ["instances wake web-1:4711:0199c1f2"],
  }).argument("<id>", "id of the instance, or a part of it as `top` shows it");
  return act<WakeFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      await holdfast.instances.wake(id);
      await shell.say(`Instance ${plain(id)} claims and fires again with its next poll.`);
      await shell.printJson({ id, quiet: false });
      return EXIT.done;
    });
  });
}
