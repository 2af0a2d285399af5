// Runs as pages of text for people: one table of many, or everything about one.

import Table from "cli-table3";
import type { Holdfast } from "../../holdfast.js";
import { waitingText } from "../../runs/pending-reason.js";
import { FAILED_OUTCOME } from "../../runs/rules/item.js";
import type { RunId, RunStatus } from "../../runs/rules/run.js";
import type { Batch } from "../../runs/runs.js";
import type {
  ItemPage,
  Run,
  RunAttempt,
  RunDetails,
  RunItem,
  RunLogEntry,
  RunPage,
  RunProgress,
} from "../../runs/view.js";
import { formatDuration } from "../../shared/duration-text.js";
import { type Colours, cut, EXIT, plain, type Shell } from "../shell.js";
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

// How far a run is, for people: a bar where the end is known, and the stages with their times.

const BAR_WIDTH = 20;

/** sort [#####---------------] 25 of 100 (25 %) */
export function progressText({ stage, done, total }: RunProgress): string {
  const parts = stage === null ? [] : [plain(stage)];
  if (done !== null && total !== null && total > 0) {
    const part = Math.min(1, done / total);
    const full = Math.floor(part * BAR_WIDTH);
    parts.push(`[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}]`);
    parts.push(`${done} of ${total} (${Math.floor(part * 100)} %)`);
  } else if (done !== null) parts.push(String(done));
  else if (total !== null) parts.push(`of ${total}`);
  return parts.join(" ");
}

function stagesText({ stages }: RunProgress): string | null {
  if (stages.length === 0) return null;
  return stages.map(({ stage, at }) => `${plain(stage)} (${shortTime(at)})`).join(", ");
}

// Items of a run as a table for people.

const KEY_LENGTH_MAX = 40;
const ITEMS_NOTE_LENGTH_MAX = 60;

export function itemListPage({ items, nextCursor }: ItemPage, colours: Colours): string {
  if (items.length === 0) return "No items.";
  const more = nextCursor === null ? "" : `\nMore: add --cursor ${nextCursor}`;
  return `${itemTable(items, colours)}${more}`;
}

export function itemTable(items: readonly RunItem[], colours: Colours): string {
  const table = newTable(["item", "outcome", "attempt", "started", "took", "note"], colours);
  for (const item of items) {
    const note = item.error ? item.error.message : valueText(item.value);
    const outcome = plain(item.outcome);
    table.push([
      cut(plain(item.key), KEY_LENGTH_MAX),
      item.outcome === FAILED_OUTCOME ? colours.red(outcome) : outcome,
      String(item.attempt),
      shortTime(item.startedAt),
      formatDuration(item.durationMs),
      cut(plain(note), ITEMS_NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString();
}

// Batches as a page of text for people: how each stands, and why some entries have no child.

const ERRORS_SHOWN = 10;
const MESSAGE_LENGTH_MAX = 100;

export function batchPage(batches: readonly Batch[], colours: Colours): string {
  const head = ["batch", "scheduled", "refused", "completed", "failed", "cancelled", "then"];
  const table = newTable(head, colours);
  for (const batch of batches) {
    table.push([
      plain(batch.name),
      String(batch.scheduled),
      String(batch.errors.length),
      String(batch.completed),
      String(batch.failed),
      String(batch.cancelled),
      batch.then ?? "",
    ]);
  }
  return [table.toString(), ...batches.flatMap(refusals)].join("\n");
}

function refusals({ name, errors }: Batch): string[] {
  const lines = errors
    .slice(0, ERRORS_SHOWN)
    .map(
      ({ index, code, message }) =>
        `${plain(name)}[${index}]: ${code} ${cut(plain(message), MESSAGE_LENGTH_MAX)}`,
    );
  const rest = errors.length - lines.length;
  return rest > 0 ? [...lines, `${plain(name)}: ${rest} more refused; --json has all`] : lines;
}

// Log lines of a run, one line each, for people.

const COLOUR_OF_LEVEL = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

/** 2026-01-15T12:00:01.000Z #1 info  looked at it {"market":"eu"} */
export function logLine(
  { at, attempt, level, message, fields }: RunLogEntry,
  colours: Colours,
): string {
  const text = Object.keys(fields).length === 0 ? "" : ` ${plain(JSON.stringify(fields))}`;
  const shown = colours[COLOUR_OF_LEVEL[level]](level.padEnd(5));
  return `${colours.dim(`${at.toISOString()} #${attempt}`)} ${shown} ${plain(message)}${colours.dim(text)}`;
}

// `--wait`

/** Waits for the end of a new run and prints it. Returns the exit code: done if the run completed. */
export async function waitForRun(params: {
  readonly holdfast: Holdfast;
  readonly id: RunId;
  /** The document without the run. */
  readonly answer: object;
  readonly timeout: number | undefined;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, id, answer, timeout, shell } = params;
  const run = await holdfast.runs.wait(id, timeout === undefined ? {} : { timeout });
  const attempts = await holdfast.runs.attempts(run.id);
  await shell.say(runPage(run, attempts, shell.colours));
  await shell.printJson({ ...answer, run: { ...run, attempts } });
  return run.status === "completed" ? EXIT.done : EXIT.no;
}
