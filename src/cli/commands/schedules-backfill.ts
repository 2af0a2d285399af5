// `holdfast schedules backfill`: has runs made for the ticks of a range in the past, and shows how far
// that is. Instances do the work; this command only asks for it and watches.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { watchBackfill } from "../backfill-watch.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { aboutSchedule, readName } from "../flags/names.js";
import { underFlagNames } from "../flags/refused.js";
import { readInstantFlag, UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { backfillText } from "../output/schedules.js";
import { EXIT, type Shell } from "../shell.js";

type Flags = CommonFlags &
  AskerFlags & {
    readonly from?: Date;
    readonly to?: Date;
    readonly all?: boolean;
    readonly detach?: boolean;
    readonly cancel?: boolean;
  };

export function schedulesBackfillCommand(call: Call): Command {
  const command = newCommand({
    name: "backfill",
    summary: "Make runs for the ticks of a range that have no completed run, one after the other.",
    examples: [
      "schedules backfill nightly-report --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z",
      "schedules backfill nightly-report --from 2026-03-01 --to 2026-03-08 --all --detach",
      "schedules backfill nightly-report --cancel",
    ],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--from <time>", "the first instant of the range", readInstantFlag)
    .option("--to <time>", "the last one; ticks still to come are left out", readInstantFlag)
    .option("--all", "also ticks that have a completed run")
    .option("--detach", "do not wait until it is done")
    .option("--cancel", "end the one that is running; the run it has made goes on");
  return act<Flags>(withConfigOption(withByOption(command)), call, (flags, name = "") => {
    const range = readRange(flags);
    return range === null
      ? cancelBackfill(name, flags, call.shell)
      : backfill(name, { ...flags, ...range }, call.shell);
  });
}

/** Null: the running one is to be cancelled. */
function readRange(flags: Flags): { readonly from: Date; readonly to: Date } | null {
  const { from, to, all, detach, cancel } = flags;
  if (cancel) {
    const isAlone = [from, to, all, detach].every((each) => each === undefined);
    if (isAlone) return null;
    throw new UsageError("--cancel ends the one that is running; it goes alone.");
  }
  if (from === undefined || to === undefined) {
    throw new UsageError(
      "Give the range: --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z; or --cancel.",
    );
  }
  return { from, to };
}

function cancelBackfill(name: string, flags: Flags, shell: Shell): Promise<number> {
  return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
    const isCancelled = await aboutSchedule({ holdfast, name }, () =>
      holdfast.schedules.cancelBackfill(name),
    );
    const shown = quoteShort(name);
    await shell.say(
      isCancelled
        ? `The backfill of ${shown} is cancelled; a run that it has made goes on.`
        : `There is no backfill of ${shown} to cancel.`,
    );
    await shell.answer({ name, answer: isCancelled ? "cancelled" : "not_running" });
    return isCancelled ? EXIT.done : EXIT.no;
  });
}

function backfill(
  name: string,
  flags: Flags & { readonly from: Date; readonly to: Date },
  shell: Shell,
): Promise<number> {
  const { from, to, all = false, detach } = flags;
  return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
    const begun = await underFlagNames("schedules.backfill()", () =>
      aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.backfill(name, { from, to, all, by: askedBy(flags) }),
      ),
    );
    if (begun.status === "running" && !detach)
      return watchBackfill({ holdfast, name, begun, shell });
    await shell.say(
      begun.total === 0
        ? "There is no tick in that range; nothing to do."
        : `Backfill ${begun.id} begun: ${backfillText(begun)}.`,
    );
    await shell.answer(begun);
    return EXIT.done;
  });
}
