// Runs commands that only read: prints the result once, as a page or as one JSON document, or with --watch as a page that is
// redrawn at an interval.

import type { Command } from "commander";
import type { Holdfast } from "../holdfast.js";
import { systemClock } from "../shared/adapters/clock.js";
import { delay } from "../shared/ports.js";
import { describeExit, UsageError } from "./failure.js";
import { underGivenFlags } from "./flags/errors.js";
import { readDurationFlag } from "./flags/read.js";
import { type CommonFlags, withInstance } from "./instance.js";
import { canDraw, Screen } from "./output/screen.js";
import { EXIT, type Shell } from "./shell.js";
import { firstSignal } from "./signals.js";

/** The result, for people and for programs. */
export type ReadResult = Page & { readonly document: unknown };

/** Null: not found, and already reported. */
export type ReadAction = (holdfast: Holdfast) => Promise<ReadResult | null>;

export async function runReadCommand(
  params: {
    readonly flags: CommonFlags & WatchFlags;
    readonly shell: Shell;
    readonly needsCode?: boolean;
  },
  read: ReadAction,
): Promise<number> {
  const { flags, shell, needsCode = false } = params;
  const { watch } = flags;
  refuseWatchedJson(shell.isJson, watch);
  return withInstance({ flags, purpose: "existing", needsCode, shell }, async (holdfast) => {
    const seen = await underGivenFlags(flags, () => read(holdfast));
    if (seen === null) {
      await shell.printJson(null);
      return EXIT.no;
    }
    if (watch !== undefined) {
      let first: ReadResult | null = seen;
      const show = async () => {
        // If the thing vanishes while it is watched, the last page stays.
        const now: ReadResult = first ?? (await read(holdfast)) ?? { ...seen, isLast: true };
        first = null;
        return now;
      };
      return repeat({ shell, everyMs: watch, show });
    }
    await shell.say(seen.text);
    await shell.printJson(seen.document);
    return EXIT.done;
  });
}

/** The given ones of these flags, as the filter of a list. */
export function filterOf<Flags, Name extends keyof Flags>(
  flags: Flags,
  names: readonly Name[],
): { [N in Name]?: Exclude<Flags[N], undefined> } {
  const given = names.filter((name) => flags[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, flags[name]])) as never;
}

/** Reports that there is no such run; that is a result, not an error. */
export function noSuchRun(shell: Shell, id: string): null {
  shell.complain(`There is no run ${id}: it never existed, or it was pruned.`);
  return null;
}

// `--watch`: shows the page again until Ctrl-C or until it cannot change any more.

/** One page of text; `isLast`: it will not change any more. */
export type Page = { readonly text: string; readonly isLast?: boolean };

export type WatchFlags = { readonly watch?: number };

export function withWatchOption(
  command: Command,
  help = "repeat at this interval, for example 5s",
): Command {
  return command.option("--watch <interval>", help, readDurationFlag);
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
  const screen = canDraw(process.stdout)
    ? new Screen(process.stdout, { isFullScreen: false })
    : null;
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
      // The first read must succeed; later a lost database may come back.
      if (round === 0) throw error;
      shell.complain(describeExit(error)?.message ?? "");
    }
    await delay(systemClock, everyMs, stopped.signal);
  }
  return EXIT.done;
}
