// `holdfast cleanup`: takes back now what silent or endless holders have, whatever their leases say.

import type { Command } from "commander";
import type { CleanedUp } from "../../operations/cleanup.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readDurationFlag } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & { readonly timeout?: number; readonly heartbeatTimeout?: number };

export function cleanupCommand(call: Call): Command {
  const command = newCommand({
    name: "cleanup",
    summary: "Take runs back from holders that fell silent or run for too long, now.",
    examples: ["cleanup", "cleanup --timeout 1h --heartbeat-timeout 5m --json"],
  })
    .option("--timeout <duration>", "an attempt may take so long (default: 2h)", readDurationFlag)
    .option(
      "--heartbeat-timeout <duration>",
      "a holder may be silent for so long (default: 10m)",
      readDurationFlag,
    );
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const { timeout, heartbeatTimeout } = flags;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const report = await holdfast.cleanup({
        ...(timeout === undefined ? {} : { timeout }),
        ...(heartbeatTimeout === undefined ? {} : { heartbeatTimeout }),
      });
      await shell.say(inWords(report));
      await shell.answer(report);
      return EXIT.done;
    });
  });
}

function inWords({ reclaimed, failed }: CleanedUp): string {
  if (reclaimed === 0) return "Nothing to take back: every holder is heard of and within its time.";
  const runs = reclaimed === 1 ? "1 run" : `${reclaimed} runs`;
  const rest = failed === 0 ? "each waits for its next attempt" : `${failed} failed for good`;
  return `Took back ${runs}; ${rest}.`;
}
