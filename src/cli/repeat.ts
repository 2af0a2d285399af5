// `--watch`: shows an answer again and again until Ctrl-C, or until there is nothing left to wait for.

import type { Command } from "commander";
import { systemClock } from "../shared/adapters/clock.js";
import { delay } from "../shared/ports.js";
import { describeExit } from "./failure.js";
import { readDurationFlag, UsageError } from "./flags/usage.js";
import { canDraw, Screen } from "./output/screen.js";
import { EXIT, type Shell } from "./shell.js";
import { firstSignal } from "./signals.js";

/** One page of text; `isLast`: it will not change any more. */
export type Page = { readonly text: string; readonly isLast?: boolean };

export type WatchFlags = { readonly watch?: number };

export function withWatchOption(
  command: Command,
  words = "show it again and again, for example 5s",
): Command {
  return command.option("--watch <interval>", words, readDurationFlag);
}

export function refuseWatchedJson(isJson: boolean, watch: number | undefined): void {
  if (!isJson || watch === undefined) return;
  throw new UsageError("--watch and --json exclude each other: --json is one document.");
}

export async function repeat(params: {
  readonly shell: Shell;
  readonly everyMs: number;
  readonly show: () => Promise<Page>;
}): Promise<number> {
  const { shell, everyMs, show } = params;
  const stopped = new AbortController();
  void firstSignal().then(() => stopped.abort());
  const screen = canDraw(process.stdout) ? new Screen(process.stdout, { isWhole: false }) : null;
  for (let round = 0; !stopped.signal.aborted; round += 1) {
    try {
      const { text, isLast } = await show();
      if (screen && !isLast) screen.draw(text);
      else {
        screen?.clear();
        await shell.say(screen ? text : `${text}\n`);
      }
      if (isLast) break;
    } catch (error) {
      // The first answer must come; later a database that went away may come back.
      if (round === 0) throw error;
      shell.complain(describeExit(error)?.message ?? "");
    }
    await delay(systemClock, everyMs, stopped.signal);
  }
  return EXIT.done;
}
