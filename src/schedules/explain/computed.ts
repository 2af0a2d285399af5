// How a tick was computed, in words: its local time, the definition in force, the anchor of a grid, the
// run whose end drew an interval, and the change of the clocks that touches it.

import { formatDuration } from "../../shared/duration-text.js";
import { type CronSchedule, cronSchedule } from "../cron/cron.js";
import { type DstTouch, describeTouch, dstTouches } from "../cron/dst.js";
import { UTC, type Zone } from "../cron/zone.js";
import type { ScheduleDefinition } from "../rules/schedule.js";
import type { WhenDefinition } from "../rules/when.js";
import { instantText } from "../rules/when-text.js";
import { describeWhen } from "../rules/when-words.js";
import {
  type DrawnFacts,
  type RuleFacts,
  type TickFacts,
  timesOf,
  versionWords,
  zoneOf,
} from "./facts.js";
import type { WriteTime } from "./run.js";

export function computedLines(facts: TickFacts): string[] {
  const { at, rule, drawn } = facts;
  const touch = rule.definition ? touchNear(rule.definition.when, at) : null;
  const isTouched = touch !== null && isTickOf(touch.touch, at, zoneOf(rule));
  return [
    ...instantLines(at, zoneOf(rule), "Tick"),
    ruleLine(rule, { at, drawn }),
    ...(isTouched ? [`Clocks: ${describeTouch(touch.touch)}.`] : []),
  ];
}

export function instantLines(at: number, zone: Zone, label: string): string[] {
  const local =
    zone === UTC ? "" : `, which is ${instantText(at, zone)}, ${offsetText(zone.offsetAt(at))}`;
  return [`${label}: ${new Date(at).toISOString()}${local}.`];
}

export function ruleLine(
  rule: RuleFacts,
  tick: { readonly at: number; readonly drawn: DrawnFacts | null } | null,
): string {
  const time = timesOf(rule);
  const { definition } = rule;
  if (!definition) return `Definition: ${versionWords(rule.version, time)}, which cannot be read.`;
  const { when } = definition;
  const cron = when.cron === null ? "" : `"${when.cron}", `;
  const how = tick ? computation(rule, when, tick) : "";
  return `Definition: ${cron}${describeWhen(when)}${how}; ${versionWords(rule.version, time)}.`;
}

/** How exactly this tick follows from an interval; a cron expression says it by itself. */
function computation(
  { anchorAt, version, definition }: RuleFacts,
  when: WhenDefinition,
  { at, drawn }: { readonly at: number; readonly drawn: DrawnFacts | null },
): string {
  const time = timesOf({ definition: { when } });
  if (when.kind === "grid") {
    const startMs = when.fromMs ?? anchorAt;
    const count = Math.round((at - startMs) / (when.everyMs ?? 1));
    const start = when.fromMs === null ? "its beginning" : "`from`";
    return `: ${count} ${count === 1 ? "interval" : "intervals"} after ${start} at ${time(startMs)}`;
  }
  if (when.kind !== "range") return "";
  if (!drawn) {
    const isFirst = at === when.fromMs || Math.abs(at - version.at) <= 1_000;
    return isFirst
      ? ": the first tick, which needs no run before it"
      : ": the run before it is not known";
  }
  return drawnWords(drawn, when, { at, afterFailure: definition?.afterFailure ?? null, time });
}

function drawnWords(
  { run, finishedAt, hasFailed }: DrawnFacts,
  { everyMs, everyMaxMs }: WhenDefinition,
  params: {
    readonly at: number;
    readonly afterFailure: ScheduleDefinition["afterFailure"];
    readonly time: WriteTime;
  },
): string {
  const { at, afterFailure, time } = params;
  if (finishedAt === null)
    return `: the upper bound after the tick before it was recorded; the end of run ${run} draws another time`;
  if (finishedAt > at)
    return `: the upper bound after the tick before it was recorded, as run ${run} had not ended by then`;
  const minMs = everyMs ?? 0;
  const bounds = (hasFailed && afterFailure) || { minMs, maxMs: everyMaxMs ?? minMs };
  const afterMs = at - finishedAt;
  const isDrawn = bounds.minMs <= afterMs && afterMs <= bounds.maxMs;
  const how = isDrawn ? "drawn" : "set by a resume, an edit or the end of excluded time,";
  return `: ${how} ${formatDuration(afterMs)} after the end of run ${run} at ${time(finishedAt)}${hasFailed ? ", which failed" : ""}`;
}

/** UTC+01:00 for an hour ahead of it. */
function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `UTC${offsetMs < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

const DAY_MS = 86_400_000;

/** A change of the clocks that touches the schedule on that day, and whether it does so right there. */
export function touchNear(
  when: WhenDefinition,
  at: number,
): { readonly touch: DstTouch; readonly isHere: boolean } | null {
  const schedule = cronOf(when);
  if (!schedule) return null;
  const range = { fromMs: at - 2 * DAY_MS, untilMs: at + 2 * DAY_MS, limit: 4 };
  const dateOf = (localMs: number) => Math.floor(localMs / DAY_MS);
  const local = at + schedule.zone.offsetAt(at);
  for (const touch of dstTouches(schedule, range)) {
    const isHere = isAt(touch, at);
    if (isHere || dateOf(touch.localMs[0] ?? touch.atMs) === dateOf(local))
      return { touch, isHere };
  }
  return null;
}

/** Whether the instant is one of the skipped or repeated times, by the clock before or after. */
function isAt(touch: DstTouch, at: number): boolean {
  const { kind, atMs, offsetBeforeMs, offsetAfterMs, localMs } = touch;
  if (kind === "gap") return at === atMs || localMs.includes(at + offsetBeforeMs);
  const local = at + (at < atMs ? offsetBeforeMs : offsetAfterMs);
  return localMs.includes(local);
}

/** Whether a tick is where it is because of the change. */
function isTickOf(touch: DstTouch, at: number, zone: Zone): boolean {
  const { kind, atMs, offsetBeforeMs, offsetAfterMs } = touch;
  if (kind === "gap") return at === atMs;
  const fromMs = atMs + Math.min(offsetBeforeMs, offsetAfterMs);
  const local = at + zone.offsetAt(at);
  return local >= fromMs && local < fromMs + Math.abs(offsetAfterMs - offsetBeforeMs);
}

function cronOf({ cron, timezone, dst }: WhenDefinition): CronSchedule | null {
  return cron === null ? null : cronSchedule({ cron, timezone, ...(dst ? { dst } : {}) });
}
