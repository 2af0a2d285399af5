// Formats schedules, ticks and plans for the commands: a table of many, or everything about one.

import type { Holdfast } from "../../holdfast.js";
import { requireZone, UTC, type Zone } from "../../schedules/cron/zone.js";
import type { PlannedChange } from "../../schedules/declared.js";
import { VANISHED_BY } from "../../schedules/edit.js";
import type { Upserted } from "../../schedules/options.js";
import type { Preview } from "../../schedules/preview.js";
import type { Outcome } from "../../schedules/rules/tick.js";
import type { Backfill, Schedule, ScheduleStatus, Tick } from "../../schedules/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration.js";
import { quoteShort } from "../../shared/suggest.js";
import { type Colours, cut, plain, type Shell } from "../shell.js";
import {
  type Fact,
  factLines,
  fromNow,
  localTime,
  newTable,
  shortTime,
  valueText,
} from "./format.js";
import { COLOUR_OF_RUN } from "./runs.js";

const WHEN_LENGTH_MAX = 40;

const COLOUR_OF_SCHEDULE: Readonly<Record<ScheduleStatus, "green" | "red" | "yellow" | "dim">> = {
  active: "green",
  paused: "yellow",
  ended: "dim",
  broken: "red",
};

/** The colours of a page, and the current time for relative times. */
export type Setting = { readonly colours: Colours; readonly nowMs: number };

export type ScheduleDetails = {
  readonly schedule: Schedule;
  /** Null if its definition cannot be evaluated. */
  readonly preview: Preview | null;
  readonly ticks: readonly Tick[];
  readonly versionCount: number;
  readonly backfill: Backfill | null;
};

export function scheduleListPage(
  page: { readonly schedules: readonly Schedule[]; readonly nextCursor: string | null },
  { colours, nowMs }: Setting,
): string {
  const { schedules, nextCursor } = page;
  if (schedules.length === 0) return "No schedules.";
  const table = newTable(["name", "job", "when", "status", "next", "", "last"], colours);
  for (const schedule of schedules) {
    const { nextAt, lastStatus } = schedule;
    table.push([
      plain(schedule.name),
      schedule.monitor ? colours.dim("(monitor)") : plain(schedule.job),
      cut(plain(schedule.description), WHEN_LENGTH_MAX),
      statusText(schedule, colours),
      nextAt === null ? "" : fromNow(nextAt, nowMs),
      nextAt === null ? "" : colours.dim(shortTime(nextAt)),
      lastStatus === null ? "" : colours[COLOUR_OF_RUN[lastStatus]](lastStatus),
    ]);
  }
  const more = nextCursor === null ? "" : `\nMore: add --cursor ${quoted(nextCursor)}`;
  return `${table.toString().replace(/(?<! ) +$/gm, "")}${more}`;
}

export function schedulePage(details: ScheduleDetails, setting: Setting): string {
  const { colours } = setting;
  const { schedule, preview, ticks } = details;
  const facts: Fact[] = [
    ["schedule", plain(schedule.name)],
    ["status", statusText(schedule, colours)],
    ["job", schedule.monitor ? null : plain(schedule.job)],
    ["monitor", schedule.monitor ? "watches remote work that checks in" : null],
    ["when", plain(schedule.description)],
    ["input", schedule.monitor ? null : valueText(schedule.input)],
    [schedule.monitor ? "check-in" : "last run", lastRunText(schedule, setting)],
    ["began", beganText(schedule, setting)],
    ["made by", plain(originText(schedule))],
    ["version", versionText(details, setting)],
  ];
  return [
    ...noticeLines(details, setting),
    ...factLines(facts, colours),
    "",
    colours.bold("Rules"),
    ...factLines(ruleFacts(schedule), colours),
    "",
    colours.bold(schedule.status === "paused" ? "Next ticks, if it is resumed" : "Next ticks"),
    preview === null ? "None can be computed." : previewText(preview, schedule, setting),
    "",
    colours.bold("Last ticks"),
    ticks.length === 0 ? "None yet." : tickTable(ticks, { colours, isOfOne: true }),
  ].join("\n");
}

