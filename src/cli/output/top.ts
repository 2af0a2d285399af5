// Reads and formats the page of `top`. It makes a fixed number of reads, each with a bounded result, however much there is.

import type { Holdfast } from "../../holdfast.js";
import type { Instance } from "../../operations/instances.js";
import type { Pause } from "../../operations/pause.js";
import type { Queue } from "../../operations/queues.js";
import type { Totals } from "../../operations/statistics.js";
import type { Run } from "../../runs/view.js";
import { formatDuration } from "../../shared/duration.js";
import { pauseText } from "../commands/pause.js";
import { type Colours, cut, plain } from "../shell.js";
import { fromNow, newTable, shortTime } from "./format.js";
import { progressText } from "./runs.js";

export type NextTick = { readonly schedule: string; readonly job: string; readonly at: Date };

export type TopObservation = {
  readonly at: Date;
  readonly database: string;
  /** The pause of everything; null without one. */
  readonly paused: Pause | null;
  readonly instances: readonly Instance[];
  readonly queues: readonly Queue[];
  /** The newest of them. */
  readonly running: readonly Run[];
  /** The soonest ticks of the schedules that were read. */
  readonly nextTicks: readonly NextTick[];
  /** The latest failed runs. */
  readonly failures: readonly Run[];
  /** How runs ended since the beginning of the previous hour. */
  readonly recent: Totals;
};

const SECTION_ROWS_MAX = 50;
/** Schedules are listed by name; the page shows the soonest ticks of this many. */
const SCHEDULES_READ_MAX = 1_000;

export async function observeAll(holdfast: Holdfast, nowMs: number): Promise<TopObservation> {
  const limit = SECTION_ROWS_MAX;
  const [paused, { instances }, queues, running, { schedules }, failed, { overall }] =
    await Promise.all([
      holdfast.paused(),
      holdfast.instances.list({ limit }),
      holdfast.queues.list(),
      holdfast.runs.list({ status: "running", limit }),
      holdfast.schedules.list({ status: "active", limit: SCHEDULES_READ_MAX }),
      holdfast.runs.list({ status: "failed", limit }),
      holdfast.stats({ since: "1h" }),
    ]);
  return {
    at: new Date(nowMs),
    database: holdfast.settings().database,
    paused,
    instances: instances.filter(({ isLive }) => isLive),
    queues,
    running: running.runs,
    nextTicks: schedules
      .flatMap(({ name, job, nextAt }) =>
        nextAt === null ? [] : [{ schedule: name, job: job ?? "", at: nextAt }],
      )
      .sort((a, b) => a.at.getTime() - b.at.getTime())
      .slice(0, limit),
    failures: failed.runs,
    recent: overall,
  };
}

/** Runs that ended per minute between two observations; null if unknown. */
export function endedEachMinute(before: TopObservation | null, now: TopObservation): number | null {
  if (before === null) return null;
  const minutes = (now.at.getTime() - before.at.getTime()) / 60_000;
  const ended = now.recent.total - before.recent.total;
  // After a full hour its runs leave the count.
  return minutes <= 0 || ended < 0 ? null : ended / minutes;
}

// The page fits the rows of the terminal; every section gets a fair share of them.

/** The first line, the pause of everything, the sums, and the last line that a terminal keeps free. */
const HEAD_ROWS = 4;
/** A gap, a title and the names of the columns. */
const SECTION_HEAD_ROWS = 3;
const NOTE_LENGTH_MAX = 60;
const HOLDER_LENGTH_MAX = 30;
const ROWS_DEFAULT = 10;

export type TopSetting = {
  readonly colours: Colours;
  /** Rows of the terminal; null: no limit, ten for each section. */
  readonly rows: number | null;
  /** A note in the first line: the interval, or why there is no news. */
  readonly note: string;
  readonly eachMinute: number | null;
};

type Section = { readonly title: string; readonly head: string[]; readonly rows: string[][] };

export function topPage(observation: TopObservation, setting: TopSetting): string {
  const { colours, rows, note } = setting;
  const sections = [
    instances(observation, colours),
    queues(observation, colours),
    running(observation),
    nextTicks(observation),
    failures(observation, colours),
  ];
  const room = rows === null ? null : rows - HEAD_ROWS - sections.length * SECTION_HEAD_ROWS;
  const shares = shareRows(
    sections.map((section) => Math.max(1, section.rows.length)),
    room,
  );
  return [
    `${colours.bold("holdfast top")}  ${plain(observation.database)}  ${shortTime(observation.at)}  ${colours.dim(note)}`,
    ...(observation.paused
      ? [colours.yellow(`Everything is paused ${pauseText(observation.paused)}.`)]
      : []),
    summary(observation, setting),
    ...sections.flatMap((section, at) => ["", ...sectionLines(section, shares[at] ?? 1, colours)]),
  ].join("\n");
}

