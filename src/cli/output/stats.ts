// Statistics and errors as pages of text for people.

import type { ErrorReport, Stats, Totals } from "../../operations/overview.js";
import { formatDuration } from "../../shared/duration-text.js";
import { type Colours, cut, plain } from "../shell.js";
import { newTable } from "./runs.js";
import { shortTime } from "./times.js";

const MESSAGE_LENGTH_MAX = 60;
/** Below this a success rate is shown as trouble. */
const GOOD_RATE = 0.95;

type Given = { readonly since: string; readonly colours: Colours };

export function statsPage({ overall, jobs, stretches }: Stats, { since, colours }: Given): string {
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
  // Rounded down: what is not all is never shown as all.
  const text = `${Math.floor(successRate * 1_000) / 10} %`;
  return successRate >= GOOD_RATE ? colours.green(text) : colours.red(text);
}

export function errorsPage({ errors, isCut }: ErrorReport, { since, colours }: Given): string {
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
  const more = isCut ? "\nThere were more failed runs than were read: these are the newest." : "";
  return `${table.toString()}${more}`;
}
