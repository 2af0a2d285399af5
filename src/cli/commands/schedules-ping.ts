// `holdfast schedules ping`: a check-in of what a monitor watches, for whoever reaches the database.

import type { Command } from "commander";
import type { Pinged, PingOptions } from "../../schedules/check-in.js";
import { PING_STATES, type PingState } from "../../schedules/rules/monitor.js";
import { requireKey } from "../../shared/names.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { aboutSchedule, readName } from "../flags/names.js";
import { oneOf, refusing, UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { shortTime } from "../output/times.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & {
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
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
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
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const pinged = await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.ping(name, options),
      );
      await shell.say(pingText(pinged));
      await shell.answer(pinged);
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
