// `holdfast schedules versions`: every definition that a schedule had, who made it and what changed.

import type { Command } from "commander";
import type { ScheduleVersion } from "../../schedules/view.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, unknownSchedule } from "../flags/names.js";
import type { CommonFlags } from "../instance.js";
import { newTable } from "../output/runs.js";
import { shortTime } from "../output/times.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import { type Colours, cut, plain } from "../shell.js";

const WHEN_LENGTH_MAX = 50;
/** What every version has of its own. */
const OWN = ["version", "kind", "at", "by", "description"];

export function schedulesVersionsCommand(call: Call): Command {
  const command = newCommand({
    name: "versions",
    summary:
      "List the definitions that a schedule had, with who changed what; also of a deleted one.",
    examples: ["schedules versions nightly-report"],
  }).argument("<name>", "name of the schedule", readName);
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return showLook({ flags, shell }, async (holdfast) => {
        const versions = await holdfast.schedules.versions(name);
        if (versions.length === 0) throw await unknownSchedule({ holdfast, name });
        return { text: versionsPage(versions, shell.colours), document: { versions } };
      });
    },
  );
}

function versionsPage(versions: readonly ScheduleVersion[], colours: Colours): string {
  const table = newTable(["version", "kind", "at", "by", "when", "changed"], colours);
  for (const [index, each] of versions.entries()) {
    table.push([
      String(each.version),
      each.kind,
      shortTime(each.at),
      plain(each.by ?? ""),
      cut(plain(each.description), WHEN_LENGTH_MAX),
      changedMembers(versions[index - 1], each).join(", "),
    ]);
  }
  return table.toString().replace(/(?<! ) +$/gm, "");
}

function changedMembers(before: ScheduleVersion | undefined, after: ScheduleVersion): string[] {
  if (!before) return [];
  const members = Object.keys(after) as (keyof ScheduleVersion)[];
  return members.filter(
    (member) =>
      !OWN.includes(member) && JSON.stringify(before[member]) !== JSON.stringify(after[member]),
  );
}
