// `holdfast schedules backfill`: requests runs for the ticks of a past range, and shows the progress. Instances do the work; this
// command only requests it and watches.

import type { Command } from "commander";
import type { Holdfast } from "../../../holdfast.js";
import type { Backfill } from "../../../schedules/view.js";
import { systemClock } from "../../../shared/adapters/clock.js";
import { delay } from "../../../shared/ports.js";
import { quoteShort } from "../../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../../command.js";
import { describeExit, UsageError } from "../../failure.js";
import { underFlagNames } from "../../flags/errors.js";
import { aboutSchedule, readInstantFlag, readName } from "../../flags/read.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../../instance.js";
import { type Progress, ProgressBar } from "../../output/progress-bar.js";
import { backfillText } from "../../output/schedules.js";
import { EXIT, type Shell } from "../../shell.js";
import { firstSignal } from "../../signals.js";

type BackfillFlags = CommonFlags &
  ActorFlags & {
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
    .option("--cancel", "end the running backfill; a run that it has made goes on");
  return act<BackfillFlags>(withConfigOption(withByOption(command)), call, (flags, name = "") => {
    const range = readRange(flags);
    return range === null
      ? cancelBackfill(name, flags, call.shell)
      : backfill(name, { ...flags, ...range }, call.shell);
  });
}

/** Null: --cancel was given. */
function readRange(flags: BackfillFlags): { readonly from: Date; readonly to: Date } | null {
  const { from, to, all, detach, cancel } = flags;
  if (cancel) {
    const isAlone = [from, to, all, detach].every((each) => each === undefined);
    if (isAlone) return null;
    throw new UsageError("--cancel ends the running backfill; give it without other flags.");
  }
  if (from === undefined || to === undefined) {
    throw new UsageError(
      "Give the range: --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z; or --cancel.",
    );
  }
  return { from, to };
}

function cancelBackfill(name: string, flags: BackfillFlags, shell: Shell): Promise<number> {
  return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
    const isCancelled = await aboutSchedule({ holdfast, name }, () =>
      holdfast.schedules.cancelBackfill(name),
    );
    const shown = quoteShort(name);
    await shell.say(
      isCancelled
        ? `The backfill of ${shown} is cancelled; a run that it has made goes on.`
        : `There is no backfill of ${shown} to cancel.`,
    );
    await shell.printJson({ name, answer: isCancelled ? "cancelled" : "not_running" });
    return isCancelled ? EXIT.done : EXIT.no;
  });
}

function backfill(
  name: string,
  flags: BackfillFlags & { readonly from: Date; readonly to: Date },
  shell: Shell,
): Promise<number> {
  const { from, to, all = false, detach } = flags;
  return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
    const begun = await underFlagNames("schedules.backfill()", () =>
      aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.backfill(name, { from, to, all, by: actorName(flags) }),
      ),
    );
    if (begun.status === "running" && !detach)
      return watchBackfill({ holdfast, name, begun, shell });
    await shell.say(
      begun.total === 0
        ? "There is no tick in that range; nothing to do."
        : `Backfill ${begun.id} started: ${backfillText(begun)}.`,
    );
    await shell.printJson(begun);
    return EXIT.done;
  });
}

// Watches a backfill until it is done: a bar on a terminal, a line for each step without one, only the last document with --json.
// Leaving it does not end the backfill.

const POLL_MS = 300;
const SILENT_MS = 10_000;

async function watchBackfill(params: {
  readonly holdfast: Holdfast;
  readonly name: string;
  readonly begun: Backfill;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, name, begun, shell } = params;
  const stopped = new AbortController();
  void firstSignal().then(() => stopped.abort());
  const bar = new ProgressBar({ shell, lineEveryMs: 0 });
  let latest = begun;
  let movedAtMs = systemClock.monotonicMs();
  let isWarned = false;
  let isLost = false;
  bar.show(progressOf(latest));
  while (latest.status === "running" && !stopped.signal.aborted) {
    await delay(systemClock, POLL_MS, stopped.signal);
    try {
      const found = await readBackfill(holdfast, name, latest);
      if (found.made + found.passed > latest.made + latest.passed) {
        movedAtMs = systemClock.monotonicMs();
      }
      latest = found;
      isLost = false;
      bar.show(progressOf(latest));
      const isSilent = systemClock.monotonicMs() - movedAtMs >= SILENT_MS;
      if (isSilent && !isWarned && latest.status === "running") {
        const why = await reasonOfSilence(holdfast, name);
        isWarned = why !== null;
        if (why !== null) bar.complain(why);
      }
    } catch (error) {
      // The database may come back, and the backfill is stored in it.
      if (!isLost) bar.complain(describeExit(error)?.message ?? "");
      isLost = true;
    }
  }
  bar.end();
  const notCompleted =
    latest.status === "done" ? await countNotCompleted(holdfast, name, begun) : 0;
  await shell.say(endText(latest, notCompleted));
  await shell.printJson({ ...latest, notCompleted });
  return latest.status === "done" && notCompleted === 0 ? EXIT.done : EXIT.no;
}

/** Counts its runs that failed or were cancelled. A schedule has one backfill at a time, so the time of creation identifies them. */
async function countNotCompleted(
  { runs }: Holdfast,
  schedule: string,
  { createdAt }: Backfill,
): Promise<number> {
  let count = 0;
  for (const status of ["failed", "cancelled"] as const) {
    for (let cursor: string | null = ""; cursor !== null; ) {
      const after: { readonly cursor?: string } = cursor === "" ? {} : { cursor };
      const page = await runs.list({ schedule, mode: "backfill", status, limit: 1_000, ...after });
      const own = page.runs.filter((run) => run.createdAt >= createdAt);
      count += own.length;
      cursor = own.length < page.runs.length ? null : page.nextCursor;
    }
  }
  return count;
}

async function readBackfill(holdfast: Holdfast, name: string, last: Backfill): Promise<Backfill> {
  const backfills = await holdfast.schedules.backfills(name);
  return backfills.find(({ id }) => id === last.id) ?? last;
}

/** Why there is no progress; null while a run executes, which may take any time. */
async function reasonOfSilence(holdfast: Holdfast, schedule: string): Promise<string | null> {
  const running = await holdfast.runs.list({ schedule, status: "running", limit: 1 });
  if (running.runs.length > 0) return null;
  const { runs } = await holdfast.runs.list({ schedule, status: "pending", limit: 1 });
  const [waiting] = runs;
  return waiting
    ? `No progress for 10 s: run ${waiting.id} is waiting. Is an instance running that executes the job ${waiting.job}?`
    : "No progress for 10 s: no instance with the scheduler on seems to be running. Start one: holdfast start";
}

function progressOf(backfill: Backfill): Progress {
  const { made, passed, total } = backfill;
  return { done: made + passed, total, text: backfillText(backfill) };
}

function endText(backfill: Backfill, notCompleted: number): string {
  const far = backfillText(backfill);
  switch (backfill.status) {
    case "done":
      return `Done: ${far}${notCompleted === 0 ? "" : `, ${notCompleted} did not complete`}.`;
    case "cancelled":
      return `Cancelled: ${far}.`;
    case "running":
      return `Left at ${far}. It goes on in the background if an instance runs with the scheduler on; --cancel ends it.`;
  }
}
