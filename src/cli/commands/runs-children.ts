// `holdfast runs children`: what a run fanned out into: its batches with their counts, and the runs
// that it made.

import type { Command } from "commander";
import { RUN_STATUSES } from "../../runs/rules/run.js";
import type { ChildListOptions } from "../../runs/run-children.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { oneOf, readCursor, readRunId, wholeNumber } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { batchPage } from "../output/batches.js";
import { runListPage } from "../output/runs.js";
import { filterOf, noSuchRun, showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";

type Flags = CommonFlags & ChildListOptions & WatchFlags & { readonly failed?: boolean };

const FILTERS = ["status", "batch", "limit", "cursor"] as const;

export function runsChildrenCommand(call: Call): Command {
  const command = newCommand({
    name: "children",
    summary: "Show the batches of a run, and the runs that it made.",
    examples: [
      "runs children 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs children 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --failed",
    ],
  })
    .argument("<run>", "id of the run that made them", readRunId)
    .option("--failed", "short for --status failed")
    .option("--status <status>", RUN_STATUSES.join(", "), oneOf(RUN_STATUSES))
    .option("--batch <name>", "only those of this batch")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber({ min: 1, max: 1_000 }))
    .option("--cursor <id>", "go on where an earlier list ended", readCursor);
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags, id = "") => {
    const { shell } = call;
    const filter = {
      ...filterOf(flags, FILTERS),
      ...(flags.failed === true ? { status: "failed" } : {}),
    } as ChildListOptions;
    return showLook({ flags, shell }, async ({ runs }) => {
      const batches = await runs.batches(id);
      const page = await runs.children(id, filter);
      // What it made may outlive it.
      const isNothing = batches.length === 0 && page.runs.length === 0;
      if (isNothing && !(await runs.get(id))) return noSuchRun(shell, id);
      const parts = batches.length === 0 ? [] : [batchPage(batches, shell.colours), ""];
      const text = [...parts, runListPage(page, shell.colours)].join("\n");
      return { text, document: { batches, ...page } };
    });
  });
}
