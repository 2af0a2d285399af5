// Commands that make a run of a schedule now or check in for a monitor: `schedules trigger`, `test` and `ping`.

import type { Command } from "commander";
import type { Pinged, PingOptions } from "../../../schedules/check-in.js";
import type { TriggerOptions } from "../../../schedules/options.js";
import { PING_STATES, type PingState } from "../../../schedules/rules/monitor.js";
import type { Triggered } from "../../../schedules/trigger.js";
import { requireKey } from "../../../shared/names.js";
import { act, type Call, newCommand, withConfigOption } from "../../command.js";
import { UsageError } from "../../failure.js";
import {
  aboutSchedule,
  oneOf,
  readDurationFlag,
  readInput,
  readName,
  refusing,
} from "../../flags/read.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  withByOption,
  withInstance,
} from "../../instance.js";
import { shortTime } from "../../output/format.js";
import { waitForRun } from "../../output/runs.js";
import { EXIT, plain, type Shell } from "../../shell.js";

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
    summary: "Make a run of a schedule now, outside its cadence; also of a paused one.",
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

/** The options that `trigger` and `test` share. */
function withTriggerOptions(command: Command): Command {
  return command
    .option("--input <json>", "input instead of the schedule's own, or - for standard input")
    .option("--wait", "wait until the run has ended; exit code 1 if it did not complete")
    .option("--timeout <duration>", "with --wait: wait no longer than this", readDurationFlag);
}

// `holdfast schedules test`: the same as `trigger --mode test`. The run is marked as a test.

type TestFlags = CommonFlags & ActorFlags & WaitFlags & { readonly input?: string };

export function schedulesTestCommand(call: Call): Command {
  const command = newCommand({
    name: "test",
    summary: "Make a test run of a schedule now; the same as trigger --mode test.",
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

// `holdfast schedules ping`: checks in for a monitor, from a machine that reaches the database.

type PingFlags = CommonFlags & {
  readonly state?: PingState;
  readonly reason?: string;
  readonly deliveryId?: string;
};

export function schedulesPingCommand(call: Call): Command {
  const command = newCommand({
    name: "ping",
    summary: "Check in for a monitor: the work began, is done, or failed.",
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
  if (paused) return "The monitor is paused: no check-in is expected, and nothing was stored.";
  const what = { start: "Begun", ok: "Checked in", fail: "Checked in as failed" }[state];
  const of =
    tick === null
      ? "outside the ticks: the last one was already judged"
      : `for the tick of ${shortTime(tick)}`;
  const again = repeated ? " (a repetition)" : "";
  const next =
    nextDeadlineAt === null
      ? "No check-in is expected any more."
      : state === "start"
        ? `Its end is expected by ${shortTime(nextDeadlineAt)}.`
        : `The next one is expected by ${shortTime(nextDeadlineAt)}.`;
  return `${what} ${of}${again}. ${next}`;
}

// Both `trigger` and `test` store a run of a schedule, print its id or why there is none, and wait for its end with --wait.

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
    const triggered = await aboutSchedule({ holdfast, name }, () =>
      holdfast.schedules.trigger(name, options),
    );
    if (triggered.skipped) {
      await shell.say(`skipped: ${skippedText(triggered)}`);
      await shell.printJson(triggered);
      return EXIT.no;
    }
    const { runId: id } = triggered;
    await shell.say(`Run ${id} stored.`);
    if (wait) return waitForRun({ holdfast, id, document: triggered, timeout, shell });
    await shell.printJson(triggered);
    return EXIT.done;
  });
}

function skippedText(skipped: Extract<Triggered, { readonly skipped: true }>): string {
  const { reason, holder, until, nextAt } = skipped;
  const next = nextAt === null ? "no tick follows" : `the next tick is ${shortTime(nextAt)}`;
  switch (reason) {
    case "locked":
      if (holder === null) return "locked by a waiting run";
      return `locked by ${plain(holder)}${until === null ? "" : ` until ${shortTime(until)}`}`;
    case "paused":
      return "paused";
    case "not_due":
      return `not due; ${next}`;
  }
}
