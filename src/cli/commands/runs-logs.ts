// `holdfast runs logs`: the log lines that were kept with a run, and those that are yet to come.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { RunLogEntry } from "../../runs/run-records.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { delay } from "../../shared/ports.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readRunId, UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { logLine } from "../output/logs.js";
import { EXIT, type Shell } from "../shell.js";
import { firstSignal } from "../signals.js";

type Flags = CommonFlags & { readonly follow?: boolean };

const LOOK_MS = 500;

export function runsLogsCommand(call: Call): Command {
  const command = newCommand({
    name: "logs",
    summary: "Show the log lines that were kept with a run.",
    examples: [
      "runs logs 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs logs 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --follow",
    ],
  })
    .argument("<run>", "id of the run", readRunId)
    .option("--follow", "go on with new lines until the run has ended");
  return act<Flags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    if (flags.follow && shell.isJson)
      throw new UsageError("--follow and --json exclude each other: --json is one document.");
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      if ((await holdfast.runs.get(id)) === null) {
        shell.complain(`There is no run ${id}: it never existed, or it was pruned.`);
        await shell.answer(null);
        return EXIT.no;
      }
      if (flags.follow) return follow(holdfast, id, shell);
      const lines: RunLogEntry[] = [];
      const cursor = await readOn({
        holdfast,
        id,
        after: null,
        take: (page) => lines.push(...page),
      });
      for (const line of lines) await shell.say(logLine(line, shell.colours));
      if (lines.length === 0) await shell.say("No log lines.");
      await shell.answer({ lines, cursor });
      return EXIT.done;
    });
  });
}

/** Whether it has ended is asked before its lines are: the last ones are stored before its end. */
async function follow(holdfast: Holdfast, id: string, shell: Shell): Promise<number> {
  const stopped = new AbortController();
  void firstSignal().then(() => stopped.abort());
  let cursor: string | null = null;
  while (!stopped.signal.aborted) {
    const run = await holdfast.runs.get(id);
    cursor = await readOn({
      holdfast,
      id,
      after: cursor,
      take: async (page) => {
        for (const line of page) await shell.say(logLine(line, shell.colours));
      },
    });
    if (run === null || run.finishedAt !== null) break;
    await delay(systemClock, LOOK_MS, stopped.signal);
  }
  return EXIT.done;
}

/** Page by page to the last line there is; answers where that was. */
async function readOn(params: {
  readonly holdfast: Holdfast;
  readonly id: string;
  readonly after: string | null;
  readonly take: (lines: readonly RunLogEntry[]) => unknown;
}): Promise<string | null> {
  const { holdfast, id, take } = params;
  for (let { after } = params; ; ) {
    const { lines, cursor } = await holdfast.runs.logs(id, { after });
    if (lines.length === 0) return cursor;
    await take(lines);
    after = cursor;
  }
}
