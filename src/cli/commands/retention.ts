// Commands that do now what instances do from time to time: `prune` removes rows past retention, `cleanup` reclaims runs from
// holders that are silent or run too long, even within their lease.

import type { Command } from "commander";
import type { CleanedUp } from "../../operations/cleanup.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readDurationFlag } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { ProgressBar } from "../output/progress-bar.js";
import { EXIT } from "../shell.js";

// `holdfast prune`

export function pruneCommand(call: Call): Command {
  const command = newCommand({
    name: "prune",
    summary:
      "Remove history, ticks, log lines and lock history past retention now; instances do this every hour.",
    examples: ["prune", "prune --json"],
  });
  return act<CommonFlags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    return withInstance(
      { flags, purpose: "existing", needsCode: true, shell },
      async (holdfast) => {
        const bar = new ProgressBar({ shell });
        const pruned = await holdfast.prune({
          onProgress: ({ removed }) =>
            bar.show({
              done: removed,
              total: null,
              text: `${removed.toLocaleString("en")} removed`,
            }),
        });
        bar.end();
        await shell.say(
          pruned.removed === 0
            ? "Nothing is past retention."
            : `Removed ${pruned.removed.toLocaleString("en")} rows and days past retention.`,
        );
        await shell.printJson(pruned);
        return EXIT.done;
      },
    );
  });
}

// `holdfast cleanup`

type Flags = CommonFlags & { readonly timeout?: number; readonly heartbeatTimeout?: number };

export function cleanupCommand(call: Call): Command {
  const command = newCommand({
    name: "cleanup",
    summary: "Reclaim runs now from holders that are silent or run too long.",
    examples: ["cleanup", "cleanup --timeout 1h --heartbeat-timeout 5m --json"],
  })
    .option("--timeout <duration>", "how long an attempt may take (default: 2h)", readDurationFlag)
    .option(
      "--heartbeat-timeout <duration>",
      "how long a holder may be silent (default: 10m)",
      readDurationFlag,
    );
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const { timeout, heartbeatTimeout } = flags;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const report = await holdfast.cleanup({
        ...(timeout === undefined ? {} : { timeout }),
        ...(heartbeatTimeout === undefined ? {} : { heartbeatTimeout }),
      });
      await shell.say(reportText(report));
      await shell.printJson(report);
      return EXIT.done;
    });
  });
}

function reportText({ reclaimed, failed }: CleanedUp): string {
  if (reclaimed === 0)
    return "Nothing to reclaim: every holder sends heartbeats and is within its time.";
  const runs = reclaimed === 1 ? "1 run" : `${reclaimed} runs`;
  const rest = failed === 0 ? "each will be retried" : `${failed} failed for good`;
  return `Reclaimed ${runs}; ${rest}.`;
}