/** The next ticks with local time, and notes about clock changes that affect them. */
export function previewText(
  { ticks, notes }: Preview,
  schedule: Pick<Schedule, "timezone">,
  { colours, nowMs }: Setting,
): string {
  if (ticks.length === 0) return "No tick follows.";
  const zone = zoneOf(schedule);
  const table = newTable(["tick", "local time", "from now"], colours);
  for (const tick of ticks) {
    table.push([tick.toISOString(), localTime(tick.getTime(), zone), fromNow(tick, nowMs)]);
  }
  const lines = notes.map((note) => colours.yellow(`Note: ${note}`));
  return [table.toString().replace(/(?<! ) +$/gm, ""), ...lines].join("\n");
}

export function statusText({ status }: Pick<Schedule, "status">, colours: Colours): string {
  return colours[COLOUR_OF_SCHEDULE[status]](status);
}

/** Notices that come before everything else: broken, paused, held back, backfill. */
function noticeLines({ schedule, backfill }: ScheduleDetails, { colours, nowMs }: Setting) {
  const lines: string[] = [];
  const { pausedAt, pausedBy, pauseNote, brokenAt, brokenError, heldUntil } = schedule;
  if (brokenAt !== null) {
    const why = plain(brokenError ?? "its definition cannot be evaluated");
    lines.push(colours.red(`Broken since ${shortTime(brokenAt)}: ${why}`));
    lines.push("Change it, or resume it once the cause is gone.");
  }
  if (pausedAt !== null) {
    const by = pausedBy === null ? "" : ` by ${plain(pausedBy)}`;
    const note = pauseNote === null ? "" : `: ${plain(pauseNote)}`;
    const since = `${shortTime(pausedAt)} (${fromNow(pausedAt, nowMs)})`;
    lines.push(colours.yellow(`Paused since ${since}${by}${note}`));
  }
  if (heldUntil !== null && heldUntil.getTime() > nowMs) {
    lines.push(colours.yellow(`Ticks before ${shortTime(heldUntil)} are held back: a run failed.`));
  }
  if (backfill !== null)
    lines.push(colours.yellow(`Backfill in progress: ${backfillText(backfill)}.`));
  return lines.length === 0 ? [] : [...lines, ""];
}

/** "12 of 40 ticks: 9 runs made, 3 passed over" */
export function backfillText({ made, passed, total }: Backfill): string {
  const runs = `${made} run${made === 1 ? "" : "s"} made`;
  const over = passed === 0 ? "" : `, ${passed} passed over`;
  return `${made + passed} of ${total} tick${total === 1 ? "" : "s"}: ${runs}${over}`;
}

function ruleFacts(schedule: Schedule): Fact[] {
  const { cron, every, at, dst, from, until, exclude, calendars, missed, priority } = schedule;
  const list = (values: readonly string[]) => (values.length ? plain(values.join(", ")) : null);
  return [
    ["cron", cron],
    ["every", every],
    ["at", at?.toISOString() ?? null],
    ["timezone", schedule.timezone],
    ["dst", dst && `gap ${dst.gap}, overlap ${dst.overlap}`],
    ["from", from?.toISOString() ?? null],
    ["until", until?.toISOString() ?? null],
    ["exclude", list(exclude)],
    ["calendars", list(calendars)],
    ["overlap", schedule.monitor ? null : schedule.overlap],
    ["missed", schedule.monitor ? null : missedText(missed)],
    ["after failure", schedule.afterFailure],
    ["grace", schedule.grace],
    ["priority", priority === null ? null : String(priority)],
    ["queue", schedule.queue === null ? null : plain(schedule.queue)],
    ["tags", list(schedule.tags)],
    ["alerts", schedule.alerts === null ? null : plain(JSON.stringify(schedule.alerts))],
  ];
}

function missedText({ run, within, limit }: Schedule["missed"]): string {
  const most = run === "all" ? `, at most ${limit}` : "";
  return `${run}${most}${within === null ? "" : `, within ${within}`}`;
}

function lastRunText(schedule: Schedule, { colours, nowMs }: Setting): string | null {
  const { lastRunId, lastStatus, lastTickAt } = schedule;
  if (lastRunId === null || lastStatus === null) return null;
  const of = lastTickAt === null ? "" : `, tick of ${shortTime(lastTickAt)}`;
  const ago = lastTickAt === null ? "" : ` (${fromNow(lastTickAt, nowMs)})`;
  return `${lastRunId} ${colours[COLOUR_OF_RUN[lastStatus]](lastStatus)}${of}${ago}`;
}

