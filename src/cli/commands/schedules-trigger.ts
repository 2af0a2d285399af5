// `holdfast schedules trigger`: a run now, beside the cadence; or, with --if-due, the due tick.

import type { Command } from "commander";
import { requireKey } from "../../shared/names.js";
import { type AskerFlags, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/names.js";
import { oneOf, readDurationFlag, refusing, UsageError } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { trigger, type WaitFlags } from "../trigger.js";

const TRIGGER_MODES = ["manual", "test"] as const;

type Flags = CommonFlags &
  AskerFlags &
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
export function withTriggerOptions(command: Command): Command {
  return command
    .option("--input <json>", "instead of the schedule's own, or - for standard input")
    .option("--wait", "wait until the run has ended; exit code 1 if it did not complete")
    .option("--timeout <duration>", "with --wait: wait no longer than this", readDurationFlag);
}
