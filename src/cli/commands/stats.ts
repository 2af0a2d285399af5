// `holdfast stats`: shows how runs ended by job and by time; with --errors, failed runs grouped by error.

import type { Command } from "commander";
import type { ErrorReport, Stats, StatsOptions, Totals } from "../../operations/statistics.js";
import { formatDuration, readDuration } from "../../shared/duration.js";
import { readInstant } from "../../shared/instant.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../failure.js";
import { oneOf } from "../flags/read.js";
import type { CommonFlags } from "../instance.js";
import { newTable, shortTime } from "../output/format.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, plain } from "../shell.js";

type Flags = CommonFlags &
  WatchFlags & {
    readonly since: string;
    readonly by?: "hour" | "day";
    readonly job?: string;
    readonly errors?: boolean;
  };

/** A text that begins with a year is an instant. */
function readSince(text: string): string {
  const read = /^\d{4}-/.test(text) ? readInstant(text) : readDuration(text);
  if (typeof read === "number") return text;
  throw new UsageError(`--since: ${read} An instant such as 2030-01-31T09:00:00Z is valid too.`);
}

export function statsCommand(call: Call): Command {
  const command = newCommand({
    name: "stats",
    summary: "Show how runs ended by job and by time, or which errors occurred.",
    examples: [
      "stats",
      "stats --since 7d --by day --job send-mail",
      "stats --errors --since 24h --watch 10s",
    ],
  })
    .option("--since <when>", "since then: 24h, 7d, or an instant", readSince, "24h")
    .option("--by <stretch>", "hour or day (default: hour)", oneOf(["hour", "day"]))
    .option("--job <name>", "only runs of this job")
    .option("--errors", "show failed runs instead, grouped by job and error");
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

const MESSAGE_LENGTH_MAX = 60;
/** Below this a success rate is shown as trouble. */
const GOOD_RATE = 0.95;

type Given = { readonly since: string; readonly colours: Colours };

function statsPage({ overall, jobs, stretches }: Stats, { since, colours }: Given): string {
  if (overall.total === 0) return `No run has ended since ${since}.`;
  const parts = [
    `${overall.total} runs ended since ${since}: ${overall.completed} completed`,
    `${overall.failed} failed`,
    `${overall.cancelled} cancelled`,
    `success ${rateText(overall, colours)}`,
  ];
  return [
    parts.join(", "),
    "",
    totalsTable("job", jobs, ({ job }) => plain(job), colours),
    "",
    totalsTable("from", stretches, ({ at }) => shortTime(at), colours),
  ].join("\n");
}

function totalsTable<Row extends Totals>(
  title: string,
  rows: readonly Row[],
  nameOf: (row: Row) => string,
  colours: Colours,
): string {
  const head = [title, "completed", "failed", "cancelled", "success", "mean"];
  const table = newTable(head, colours);
  for (const row of rows) {
    table.push([
      nameOf(row),
      String(row.completed),
      row.failed === 0 ? "0" : colours.red(String(row.failed)),
      String(row.cancelled),
      rateText(row, colours),
      row.meanMs === null ? "" : formatDuration(row.meanMs),
    ]);
  }
  return table.toString();
}

/** Runs by hand, for tests and backfills are left out of it: there may be none to judge. */
function rateText({ successRate }: Totals, colours: Colours): string {
  if (successRate === null) return "–";
  // Rounded down, so that 99.9 % is never shown as 100 %.
  const text = `${Math.floor(successRate * 1_000) / 10} %`;
  return successRate >= GOOD_RATE ? colours.green(text) : colours.red(text);
}

function errorsPage({ errors, isCut }: ErrorReport, { since, colours }: Given): string {
  if (errors.length === 0) return `No run has failed since ${since}.`;
  const table = newTable(["runs", "job", "code", "message", "first", "last", "last run"], colours);
  for (const { runs, job, code, message, firstAt, lastAt, lastRunId } of errors) {
    table.push([
      colours.red(String(runs)),
      plain(job),
      plain(code),
      cut(plain(message), MESSAGE_LENGTH_MAX),
      shortTime(firstAt),
      shortTime(lastAt),
      lastRunId,
    ]);
  }
  const more = isCut ? "\nThere are more failed runs than were read: these are the newest." : "";
  return `${table.toString()}${more}`;
}