function beganText({ beganAt }: Schedule, { nowMs }: Setting): string | null {
  if (beganAt === null) return null;
  return `${shortTime(beganAt)} (${fromNow(beganAt, nowMs)}), not ended yet`;
}

function originText({ source, app, release }: Schedule): string {
  const of = app === null ? "" : ` of ${app}`;
  if (source !== "code") return `a call${of}`;
  return `code${of}${release === null ? "" : `, release ${release}`}`;
}

function versionText({ schedule, versionCount }: ScheduleDetails, { nowMs }: Setting): string {
  const { version, updatedAt } = schedule;
  const kept = `${versionCount} version${versionCount === 1 ? "" : "s"} kept`;
  return `${version} (${kept}), changed ${shortTime(updatedAt)} (${fromNow(updatedAt, nowMs)})`;
}

function zoneOf({ timezone }: Pick<Schedule, "timezone">): Zone {
  try {
    return requireZone(timezone, "timezone");
  } catch {
    return UTC; // Only a newer runtime knows this zone.
  }
}

/** Quotes a name with spaces for the shell. */
function quoted(text: string): string {
  return /^[\w.:@/-]+$/.test(text) ? text : `'${plain(text).replaceAll("'", "'\\''")}'`;
}

// The ledger: the outcome of each tick, and its reason.

const NOTE_LENGTH_MAX = 60;

const COLOUR_OF_OUTCOME: Readonly<Record<Outcome, "green" | "yellow" | "red">> = {
  fired: "green",
  skipped: "yellow",
  missed: "red",
};

type TableParams = { readonly colours: Colours; readonly isOfOne: boolean };

export function tickListPage(
  page: { readonly ticks: readonly Tick[]; readonly nextCursor: string | null },
  params: TableParams,
): string {
  if (page.ticks.length === 0) return "No ticks.";
  const more = page.nextCursor === null ? "" : `\nMore: add --cursor '${plain(page.nextCursor)}'`;
  return `${tickTable(page.ticks, params)}${more}`;
}

