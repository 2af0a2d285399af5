// Puts one tick into words for `explain`: how its time was computed, what became of it, and which rule decided that.

import { durationWords, formatDuration } from "../../shared/duration.js";
import { type CronSchedule, cronSchedule } from "../cron/cron.js";
import { type DstTouch, describeTouch, dstTouches } from "../cron/dst.js";
import { instantText, UTC, type Zone } from "../cron/zone.js";
import { describeWhen } from "../rules/describe-when.js";
import type { ScheduleDefinition } from "../rules/schedule.js";
import type { Reason } from "../rules/tick.js";
import type { WhenDefinition } from "../rules/when.js";
import {
  byWords,
  type DrawnFacts,
  type LedgerFacts,
  noteWords,
  type RecordedFacts,
  type RuleFacts,
  type TickFacts,
  timesOf,
  versionWords,
  zoneOf,
} from "./facts.js";
import { shortText, type WriteTime } from "./run.js";

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

/** How this tick follows from an interval; a cron expression needs no such words. */
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
      ? ": the first tick, which depends on no earlier run"
      : ": the previous run is not known";
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
    return `: the upper bound after the previous tick was recorded; a new time is drawn when run ${run} ends`;
  if (finishedAt > at)
    return `: the upper bound after the previous tick was recorded, as run ${run} had not ended by then`;
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

/** The clock change that touches the schedule on that day, and whether it touches this instant. */
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

/** Whether the instant is one of the skipped or repeated times, by the offset before or after the change. */
function isAt(touch: DstTouch, at: number): boolean {
  const { kind, atMs, offsetBeforeMs, offsetAfterMs, localMs } = touch;
  if (kind === "gap") return at === atMs || localMs.includes(at + offsetBeforeMs);
  const local = at + (at < atMs ? offsetBeforeMs : offsetAfterMs);
  return localMs.includes(local);
}

/** Whether the clock change decided the time of this tick. */
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

// ── each reason of the ledger: what happened, and which rule was applied ──

type ReasonWords = {
  /** Follows "was fired", "was skipped" or "was missed". */
  readonly verdict: (facts: RecordedFacts, time: WriteTime) => string;
  /** The rule that was applied, without a full stop. */
  readonly policy: (
    facts: Pick<RecordedFacts, "rule" | "standing"> & { readonly ledger?: LedgerFacts },
  ) => string;
};

