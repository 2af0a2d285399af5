// `holdfast stats`: how runs ended, by job and by time; with --errors what failed, equal errors together.

import type { Command } from "commander";
import type { StatsOptions } from "../../operations/overview.js";
import { readDuration } from "../../shared/duration-text.js";
import { readInstant } from "../../shared/instant.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { oneOf, UsageError } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { errorsPage, statsPage } from "../output/stats.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";

type Flags = CommonFlags &
  WatchFlags & {
    readonly since: string;
    readonly by?: "hour" | "day";
    readonly job?: string;
    readonly errors?: boolean;
  };

/** What begins with a year is meant as an instant. */
function readSince(text: string): string {
  const read = /^\d{4}-/.test(text) ? readInstant(text) : readDuration(text);
  if (typeof read === "number") return text;
  throw new UsageError(`--since: ${read} An instant such as 2030-01-31T09:00:00Z will do too.`);
}

export function statsCommand(call: Call): Command {
  const command = newCommand({
    name: "stats",
    summary: "Show how runs ended, by job and by time, or what failed and why.",
    examples: [
      "stats",
      "stats --since 7d --by day --job send-mail",
      "stats --errors --since 24h --watch 10s",
    ],
  })
    .option("--since <when>", "from then on: 24h, 7d, or an instant", readSince, "24h")
    .option("--by <stretch>", "hour or day (default: hour)", oneOf(["hour", "day"]))
    .option("--job <name>", "runs of this job alone")
    .option("--errors", "failed runs instead, equal errors of a job together");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const { since, by, job, errors = false } = flags;
    if (errors && (by !== undefined || job !== undefined))
      throw new UsageError("--errors takes --since alone, for example: stats --errors --since 24h");
    return runReadCommand({ flags, shell }, async (holdfast) => {
      if (errors) {
        const report = await holdfast.errors({ since });
        return { text: errorsPage(report, { since, colours: shell.colours }), document: report };
      }
      const options: StatsOptions = {
        since,
        ...(by === undefined ? {} : { by }),
        ...(job === undefined ? {} : { job }),
      };
      const stats = await holdfast.stats(options);
      return { text: statsPage(stats, { since, colours: shell.colours }), document: stats };
    });
  });
}
