// Runs as pages of text for people: one table of many, or everything about one.

import Table from "cli-table3";
import { waitingText } from "../../runs/pending-reason.js";
import type { RunStatus } from "../../runs/rules/run.js";
import type { Run, RunAttempt, RunDetails, RunPage } from "../../runs/run-view.js";
import { formatDuration } from "../../shared/duration-text.js";
import { type Colours, cut, plain } from "../shell.js";
import { progressText, stagesText } from "./progress.js";
import { shortTime } from "./times.js";

const NOTE_LENGTH_MAX = 40;
const VALUE_LENGTH_MAX = 4_000;
const FACT_WIDTH = 13;

/** A name and what is to be said of it; null: nothing. */
export type Fact = readonly [name: string, value: string | null];

export const COLOUR_OF_RUN: Readonly<
  Record<RunStatus, "green" | "red" | "yellow" | "cyan" | "dim">
> = {
  pending: "cyan",
  running: "yellow",
  completed: "green",
  failed: "red",
  cancelled: "dim",
};

export function runListPage({ runs, nextCursor }: RunPage, colours: Colours): string {
  if (runs.length === 0) return "No runs.";
  const table = newTable(["id", "job", "status", "attempt", "created", "took", "note"], colours);
  for (const run of runs) {
    table.push([
      run.id,
      plain(run.job),
      colours[COLOUR_OF_RUN[run.status]](run.status),
      String(run.attempt),
      shortTime(run.createdAt),
      run.durationMs === null ? "" : formatDuration(run.durationMs),
      cut(plain(noteOf(run)), NOTE_LENGTH_MAX),
    ]);
  }
  const more = nextCursor === null ? "" : `\nMore: add --cursor ${nextCursor}`;
  return `${table.toString()}${more}`;
}

export function runPage(
  run: RunDetails,
  attempts: readonly RunAttempt[],
  colours: Colours,
): string {
  const facts: Fact[] = [
    ["run", run.id],
    ["job", plain(run.job)],
    ["status", colours[COLOUR_OF_RUN[run.status]](run.status)],
    ["waits", run.waitingFor === null ? null : plain(waitingText(run.waitingFor))],
    ["mode", run.mode],
    ["schedule", run.schedule === null ? null : plain(run.schedule)],
    ["tick", tickText(run)],
    ["parent", run.parent],
    ["queue", `${plain(run.queue)}, priority ${run.priority}`],
    ["attempt", String(run.attempt)],
    ["key", run.key === null ? null : plain(run.key)],
    ["trace", run.traceId],
    ["tags", run.tags.length === 0 ? null : plain(run.tags.join(", "))],
    ["created", run.createdAt.toISOString()],
    ["due", run.dueAt.toISOString()],
    ["started", run.startedAt?.toISOString() ?? null],
    ["finished", run.finishedAt?.toISOString() ?? null],
    ["took", run.durationMs === null ? null : formatDuration(run.durationMs)],
    ["progress", run.progress === null ? null : progressText(run.progress)],
    ["stages", run.progress === null ? null : stagesText(run.progress)],
    ["holder", run.holder === null ? null : plain(run.holder)],
    ["fence", run.fence === null ? null : String(run.fence)],
    ["lease until", run.leaseUntil?.toISOString() ?? null],
    ["cancel asked", run.cancelRequestedAt?.toISOString() ?? null],
    ["items", itemsText(run)],
    ["input", valueText(run.input)],
    ["result", run.status === "completed" ? valueText(run.result) : null],
    ["error", run.error === null ? null : plain(`${run.error.code} ${run.error.message}`)],
  ];
  const lines = factLines(facts, colours);
  if (run.error?.stack) lines.push(...stackLines(run.error.stack).map(colours.dim));
  if (attempts.length > 0) lines.push("", attemptTable(attempts, colours));
  return lines.join("\n");
}

/** One fact a line, its name first; without those that are not there. */
export function factLines(facts: readonly Fact[], colours: Colours): string[] {
  return facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${colours.dim(name.padEnd(FACT_WIDTH))}${value}`);
}

/** The tick that the run was made for, and how long after it. */
function tickText({ nominalAt, createdAt, mode }: Run): string | null {
  if (nominalAt === null) return null;
  const at = nominalAt.toISOString();
  if (mode !== "scheduled") return at;
  const lateMs = Math.max(0, createdAt.getTime() - nominalAt.getTime());
  return `${at}, ${formatDuration(lateMs)} late`;
}

function attemptTable(attempts: readonly RunAttempt[], colours: Colours): string {
  const table = newTable(["attempt", "fence", "ended", "started", "took", "note"], colours);
  for (const each of attempts) {
    table.push([
      String(each.attempt),
      String(each.fence),
      each.end,
      shortTime(each.startedAt),
      formatDuration(Math.max(0, each.endedAt.getTime() - each.startedAt.getTime())),
      cut(plain(each.error?.message ?? ""), NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString();
}

/** A table without lines, its columns two spaces apart. */
export function newTable(head: string[], colours: Colours) {
  const blank = ["top", "bottom", "mid", "left", "right"].flatMap((side) => [
    side,
    `${side}-mid`,
    `${side}-left`,
    `${side}-right`,
  ]);
  return new Table({
    head: head.map((each) => colours.dim(each)),
    chars: { ...Object.fromEntries(blank.map((side) => [side, ""])), middle: "  " },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
}

/** How many of its items turned out how. */
function itemsText({ items: { total, byOutcome }, partial }: Run): string | null {
  if (total === 0) return null;
  const parts = Object.entries(byOutcome).map(([outcome, count]) => `${count} ${plain(outcome)}`);
  return `${total}: ${parts.join(", ")}${partial ? " (partial)" : ""}`;
}

function noteOf(run: Run): string {
  if (run.error) return run.error.message;
  if (run.key !== null) return `key ${run.key}`;
  return run.tags.join(" ");
}

function stackLines(stack: string): string[] {
  return stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .map((line) => `    ${plain(line).trim()}`);
}

export function valueText(value: unknown): string {
  return cut(plain(JSON.stringify(value) ?? "undefined"), VALUE_LENGTH_MAX);
}