/** A new reason does not compile without its words. */
export const REASON_WORDS: { readonly [R in Reason]: ReasonWords } = {
  on_time: {
    verdict: ({ rule, ledger, at }) =>
      rule.definition?.monitor ? checkedIn(ledger, at) : " on time",
    policy: ({ rule }) =>
      rule.definition?.monitor
        ? monitorWords(rule.definition)
        : `a tick that is fired within the grace${ofMs(rule.definition?.graceMs)} is on time`,
  },
  late: {
    verdict: (facts) => ` ${lateness(facts)} late, as the most recent missed tick`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  catch_up: {
    verdict: (facts) =>
      ` ${lateness(facts)} late, as one of the missed ticks that are run in order`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  stuck_reset: {
    verdict: (facts, time) => {
      const stored = facts.ledger.evidence?.nextAt;
      const what =
        typeof stored === "number"
          ? `its stored next tick was ${time(stored)}`
          : "no next tick was stored";
      return ` ${lateness(facts)} late, since the schedule was stuck: ${what}, and no instance evaluated it`;
    },
    policy: ({ rule }) =>
      `a schedule whose next tick is lost, or is five minutes overdue while instances poll, is reset: ${missedWords(rule.definition)}`,
  },
  overlap: {
    verdict: (facts, time) => `: ${obstacleName(facts, time)} was still live`,
    policy: () => 'overlap "skip": a tick that meets a live run of an earlier tick is skipped',
  },
  queue_full: {
    verdict: (facts, time) => `: ${obstacleName(facts, time)} was already waiting`,
    policy: () => 'overlap "queue": one run waits for the live one, and further ticks are skipped',
  },
  after_failure: {
    verdict: (facts, time) => {
      const { until } = facts.ledger.evidence ?? {};
      const held = until === undefined ? "" : ` until ${time(until)}`;
      return `: ${obstacleName(facts, time)} had failed, and ticks were held back${held}`;
    },
    policy: ({ rule }) => {
      const { minMs, maxMs } = rule.definition?.afterFailure ?? {};
      return `afterFailure${ofRange(minMs, maxMs)}: no tick is fired for that long after a failed run`;
    },
  },
  paused: {
    verdict: ({ ledger: { evidence } }, time) => {
      const since = evidence?.since === undefined ? "" : ` from ${time(evidence.since)}`;
      const until = evidence?.until === undefined ? "" : ` to ${time(evidence.until)}`;
      const what = evidence?.isAll === true ? "everything" : "the schedule";
      return `: ${what} was paused${byWords(evidence?.by)}${since}${until}${noteWords(evidence?.note)}`;
    },
    policy: (facts) =>
      isAllPaused(facts)
        ? "while everything is paused, no schedule fires, and the ticks of that time are not run later"
        : "a paused schedule does not fire, and its ticks are not run later",
  },
  nobody: {
    verdict: ({ ledger }, time) =>
      `: no instance evaluated it until ${time(ledger.recordedAt)}, and the missed policy does not run it late`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  too_old: {
    verdict: (facts) =>
      `: no instance evaluated it until it was ${lateness(facts)} old, which exceeds \`within\`${ofMs(facts.ledger.evidence?.withinMs)}`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  over_limit: {
    verdict: ({ ledger: { evidence } }) =>
      `: no instance evaluated it in time, and only the newest${evidence?.limit === undefined ? "" : ` ${evidence.limit}`} missed ticks are run late`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  broken: {
    verdict: ({ ledger: { evidence } }) =>
      `: the schedule could not be evaluated: ${shortText(evidence?.error ?? "no reason was kept")}`,
    policy: () =>
      "a schedule that cannot be evaluated fires nothing until it is resumed or edited; other schedules are not affected",
  },
  no_ping: {
    verdict: ({ ledger: { evidence } }, time) => {
      const { since, until, beganAt } = evidence ?? {};
      const window =
        since === undefined || until === undefined
          ? "no check-in arrived in time"
          : `no check-in arrived between ${time(since)} and ${time(until)}`;
      const began =
        beganAt === undefined
          ? ""
          : `; its start was reported at ${time(beganAt)}, its end never was`;
      return `: ${window}${began}`;
    },
    policy: ({ rule }) => monitorWords(rule.definition),
  },
};

/** The rule of monitors. */
export function monitorWords(definition: ScheduleDefinition | null): string {
  return `a monitor expects a check-in within the grace${ofMs(definition?.graceMs)} after the tick, or after the reported start; a tick without a check-in is missed`;
}

function checkedIn({ recordedAt }: LedgerFacts, at: number): string {
  const offMs = recordedAt - at;
  return offMs < 0
    ? `: it checked in ${formatDuration(-offMs)} early`
    : `: it checked in ${formatDuration(offMs)} after the tick`;
}

/** Whether a pause of everything skipped the recorded tick, or would skip a tick now. */
function isAllPaused({
  ledger,
  standing,
}: Pick<RecordedFacts, "standing"> & { readonly ledger?: LedgerFacts }): boolean {
  if (ledger) return ledger.evidence?.isAll === true;
  return standing.paused === null && standing.allPaused !== null;
}

export function missedWords(definition: ScheduleDefinition | null): string {
  if (!definition) return "the definition of that time cannot be read";
  const { run, withinMs, limit } = definition.missed;
  const within = withinMs === null ? "" : `, if at most ${durationWords(withinMs)} old`;
  switch (run) {
    case "skip":
      return 'missed "skip": missed ticks are not run late';
    case "latest":
      return `missed "latest": after downtime, only the most recent missed tick is run${within}, and none if a tick is on time`;
    case "all":
      return `missed "all": after downtime, the newest ${limit} missed ticks are run, one after the other${within}`;
  }
}

function lateness({ ledger, at }: RecordedFacts): string {
  return formatDuration(Math.max(0, ledger.recordedAt - at));
}

function obstacleName({ obstacle, ledger }: RecordedFacts, time: WriteTime): string {
  const id = ledger.evidence?.run;
  if (id === undefined) return "an earlier run";
  const of = obstacle?.nominalAt == null ? "" : ` of the tick at ${time(obstacle.nominalAt)}`;
  return `run ${id}${of}`;
}

function ofMs(ms: number | undefined): string {
  return ms === undefined ? "" : ` of ${durationWords(ms)}`;
}

function ofRange(minMs: number | undefined, maxMs: number | undefined): string {
  if (minMs === undefined || maxMs === undefined) return "";
  return minMs === maxMs
    ? ` ${durationWords(minMs)}`
    : ` ${durationWords(minMs)} to ${durationWords(maxMs)}`;
}
