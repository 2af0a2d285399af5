// `holdfast runs show`: everything about one run, with its attempts and its slowest items.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { RunItem } from "../../runs/item-view.js";
import type { RunAttempt, RunDetails } from "../../runs/run-view.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readRunId } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { itemTable } from "../output/items.js";
import { runPage } from "../output/runs.js";
import { noSuchRun, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import type { Colours } from "../shell.js";

type Flags = CommonFlags & WatchFlags;
type Shown = {
  readonly run: RunDetails;
  readonly attempts: readonly RunAttempt[];
  readonly slowest: readonly RunItem[];
};

const SLOWEST_MAX = 5;

export function runsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one run with its attempts.",
    examples: [
      "runs show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --watch 1s",
    ],
  }).argument("<run>", "id of the run", readRunId);
  const watched = withWatchOption(command, "show it until it has ended, for example 1s");
  return act<Flags>(withConfigOption(watched), call, async (flags, id = "") => {
    const { shell } = call;
    return showLook({ flags, shell }, async (holdfast) => {
      const found = await look(holdfast, id);
      if (!found) return noSuchRun(shell, id);
      return {
        text: pageOf(found, shell.colours),
        document: { ...found.run, attempts: found.attempts },
        isLast: found.run.finishedAt !== null,
      };
    });
  });
}

async function look(holdfast: Holdfast, id: string): Promise<Shown | null> {
  const run = await holdfast.runs.get(id);
  if (!run) return null;
  const slowest = run.items.total === 0 ? [] : await slowestOf(holdfast, id);
  return { run, attempts: await holdfast.runs.attempts(id), slowest };
}

async function slowestOf(holdfast: Holdfast, id: string): Promise<readonly RunItem[]> {
  return (await holdfast.runs.items(id, { sort: "slowest", limit: SLOWEST_MAX })).items;
}

function pageOf({ run, attempts, slowest }: Shown, colours: Colours): string {
  const page = runPage(run, attempts, colours);
  if (slowest.length === 0) return page;
  return `${page}\n\n${colours.dim("slowest items")}\n${itemTable(slowest, colours)}`;
}
