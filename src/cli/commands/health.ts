// `holdfast health`: a few figures against thresholds, for a probe or a person.

import { type Command, InvalidArgumentError } from "commander";
import type { HealthReport } from "../../operations/health.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readDurationFlag, wholeNumber } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { newTable } from "../output/format.js";
import { refuseWatchedJson, repeat, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, EXIT } from "../shell.js";

type Flags = CommonFlags &
  WatchFlags & {
    readonly successRate?: number;
    readonly over?: number;
    readonly silent?: number;
    readonly stale?: number;
    readonly polled?: number;
    readonly check?: boolean;
  };

const COUNT = { min: 0, max: 999_999_999 };

export function healthCommand(call: Call): Command {
  const command = newCommand({
    name: "health",
    summary:
      "Compare success rate, heartbeats, stale runs and the scheduler with thresholds: exit code 1 if one is missed.",
    examples: ["health", "health --success-rate 95% --over 7d --check"],
  })
    .option(
      "--success-rate <percent>",
      "this share of runs must succeed (default: 80%)",
      readPercent,
    )
    .option(
      "--over <duration>",
      "counts runs that ended within this time (default: 24h)",
      readDurationFlag,
    )
    .option("--silent <count>", "this many holders may be silent (default: 0)", wholeNumber(COUNT))
    .option("--stale <count>", "this many runs may be stale (default: 0)", wholeNumber(COUNT))
    .option(
      "--polled <duration>",
      "a scheduler must have polled within this time (default: 1m)",
      readDurationFlag,
    )
    .option("--check", "also check the tables");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { watch, successRate, over, silent, stale, polled, check } = flags;
    refuseWatchedJson(shell.isJson, watch);
    const given = { successRate, over, silent, stale, polled, check };
    const options = Object.fromEntries(
      Object.entries(given).filter(([, value]) => value !== undefined),
    );
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const show = async () => ({
        text: healthPage(await holdfast.health(options), shell.colours),
      });
      if (watch !== undefined) return repeat({ shell, everyMs: watch, show });
      const report = await holdfast.health(options);
      await shell.say(healthPage(report, shell.colours));
      await shell.printJson(report);
      return report.ok ? EXIT.done : EXIT.no;
    });
  });
}

function readPercent(text: string): number {
  const [, digits, sign] = /^(\d{1,3}(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const value = Number(digits) / (sign === "%" || Number(digits) > 1 ? 100 : 1);
  if (digits !== undefined && value <= 1) return value;
  throw new InvalidArgumentError("It must be a share such as 80% or 0.8.");
}

function healthPage({ figures }: HealthReport, colours: Colours): string {
  const table = newTable(["", "figure", "found", "wanted"], colours);
  for (const { name, ok, found, wanted } of figures)
    table.push([ok ? colours.green("ok") : colours.red("failed"), name, found, wanted]);
  return table.toString().replace(/(?<! ) +$/gm, "");
}
