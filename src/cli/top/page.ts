// One look at everything that goes on, for `top`: a fixed number of questions, each with a bounded answer,
// however much there is.

import type { Holdfast } from "../../holdfast.js";
import type { Instance, Totals } from "../../operations/overview.js";
import type { Pause } from "../../operations/pause.js";
import type { Queue } from "../../operations/queues.js";
import type { Run } from "../../runs/view.js";
import { formatDuration } from "../../shared/duration-text.js";
import { pauseText } from "../commands/pause.js";
import { newTable, progressText } from "../output/runs.js";
import { fromNow, shortTime } from "../output/times.js";
import { type Colours, cut, plain } from "../shell.js";

export type NextTick = { readonly schedule: string; readonly job: string; readonly at: Date };

export type TopObservation = {
  readonly at: Date;
  readonly database: string;
  /** The pause of everything, where it is on. */
  readonly paused: Pause | null;
  readonly instances: readonly Instance[];
  readonly queues: readonly Queue[];
  /** The newest of them. */
  readonly running: readonly Run[];
  /** The soonest of the schedules that were looked at. */
  readonly nextTicks: readonly NextTick[];
  /** The last that ended so. */
  readonly failures: readonly Run[];
  /** How runs ended since the hour before this one began. */
  readonly recent: Totals;
};

const SECTION_ROWS_MAX = 50;
/** Schedules are listed by name: the soonest of so many are shown. */
const SCHEDULES_READ_MAX = 1_000;

export async function lookAtAll(holdfast: Holdfast, nowMs: number): Promise<TopObservation> {
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

/** What ended between two looks, for each minute; null where nothing can be said of it. */
export function endedEachMinute(before: TopObservation | null, now: TopObservation): number | null {
  if (before === null) return null;
  const minutes = (now.at.getTime() - before.at.getTime()) / 60_000;
  const ended = now.recent.total - before.recent.total;
  // An hour that has passed takes its runs out of the count.
  return minutes <= 0 || ended < 0 ? null : ended / minutes;
}

// What `top` shows, as one page that fits the rows there are: everybody gets a fair part of them.

/** The first line, the pause of everything, the sums, and the last line that a terminal keeps free. */
const HEAD_ROWS = 4;
/** A gap, a title and the names of the columns. */
const SECTION_HEAD_ROWS = 3;
const NOTE_LENGTH_MAX = 60;
const HOLDER_LENGTH_MAX = 30;
const ROWS_DEFAULT = 10;

export type TopSetting = {
  readonly colours: Colours;
  /** Of the terminal; null: as many as there are, ten of a kind. */
  readonly rows: number | null;
  /** What is said in the first line: the rhythm, or why there is no news. */
  readonly note: string;
  readonly eachMinute: number | null;
};

type Section = { readonly title: string; readonly head: string[]; readonly rows: string[][] };

export function topPage(look: TopObservation, setting: TopSetting): string {
  const { colours, rows, note } = setting;
  const sections = [
    instances(look, colours),
    queues(look, colours),
    running(look),
    nextTicks(look),
    failures(look, colours),
  ];
  const room = rows === null ? null : rows - HEAD_ROWS - sections.length * SECTION_HEAD_ROWS;
  const shares = shareRows(
    sections.map((section) => Math.max(1, section.rows.length)),
    room,
  );
  return [
    `${colours.bold("holdfast top")}  ${plain(look.database)}  ${shortTime(look.at)}  ${colours.dim(note)}`,
    ...(look.paused ? [colours.yellow(`Everything is paused ${pauseText(look.paused)}.`)] : []),
    summary(look, setting),
    ...sections.flatMap((section, at) => ["", ...sectionLines(section, shares[at] ?? 1, colours)]),
  ].join("\n");
}

/** Nobody gets more than they need; what is left over goes to those who need more. */
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

function summary(look: TopObservation, { colours, eachMinute }: TopSetting): string {
  const sum = (of: "ready" | "waiting" | "running") =>
    look.queues.reduce((total, queue) => total + queue[of], 0);
  const { completed, failed, successRate } = look.recent;
  const rate = successRate === null ? "" : ` (${(successRate * 100).toFixed(1)} %)`;
  const failedText = `${failed} failed`;
  return [
    `${look.instances.length} ${look.instances.length === 1 ? "instance" : "instances"}`,
    `${sum("running")} running, ${sum("ready")} ready, ${sum("waiting")} waiting`,
    `lately ${completed} completed, ${failed > 0 ? colours.red(failedText) : failedText}${rate}`,
    ...(eachMinute === null
      ? []
      : [`${eachMinute.toFixed(eachMinute < 10 ? 1 : 0)} end each minute`]),
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

/** Without the uuid, which nobody reads. */
function shortId(instance: string): string {
  return instance.replace(/:[0-9a-f]{8}-[0-9a-f-]{27}$/, "");
}

function ago(from: Date, now: Date): string {
  return formatDuration(Math.max(0, Math.round((now.getTime() - from.getTime()) / 1_000)) * 1_000);
}
