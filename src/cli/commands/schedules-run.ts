// `holdfast schedules trigger`: a run now, beside the cadence; or, with --if-due, the due tick.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { Pinged, PingOptions } from "../../schedules/check-in.js";
import type { TriggerOptions } from "../../schedules/options.js";
import { PING_STATES, type PingState } from "../../schedules/rules/monitor.js";
import type { Triggered } from "../../schedules/trigger.js";
import type { Backfill } from "../../schedules/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { requireKey } from "../../shared/names.js";
import { delay } from "../../shared/ports.js";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { describeExit } from "../failure.js";
import { underFlagNames } from "../flags/errors.js";
import { aboutSchedule, readInput, readName } from "../flags/read.js";
import { oneOf, readDurationFlag, readInstantFlag, refusing, UsageError } from "../flags/usage.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../instance.js";
import { type Progress, ProgressBar } from "../output/progress-bar.js";
import { waitForRun } from "../output/runs.js";
import { backfillText } from "../output/schedules.js";
import { shortTime } from "../output/times.js";
import { EXIT, plain, type Shell } from "../shell.js";
import { firstSignal } from "../work.js";

const TRIGGER_MODES = ["manual", "test"] as const;

type Flags = CommonFlags &
  ActorFlags &
  WaitFlags & {
    readonly mode?: (typeof TRIGGER_MODES)[number];
    readonly ifDue?: boolean;
    readonly deliveryId?: string;
    readonly input?: string;
  };

export function schedulesTriggerCommand(call: Call): Command {
  const command = newCommand({
    name: "trigger",
    summary: "Make a run of a schedule now, beside its cadence; also of a paused one.",
    examples: [
      "schedules trigger nightly-report --wait",
      `schedules trigger nightly-report --input '{"market":"us"}'`,
      "schedules trigger nightly-report --if-due --delivery-id 2026-03-08",
    ],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--mode <mode>", "manual (default) or test", oneOf(TRIGGER_MODES))
    .option("--if-due", "only if a tick is due and no run is live")
    .option("--delivery-id <id>", "the same delivery twice is the same run", (text) =>
      refusing(() => requireKey(text, "--delivery-id")),
    );
  withByOption(withTriggerOptions(command));
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { mode, ifDue, deliveryId } = flags;
    if (ifDue && (mode !== undefined || flags.input !== undefined)) {
      throw new UsageError(
        "--if-due goes without --mode and --input: it fires the schedule's own tick.",
      );
    }
    const options = {
      ...(mode === undefined ? {} : { mode }),
      ...(ifDue ? { ifDue } : {}),
      ...(deliveryId === undefined ? {} : { deliveryId }),
    };
    return trigger({ name, options, flags, shell: call.shell });
  });
}

/** What `trigger` and `test` have in common. */
function withTriggerOptions(command: Command): Command {
  return command
    .option("--input <json>", "instead of the schedule's own, or - for standard input")
    .option("--wait", "wait until the run has ended; exit code 1 if it did not complete")
    .option("--timeout <duration>", "with --wait: wait no longer than this", readDurationFlag);
}

// `holdfast schedules test`: `trigger --mode test`. A run like any other, but it says that it is one.

type TestFlags = CommonFlags & ActorFlags & WaitFlags & { readonly input?: string };

export function schedulesTestCommand(call: Call): Command {
  const command = newCommand({
    name: "test",
    summary: "Make a test run of a schedule now: as trigger --mode test.",
    examples: [
      "schedules test nightly-report --wait",
      `schedules test nightly-report --input '{"market":"us"}' --wait --timeout 5m`,
    ],
  }).argument("<name>", "name of the schedule", readName);
  withByOption(withTriggerOptions(command));
  return act<TestFlags>(withConfigOption(command), call, (flags, name = "") =>
    trigger({ name, options: { mode: "test" }, flags, shell: call.shell }),
  );
}

