// `holdfast schedules test`: `trigger --mode test`. A run like any other, but it says that it is one.

import type { Command } from "commander";
import { type AskerFlags, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/names.js";
import type { CommonFlags } from "../instance.js";
import { trigger, type WaitFlags } from "../trigger.js";
import { withTriggerOptions } from "./schedules-trigger.js";

type Flags = CommonFlags & AskerFlags & WaitFlags & { readonly input?: string };

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
  return act<Flags>(withConfigOption(command), call, (flags, name = "") =>
    trigger({ name, options: { mode: "test" }, flags, shell: call.shell }),
  );
}
