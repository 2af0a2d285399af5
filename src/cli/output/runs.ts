// Formats runs, their items, batches and log lines for the commands: a table of many, or everything about one.

import type { Holdfast } from "../../holdfast.js";
import { waitingText } from "../../runs/pending-reason.js";
import { FAILED_OUTCOME } from "../../runs/rules/item.js";
import type { RunId, RunStatus } from "../../runs/rules/run.js";
import type { Batch } from "../../runs/runs.js";
import type { RunStep, RunStepPage } from "../../runs/step-view.js";
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
import { formatDuration } from "../../shared/duration.js";
import { type Colours, cut, EXIT, plain, type Shell } from "../shell.js";
import { type Fact, factLines, newTable, shortTime, valueText } from "./format.js";

const NOTE_LENGTH_MAX = 40;

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

const IN_ANOTHER_FACT = () => [];

export function runPage(
  run: RunDetails,
  attempts: readonly RunAttempt[],
  colours: Colours,
): string {
  const facts = Object.values(RUN_FACTS).flatMap((factsOf) => factsOf(run, colours));
  const lines = factLines(facts, colours);
  if (run.error?.stack) lines.push(...stackLines(run.error.stack).map(colours.dim));
  if (attempts.length > 0) lines.push("", attemptTable(attempts, colours));
  return lines.join("\n");
}

/**
 * The facts of the page by member of a run, in the order of the page. The compiler demands an entry for every member; one without a
 * line of its own says where it shows instead.
 */
const RUN_FACTS: {
  readonly [Member in keyof RunDetails]: (run: RunDetails, colours: Colours) => readonly Fact[];
} = {
  id: ({ id }) => [["run", id]],
  job: ({ job }) => [["job", plain(job)]],
  status: ({ status }, colours) => [["status", colours[COLOUR_OF_RUN[status]](status)]],
  waitingFor: ({ waitingFor }) => [
    ["waits", waitingFor === null ? null : plain(waitingText(waitingFor))],
  ],
  mode: ({ mode }) => [["mode", mode]],
  schedule: ({ schedule }) => [["schedule", textOrNull(schedule)]],
  nominalAt: (run) => [["tick", tickText(run)]],
  parent: ({ parent }) => [["parent", parent]],
  queue: ({ queue, priority }) => [["queue", `${plain(queue)}, priority ${priority}`]],
  priority: IN_ANOTHER_FACT, // with the queue
  attempt: ({ attempt }) => [["attempt", String(attempt)]],
  key: ({ key }) => [["key", textOrNull(key)]],
  traceId: ({ traceId }) => [["trace", traceId]],
  tags: ({ tags }) => [["tags", tags.length === 0 ? null : plain(tags.join(", "))]],
  createdAt: ({ createdAt }) => [["created", createdAt.toISOString()]],
  dueAt: ({ dueAt }) => [["due", dueAt.toISOString()]],
  startedAt: ({ startedAt }) => [["started", timeOrNull(startedAt)]],
  finishedAt: ({ finishedAt }) => [["finished", timeOrNull(finishedAt)]],
  updatedAt: IN_ANOTHER_FACT, // the latest of the times around it
  durationMs: ({ durationMs }) => [
    ["took", durationMs === null ? null : formatDuration(durationMs)],
  ],
  progress: ({ progress }) => [
    ["progress", progress && progressText(progress)],
    ["stages", progress && stagesText(progress)],
  ],
  holder: ({ holder }) => [["holder", textOrNull(holder)]],
  fence: ({ fence }) => [["fence", fence === null ? null : String(fence)]],
  leaseUntil: ({ leaseUntil }) => [["lease until", timeOrNull(leaseUntil)]],
  heartbeatAt: IN_ANOTHER_FACT, // the lease shows until when it counts
  cancelRequestedAt: (run) => [["cancelling", timeOrNull(run.cancelRequestedAt)]],
  items: (run) => [["items", itemsText(run)]],
  partial: IN_ANOTHER_FACT, // with the items
  input: ({ input }) => [["input", valueText(input)]],
  result: ({ status, result }) => [["result", status === "completed" ? valueText(result) : null]],
  error: ({ error }) => [["error", error && plain(`${error.code} ${error.message}`)]],
};

function textOrNull(text: string | null): string | null {
  return text === null ? null : plain(text);
}

function timeOrNull(at: Date | null): string | null {
  return at?.toISOString() ?? null;
}

/** The tick of the run, and how late the run was made. */
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

/** The counts of its items by outcome. */
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

// Progress of a run: a bar if the total is known, and the stages with their times.

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

// Steps and waits of a run

const COLOUR_OF_STEP = {
  waiting: "cyan",
  done: "green",
  timeout: "yellow",
  failed: "red",
  cancelled: "dim",
} as const;

export function stepPage({ steps, nextCursor }: RunStepPage, colours: Colours): string {
  const table = newTable(["step", "kind", "state", "since", "took", "note"], colours);
  for (const step of steps) {
    const { name, kind, state, startedAt, endedAt } = step;
    table.push([
      cut(plain(name), KEY_LENGTH_MAX),
      kind,
      colours[COLOUR_OF_STEP[state]](state),
      shortTime(startedAt),
      endedAt === null ? "" : formatDuration(Math.max(0, endedAt.getTime() - startedAt.getTime())),
      cut(plain(stepNote(step)), ITEMS_NOTE_LENGTH_MAX),
    ]);
  }
  const more = nextCursor === null ? "" : "\nThere are more: `runs.steps(id)` has all.";
  return `${table.toString()}${more}`;
}

function stepNote({ kind, state, until, signal, key, run, value, error }: RunStep): string {
  if (error) return error.message;
  if (state === "done" && kind !== "sleep") return valueText(value);
  const end = until === null ? "" : `until ${until.toISOString()}`;
  if (kind === "signal") return `${signal} with the key ${key}${end && `, ${end}`}`;
  return kind === "run" ? `run ${run}` : end;
}

// Items of a run

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

// Batches: the counts of each, and why entries were refused.

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

// Log lines of a run

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
  /** The JSON document, to which the run is added. */
  readonly document: object;
  readonly timeout: number | undefined;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, id, document, timeout, shell } = params;
  const run = await holdfast.runs.wait(id, timeout === undefined ? {} : { timeout });
  const attempts = await holdfast.runs.attempts(run.id);
  await shell.say(runPage(run, attempts, shell.colours));
  await shell.printJson({ ...document, run: { ...run, attempts } });
  return run.status === "completed" ? EXIT.done : EXIT.no;
}