// `holdfast schedules backfill`: has runs made for the ticks of a range in the past, and shows how far
// that is. Instances do the work; this command only asks for it and watches.

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
    .option("--cancel", "end the one that is running; the run it has made goes on");
  return act<BackfillFlags>(withConfigOption(withByOption(command)), call, (flags, name = "") => {
    const range = readRange(flags);
    return range === null
      ? cancelBackfill(name, flags, call.shell)
      : backfill(name, { ...flags, ...range }, call.shell);
  });
}

/** Null: the running one is to be cancelled. */
function readRange(flags: BackfillFlags): { readonly from: Date; readonly to: Date } | null {
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
        : `Backfill ${begun.id} begun: ${backfillText(begun)}.`,
    );
    await shell.printJson(begun);
    return EXIT.done;
  });
}

// `holdfast schedules ping`: a check-in of what a monitor watches, for whoever reaches the database.

type PingFlags = CommonFlags & {
  readonly state?: PingState;
  readonly reason?: string;
  readonly deliveryId?: string;
};

export function schedulesPingCommand(call: Call): Command {
  const command = newCommand({
    name: "ping",
    summary: "Check in for a monitor: what it watches began, is done, or failed.",
    examples: [
      "schedules ping backup",
      "schedules ping backup --state start",
      'schedules ping backup --state fail --reason "the disk is full"',
    ],
  })
    .argument("<name>", "name of the monitor", readName)
    .option("--state <state>", "start, ok (default) or fail", oneOf(PING_STATES))
    .option("--reason <text>", "with --state fail: why")
    .option("--delivery-id <id>", "the same delivery twice is the same check-in", (text) =>
      refusing(() => requireKey(text, "--delivery-id")),
    );
  return act<PingFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { state, reason, deliveryId } = flags;
    if (reason !== undefined && state !== "fail")
      throw new UsageError("--reason goes with --state fail: it says why.");
    if (deliveryId !== undefined && state === "start")
      throw new UsageError("--delivery-id goes without --state start: a second start is the same.");
    const options: PingOptions = {
      ...(state === undefined ? {} : { state }),
      ...(reason === undefined ? {} : { reason }),
      ...(deliveryId === undefined ? {} : { deliveryId }),
    };
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const pinged = await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.ping(name, options),
      );
      await shell.say(pingText(pinged));
      await shell.printJson(pinged);
      return EXIT.done;
    });
  });
}

/** "Checked in for the tick of 2026-03-08 03:00:00Z. The next one is waited for until …" */
function pingText({ state, tick, repeated, paused, nextDeadlineAt }: Pinged): string {
  if (paused) return "The monitor is paused: nothing is expected, and nothing was kept.";
  const what = { start: "Begun", ok: "Checked in", fail: "Checked in as failed" }[state];
  const of =
    tick === null
      ? "beside the ticks: the last one was judged"
      : `for the tick of ${shortTime(tick)}`;
  const again = repeated ? " (as said before)" : "";
  const next =
    nextDeadlineAt === null
      ? "No check-in is expected any more."
      : state === "start"
        ? `Its end is waited for until ${shortTime(nextDeadlineAt)}.`
        : `The next one is waited for until ${shortTime(nextDeadlineAt)}.`;
  return `${what} ${of}${again}. ${next}`;
}

// What `trigger` and `test` do: ask for a run of a schedule, say its id or why there is none, and wait
// for its end where asked.

export type WaitFlags = { readonly wait?: boolean; readonly timeout?: number };

export async function trigger(params: {
  readonly name: string;
  readonly options: TriggerOptions;
  readonly flags: CommonFlags & ActorFlags & WaitFlags & { readonly input?: string };
  readonly shell: Shell;
}): Promise<number> {
  const { name, flags, shell } = params;
  const { wait, timeout } = flags;
  if (timeout !== undefined && !wait) throw new UsageError("--timeout limits --wait; give both.");
  const options = {
    ...params.options,
    ...(flags.input === undefined ? {} : { input: await readInput(flags.input) }),
    by: actorName(flags),
  };
  return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
    const answer = await aboutSchedule({ holdfast, name }, () =>
      holdfast.schedules.trigger(name, options),
    );
    if (answer.skipped) {
      await shell.say(`skipped: ${skippedText(answer)}`);
      await shell.printJson(answer);
      return EXIT.no;
    }
    const { runId: id } = answer;
    await shell.say(`Run ${id} stored.`);
    if (wait) return waitForRun({ holdfast, id, answer, timeout, shell });
    await shell.printJson(answer);
    return EXIT.done;
  });
}