function tickTable(ticks: readonly Tick[], { colours, isOfOne }: TableParams): string {
  const columns = ["tick", "outcome", "reason", "late", "run", "note"];
  const table = newTable(isOfOne ? columns : ["schedule", ...columns], colours);
  for (const tick of ticks) {
    const { at, reason, lateMs, runId } = tick;
    table.push([
      ...(isOfOne ? [] : [plain(tick.schedule)]),
      shortTime(at),
      outcomeText(tick, colours),
      reason,
      lateMs === null ? "" : formatDuration(lateMs),
      runId ?? "",
      cut(plain(noteOf(tick)), NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString().replace(/(?<! ) +$/gm, "");
}

/** A fired tick also shows if its run failed or was cancelled. */
function outcomeText({ outcome, runStatus }: Tick, colours: Colours): string {
  if (runStatus === "failed") return colours.red(`${outcome}, failed`);
  if (runStatus === "cancelled") return colours.yellow(`${outcome}, cancelled`);
  return colours[COLOUR_OF_OUTCOME[outcome]](outcome);
}

/** The length of a stretch, who paused, and why. */
function noteOf({ count, lastAt, evidence }: Tick): string {
  const stretch = count > 1 ? `${count} ticks until ${shortTime(lastAt)}` : "";
  const by = evidence?.by ? `by ${evidence.by}` : "";
  const why = evidence?.note ?? evidence?.error ?? "";
  return [stretch, by, why].filter((part) => part !== "").join("; ");
}

// Plans of `plan` and `apply`: one line for each schedule, and the ticks that move.

/** `isEffective`: applying it changes something. */
export type Change = PlannedChange & { readonly isEffective: boolean };

type ChangeTexts = { readonly planned: string; readonly done: string };

const CHANGE_TEXTS: Readonly<Record<PlannedChange["change"], ChangeTexts>> = {
  created: { planned: "would be created", done: "created" },
  edited: { planned: "would be changed", done: "changed" },
  older: {
    planned: "would be restored over a newer definition",
    done: "restored over a newer definition",
  },
  unchanged: { planned: "unchanged", done: "unchanged" },
  foreign: {
    planned: "unchanged: another app, or a call, made a schedule of this name",
    done: "unchanged: another app, or a call, made a schedule of this name",
  },
  vanished: {
    planned: "no longer declared: would be paused",
    done: "no longer declared: paused",
  },
};
const VANISHED_ONLY = "no longer declared: unchanged";

export async function plannedChanges(
  holdfast: Holdfast,
  planned: readonly PlannedChange[],
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  for (const each of planned) {
    changes.push({ ...each, isEffective: await isEffective(holdfast, each) });
  }
  return changes;
}

async function isEffective(
  holdfast: Holdfast,
  { schedule, change }: PlannedChange,
): Promise<boolean> {
  if (change !== "vanished") return change !== "unchanged" && change !== "foreign";
  // `apply` pauses a vanished schedule only if its app has a name and it is not paused yet.
  const found = await holdfast.schedules.get(schedule);
  return found !== null && found.app !== null && found.pausedAt === null;
}

export function planPage(
  changes: readonly Change[],
  { colours, isDone }: { readonly colours: Colours; readonly isDone: boolean },
): string {
  if (changes.length === 0) return "The code declares no schedules.";
  const width = Math.max(...changes.map(({ schedule }) => plain(schedule).length)) + 2;
  const lines = changes.flatMap((each) => [
    `${plain(each.schedule).padEnd(width)}${changeText(each, { colours, isDone })}`,
    ...movedLines(each, colours),
  ]);
  const count = changes.filter((each) => each.isEffective).length;
  const outcome = isDone ? "changed" : "would change";
  const which = count === 0 ? "Nothing" : `${count} schedule${count === 1 ? "" : "s"}`;
  return [...lines, `${which} ${outcome}.`].join("\n");
}

function changeText(
  { change, isEffective }: Change,
  { colours, isDone }: { readonly colours: Colours; readonly isDone: boolean },
): string {
  if (change === "vanished" && !isEffective) return colours.dim(VANISHED_ONLY);
  const text = CHANGE_TEXTS[change][isDone ? "done" : "planned"];
  if (change === "foreign") return colours.yellow(text);
  return isEffective ? text : colours.dim(text);
}

/** Ticks that disappear, and new ones. */
function movedLines({ ticksBefore, ticksAfter }: Change, colours: Colours): string[] {
  const before = ticksBefore.map(shortTime);
  const after = ticksAfter.map(shortTime);
  return [
    ...before.filter((each) => !after.includes(each)).map((each) => colours.red(`  - ${each}`)),
    ...after.filter((each) => !before.includes(each)).map((each) => colours.green(`  + ${each}`)),
  ];
}

// Output after a schedule was created or changed: its description, its next tick, and warnings.

export async function sayUpserted(params: {
  readonly upserted: Upserted;
  readonly outcome: string;
  readonly shell: Shell;
}): Promise<void> {
  const { upserted, outcome, shell } = params;
  const { schedule, warnings } = upserted;
  const yellow = (text: string) => shell.colours.yellow(plain(text));
  const lines = [
    `Schedule ${quoteShort(schedule.name)} ${outcome}: ${plain(schedule.description)}.`,
    nextText(schedule),
    ...warnings.map((warning) => yellow(`Warning: ${warning}`)),
  ];
  await shell.say(lines.join("\n"));
  await shell.printJson(upserted);
}

/** "Next tick: 2026-03-08 07:00:00Z, in 3 h." */
export function nextText({ nextAt, status }: Pick<Schedule, "nextAt" | "status">): string {
  if (nextAt !== null)
    return `Next tick: ${shortTime(nextAt)}, ${fromNow(nextAt, systemClock.wallMs())}.`;
  return status === "paused" ? "It is paused: no tick until it is resumed." : "No tick follows.";
}

/** A note if code declares the schedule and may undo a change by hand. Null for one that vanished from the code. */
export function codeNote(schedule: Schedule, change: "changed" | "deleted"): string | null {
  if (schedule.source !== "code" || schedule.pausedBy === VANISHED_BY) return null;
  const where = `It is declared in code${schedule.app === null ? "" : ` of ${plain(schedule.app)}`}`;
  return change === "changed"
    ? `${where}: this change lasts until the definition there changes.`
    : `${where}: the next start there creates it again. Remove it from the code, or pause it.`;
}