/** No section gets more than it needs; the rest goes to those that need more. */
export function shareRows(needs: readonly number[], room: number | null): readonly number[] {
  if (room === null) return needs.map((need) => Math.min(need, ROWS_DEFAULT));
  const shares = needs.map(() => 1);
  let left = room - needs.length;
  for (let hasGiven = true; left > 0 && hasGiven; ) {
    hasGiven = false;
    for (const [at, need] of needs.entries()) {
      if (left <= 0 || (shares[at] ?? 0) >= need) continue;
      shares[at] = (shares[at] ?? 0) + 1;
      left -= 1;
      hasGiven = true;
    }
  }
  return shares;
}

function summary(observation: TopObservation, { colours, eachMinute }: TopSetting): string {
  const sum = (of: "ready" | "waiting" | "running") =>
    observation.queues.reduce((total, queue) => total + queue[of], 0);
  const { completed, failed, successRate } = observation.recent;
  const rate = successRate === null ? "" : ` (${(successRate * 100).toFixed(1)} %)`;
  const failedText = `${failed} failed`;
  return [
    `${observation.instances.length} ${observation.instances.length === 1 ? "instance" : "instances"}`,
    `${sum("running")} running, ${sum("ready")} ready, ${sum("waiting")} waiting`,
    `recently ${completed} completed, ${failed > 0 ? colours.red(failedText) : failedText}${rate}`,
    ...(eachMinute === null
      ? []
      : [`${eachMinute.toFixed(eachMinute < 10 ? 1 : 0)} runs end per minute`]),
  ].join("; ");
}

function sectionLines({ title, head, rows }: Section, share: number, colours: Colours): string[] {
  if (rows.length === 0) return [colours.bold(title), colours.dim("none")];
  const shown = rows.slice(0, share);
  const table = newTable(head, colours);
  table.push(...shown);
  const more = rows.length > shown.length ? colours.dim(`  ${shown.length} of ${rows.length}`) : "";
  return [
    `${colours.bold(title)}${more}`,
    ...table
      .toString()
      .split("\n")
      .map((line) => line.trimEnd()),
  ];
}

function instances({ instances: all, at }: TopObservation, colours: Colours): Section {
  return {
    title: "Instances",
    head: ["instance", "app", "release", "holds", "fires", "seen"],
    rows: all.map(({ id, app, release, held, isScheduler, seenAt }) => [
      cut(plain(shortId(id)), HOLDER_LENGTH_MAX),
      plain(app ?? ""),
      plain(release ?? ""),
      String(held),
      isScheduler ? "yes" : colours.dim("no"),
      ago(seenAt, at),
    ]),
  };
}

function queues({ queues: all }: TopObservation, colours: Colours): Section {
  return {
    title: "Queues",
    head: ["queue", "ready", "waiting", "running", ""],
    rows: all.map(({ name, ready, waiting, running: held, pausedAt, pauseNote }) => [
      plain(name),
      String(ready),
      String(waiting),
      String(held),
      pausedAt === null
        ? ""
        : colours.yellow(cut(plain(`paused ${pauseNote ?? ""}`.trim()), NOTE_LENGTH_MAX)),
    ]),
  };
}

function running({ running: all, at }: TopObservation): Section {
  return {
    title: "Running",
    head: ["run", "job", "for", "attempt", "holder", "progress"],
    rows: all.map(({ id, job, startedAt, attempt, holder, progress }) => [
      id,
      plain(job),
      startedAt === null ? "" : ago(startedAt, at),
      String(attempt),
      cut(plain(shortId(holder ?? "")), HOLDER_LENGTH_MAX),
      progress === null ? "" : cut(progressText(progress), NOTE_LENGTH_MAX),
    ]),
  };
}

function nextTicks({ nextTicks: all, at }: TopObservation): Section {
  return {
    title: "Next ticks",
    head: ["when", "schedule", "job", "tick"],
    rows: all.map(({ schedule, job, at: tick }) => [
      fromNow(tick, at.getTime()),
      plain(schedule),
      plain(job),
      shortTime(tick),
    ]),
  };
}

function failures({ failures: all, at }: TopObservation, colours: Colours): Section {
  return {
    title: "Last failures",
    head: ["run", "job", "ended", "error"],
    rows: all.map(({ id, job, finishedAt, error }) => [
      id,
      plain(job),
      finishedAt === null ? "" : fromNow(finishedAt, at.getTime()),
      colours.red(
        cut(plain(`${error?.code ?? ""} ${error?.message ?? ""}`.trim()), NOTE_LENGTH_MAX),
      ),
    ]),
  };
}

/** The id of an instance without its uuid. */
function shortId(instance: string): string {
  return instance.replace(/:[0-9a-f]{8}-[0-9a-f-]{27}$/, "");
}

function ago(from: Date, now: Date): string {
  return formatDuration(Math.max(0, Math.round((now.getTime() - from.getTime()) / 1_000)) * 1_000);
}