function skippedText(skipped: Extract<Triggered, { readonly skipped: true }>): string {
  const { reason, holder, until, nextAt } = skipped;
  const next = nextAt === null ? "no tick follows" : `the next tick is ${shortTime(nextAt)}`;
  switch (reason) {
    case "locked":
      if (holder === null) return "locked by a run that waits";
      return `locked by ${plain(holder)}${until === null ? "" : ` until ${shortTime(until)}`}`;
    case "paused":
      return "paused";
    case "not_due":
      return `not due; ${next}`;
  }
}

// Watches a backfill until it is done: a bar on a terminal, a line a step elsewhere, nothing but the
// last document for programs. Leaving it does not end the backfill.

const LOOK_MS = 300;
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
    await delay(systemClock, LOOK_MS, stopped.signal);
    try {
      const found = await look(holdfast, name, latest);
      if (found.made + found.passed > latest.made + latest.passed) {
        movedAtMs = systemClock.monotonicMs();
      }
      latest = found;
      isLost = false;
      bar.show(progressOf(latest));
      const isSilent = systemClock.monotonicMs() - movedAtMs >= SILENT_MS;
      if (isSilent && !isWarned && latest.status === "running") {
        const why = await silence(holdfast, name);
        isWarned = why !== null;
        if (why !== null) bar.complain(why);
      }
    } catch (error) {
      // The database may come back, and the backfill is in it.
      if (!isLost) bar.complain(describeExit(error)?.message ?? "");
      isLost = true;
    }
  }
  bar.end();
  const notCompleted =
    latest.status === "done" ? await countNotCompleted(holdfast, name, begun) : 0;
  await shell.say(lastWords(latest, notCompleted));
  await shell.printJson({ ...latest, notCompleted });
  return latest.status === "done" && notCompleted === 0 ? EXIT.done : EXIT.no;
}

/** Its runs that failed or were cancelled: there is one backfill of a schedule at a time. */
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

async function look(holdfast: Holdfast, name: string, last: Backfill): Promise<Backfill> {
  const backfills = await holdfast.schedules.backfills(name);
  return backfills.find(({ id }) => id === last.id) ?? last;
}

/** Why nothing happens; null while a run is being executed, which may take as long as it takes. */
async function silence(holdfast: Holdfast, schedule: string): Promise<string | null> {
  const running = await holdfast.runs.list({ schedule, status: "running", limit: 1 });
  if (running.runs.length > 0) return null;
  const { runs } = await holdfast.runs.list({ schedule, status: "pending", limit: 1 });
  const [waiting] = runs;
  return waiting
    ? `No progress for 10 s: run ${waiting.id} waits. Is an instance up that executes the job ${waiting.job}?`
    : "No progress for 10 s: no instance with the scheduler on seems to run. Start one: holdfast start";
}

function progressOf(backfill: Backfill): Progress {
  const { made, passed, total } = backfill;
  return { done: made + passed, total, text: backfillText(backfill) };
}

function lastWords(backfill: Backfill, notCompleted: number): string {
  const far = backfillText(backfill);
  switch (backfill.status) {
    case "done":
      return `Done: ${far}${notCompleted === 0 ? "" : `, ${notCompleted} did not complete`}.`;
    case "cancelled":
      return `Cancelled: ${far}.`;
    case "running":
      return `Left at ${far}. It goes on in the background where an instance runs with the scheduler on; --cancel ends it.`;
  }
}
