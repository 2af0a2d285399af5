// Explains in plain words why there was a run at an instant, or why there was none: one sentence and its evidence,
// from facts that schedules/explainer.ts has gathered. Pure, and it never decides: the outcome of a tick was decided
// when the tick was evaluated.

import type { RunId } from "../../runs/rules/run.js";
import { formatDuration } from "../../shared/duration.js";
import { describeTouch } from "../cron/dst.js";
import { describeWhen } from "../rules/describe-when.js";
import type { Overlap } from "../rules/overlap.js";
import type { ScheduleDefinition } from "../rules/schedule.js";
import { OUTCOME_OF, type Outcome, type Reason } from "../rules/tick.js";
import {
  byWords,
  type LedgerFacts,
  type NoTickFacts,
  noteWords,
  type RecordedFacts,
  type RuleFacts,
  type StandingFacts,
  type TickFacts,
  timesOf,
  type UnrecordedFacts,
  versionWords,
  zoneOf,
} from "./facts.js";
import { liveLine, obstacleLines, runLines, runOutcome, shortText, type WriteTime } from "./run.js";
import {
  computedLines,
  instantLines,
  missedWords,
  monitorWords,
  REASON_WORDS,
  ruleLine,
  touchNear,
} from "./tick.js";

export type Words = {
  readonly outcome: Outcome | "planned" | "due" | "no_tick" | "unknown";
  readonly reason: Reason | null;
  readonly text: string;
  readonly evidence: readonly string[];
};

/** A tick that the ledger has. */
export function explainRecorded(facts: RecordedFacts): Words {
  const { ledger, run, obstacle, replacedBy } = facts;
  const time = timesOf(facts.rule);
  const { reason, evidence } = ledger;
  const outcome = OUTCOME_OF[reason];
  const { verdict, policy } = REASON_WORDS[reason];
  const end = ledger.run === null ? "" : `; ${runOutcome(run)}`;
  const lines = [
    ...computedLines(facts),
    ledgerLine(facts, time),
    `Policy: ${policy(facts)}.`,
    ...pollLine(facts, time),
    ...(obstacle ? obstacleLines(obstacle, ledger.recordedAt, time) : lostObstacle(evidence?.run)),
    ...(evidence?.replaced ?? []).map((id) => `Replaced: run ${id} was cancelled for this tick.`),
    ...(run ? runLines(run, time) : lostRun(ledger.run)),
    ...(replacedBy === null ? [] : [`Replaced: by the tick at ${time(replacedBy)}.`]),
    ...aheadLines(facts, time),
    ...backfillLines(facts, time),
  ];
  const stretch = stretchWords(ledger, time);
  const text = `${tickName(facts)} was ${outcome}${stretch}${verdict(facts, time)}${end}.`;
  return { outcome, reason, text, evidence: lines };
}

/** A tick during a pause that lasts, or of a broken schedule: recorded when that ends. */
export function explainOpen(facts: UnrecordedFacts, reason: "paused" | "broken"): Words {
  const time = timesOf(facts.rule);
  const outcome = OUTCOME_OF[reason];
  return {
    outcome,
    reason,
    text: `${tickName(facts)} is ${outcome}: ${trouble(facts, time)}.`,
    evidence: [
      ...computedLines(facts),
      `Ledger: not written yet; one row is written when ${rowFollows(facts, reason)}.`,
      `Policy: ${REASON_WORDS[reason].policy(facts)}.`,
      ...facts.standing.live.map((run) => liveLine(run, time)),
      ...backfillLines(facts, time),
    ],
  };
}

function rowFollows({ standing }: TickFacts, reason: "paused" | "broken"): string {
  if (reason === "broken") return "the schedule is resumed or edited";
  return standing.paused
    ? "the schedule is resumed, edited or deleted"
    : "everything is resumed, or the schedule is edited or deleted";
}

/** A tick that is due and not recorded yet. */
export function explainDue(facts: UnrecordedFacts): Words {
  const { at, now, rule, newest } = facts;
  const time = timesOf(rule);
  const lateMs = now - at;
  const last = newest
    ? `the newest row is for the tick at ${time(newest.at)}, recorded ${time(newest.recordedAt)} by ${recorder(newest)}`
    : "the schedule has no row yet";
  const graceMs = rule.definition?.graceMs ?? 0;
  const isLate = lateMs > graceMs;
  const isWaiting = rule.definition?.monitor === true && !isLate;
  const hint = facts.standing.allPaused
    ? `${trouble(facts, time)}, and the tick is evaluated when that ends`
    : isWaiting
      ? `its check-in is expected by ${time(at + graceMs)}`
      : isLate
        ? "no instance with the scheduler on seems to be running, or none reaches the database"
        : "an instance with the scheduler on records it at its next poll";
  return {
    outcome: "due",
    reason: null,
    text: `${tickName(facts)} has been due for ${formatDuration(lateMs)} and is not recorded yet: ${hint}.`,
    evidence: [
      ...computedLines(facts),
      `Ledger: no row for this tick; ${last}.`,
      ...(isLate || isWaiting ? missedLine(rule.definition) : []),
      ...overlapLines(facts, time),
      ...jobLine(facts),
      ...backfillLines(facts, time),
    ],
  };
}

/** A tick that is still to come. */
export function explainPlanned(facts: TickFacts): Words {
  const { at, now, standing } = facts;
  const time = timesOf(facts.rule);
  const stop = stopOf(standing, at);
  const soon = `${tickName(facts)}, in ${formatDuration(at - now)}, will be`;
  const text =
    stop === null
      ? `${tickName(facts)} is planned: it is due in ${formatDuration(at - now)}.`
      : stop === "after_failure"
        ? `${soon} skipped: ${heldWords(standing, time)}.`
        : `${soon} ${OUTCOME_OF[stop]} unless that changes: ${trouble(facts, time)}.`;
  return {
    outcome: "planned",
    reason: null,
    text,
    evidence: [
      ...computedLines(facts),
      ...(stop === null ? [] : [`Policy: ${REASON_WORDS[stop].policy(facts)}.`]),
      ...overlapLines(facts, time),
      ...jobLine(facts),
    ],
  };
}

/** The reason why a tick would not fire now; null: it would. */
function stopOf(
  { paused, allPaused, broken, hold }: StandingFacts,
  at: number,
): "paused" | "broken" | "after_failure" | null {
  if (paused) return "paused";
  if (broken) return "broken";
  if (allPaused) return "paused";
  return hold && at < hold.until ? "after_failure" : null;
}

/** A past tick without a row. */
export function explainForgotten(facts: TickFacts): Words {
  const time = timesOf(facts.rule);
  return {
    outcome: "unknown",
    reason: null,
    text: `The outcome of ${uncapital(tickName(facts))} is no longer known: the ledger has no row for it.`,
    evidence: [
      ...computedLines(facts),
      `Ledger: fired ticks are kept for \`ledgerRetention\` (7 days by default), the newest 200 of a schedule and ticks that did not fire as long as runs; this tick was ${formatDuration(facts.now - facts.at)} ago.`,
      ...backfillLines(facts, time),
    ],
  };
}

/** An instant that may or may not be a tick. */
export function explainUnknowable(facts: NoTickFacts): Words {
  const { rule, standing, schedule, at } = facts;
  const time = timesOf(rule);
  const definition = rule?.definition ?? null;
  const why = definition
    ? "each of its ticks is drawn when the previous run has ended"
    : standing.broken
      ? `its definition cannot be read: ${shortText(standing.broken.error ?? "no reason was kept")}`
      : "its definition cannot be read by this version";
  return {
    outcome: "unknown",
    reason: null,
    text: `Whether ${JSON.stringify(schedule)} has a tick at ${time(at)} cannot be known: ${why}.`,
    evidence: [
      ...instantLines(at, zoneOf(rule), "Instant"),
      ...(rule ? [ruleLine(rule, null)] : []),
      ...brokenLine(standing, time),
      ...besideLines(facts),
    ],
  };
}

/** An instant that is not a tick: the rule that excludes it, and the ticks nearby. */
export function explainNoTick(facts: NoTickFacts): Words {
  const { rule, at, schedule, standing, excludedBy } = facts;
  const time = timesOf(rule ?? { definition: null });
  const name = JSON.stringify(schedule);
  const touch = rule?.definition ? touchNear(rule.definition.when, at) : null;
  const text = rule
    ? `${time(at)} is not a tick of ${name}${whyNone(facts, rule, touch)}.`
    : absence(facts, time);
  return {
    outcome: "no_tick",
    reason: null,
    text,
    evidence: [
      ...instantLines(at, zoneOf(rule), "Instant"),
      ...(rule ? [ruleLine(rule, null)] : []),
      ...(rule && excludedBy !== null ? [`Rule: ${excludedBy}.`] : []),
      ...(touch ? [`Clocks: ${describeTouch(touch.touch)}.`] : []),
      ...facts.others.map(
        (each) =>
          `Other definition: ${versionWords(each, time)}, has a tick at this instant, but was not in force then.`,
      ),
      ...besideLines(facts),
      ...pausedLine(standing, time),
      ...brokenLine(standing, time),
      ...(standing.isEnded && rule && at > rule.version.at && facts.after === null
        ? ["Ended: the schedule has no ticks left."]
        : []),
    ],
  };
}

/** Why the instant is not a tick; the strongest reason wins. */
function whyNone(
  { at, isInPattern, excludedBy, standing }: NoTickFacts,
  { definition, isCurrent, version }: RuleFacts,
  touch: ReturnType<typeof touchNear>,
): string {
  if (!definition) return "";
  if (isInPattern && excludedBy !== null)
    return `: its pattern includes this time, but a rule excludes it: ${excludedBy}`;
  if (touch?.isHere) return `: ${describeTouch(touch.touch)}`;
  const stoppedAt = standing.paused?.at ?? standing.broken?.at;
  const isStopped = isCurrent && stoppedAt !== undefined && at >= Math.max(stoppedAt, version.at);
  if (definition.when.kind === "range" && isStopped)
    return `: ${trouble({ standing }, timesOf({ definition }))}`;
  return `, which ${isCurrent ? "runs" : "then ran"} ${describeWhen(definition.when)}`;
}

function missedLine(definition: ScheduleDefinition | null): string[] {
  if (!definition) return [];
  return [`Policy: ${definition.monitor ? monitorWords(definition) : missedWords(definition)}.`];
}

const OVERLAP_WORDS: { readonly [O in Overlap]: string } = {
  skip: "if a run of an earlier tick is still live then, this tick is skipped",
  queue:
    "if a run of an earlier tick is still live then, the run of this tick waits for it; if one is already waiting, this tick is skipped",
  allow: "the run of this tick starts beside runs that are live then",
  replace:
    "if a run of an earlier tick is still live then, it is cancelled, and the run of this tick begins when it has ended",
};

/** The overlap policy for a tick that is not recorded yet, and the runs that are live. */
function overlapLines({ rule, standing }: TickFacts, time: WriteTime): string[] {
  if (rule.definition?.monitor) return [];
  const overlap = rule.definition?.overlap;
  return [
    ...(overlap ? [`Policy: overlap "${overlap}": ${OVERLAP_WORDS[overlap]}.`] : []),
    ...standing.live.map((run) => liveLine(run, time)),
  ];
}

function ledgerLine({ ledger, at }: RecordedFacts, time: WriteTime): string {
  const { reason, count, firstAt, lastAt, recordedAt } = ledger;
  const row =
    count === 1 ? "" : `, one row for ${count} ticks from ${time(firstAt)} to ${time(lastAt)}`;
  const lag = Math.max(0, recordedAt - at);
  const when =
    lag === 0
      ? recordedAt < at
        ? "before the tick"
        : "at once"
      : `${formatDuration(lag)} after the tick`;
  return `Ledger: ${OUTCOME_OF[reason]} (${reason})${row}, recorded ${time(recordedAt)}, ${when}, by ${recorder(ledger)}.`;
}

function recorder({ recordedBy }: LedgerFacts): string {
  return (
    recordedBy ??
    "a call (such as pause, resume, edit or trigger) or an instance that is no longer known"
  );
}

/** When an instance had last polled, if that matters. */
function pollLine({ ledger, at }: RecordedFacts, time: WriteTime): string[] {
  const { lastPolledAt } = ledger.evidence ?? {};
  if (lastPolledAt === undefined) return [];
  if (lastPolledAt === null)
    return ["Last poll: no earlier poll of an instance with the scheduler on is known."];
  const isAfter = lastPolledAt >= at;
  const what = isAfter
    ? "after the tick, without evaluating it"
    : `${formatDuration(at - lastPolledAt)} before the tick`;
  return [
    `Last poll: an instance with the scheduler on polled at ${time(lastPolledAt)}, ${what}; the next poll was at ${time(ledger.recordedAt)}.`,
  ];
}

function lostObstacle(id: RunId | undefined): string[] {
  return id === undefined ? [] : [`Blocked by: run ${id}, which is no longer kept.`];
}

function lostRun(id: RunId | null): string[] {
  return id === null ? [] : [`Run ${id}: no longer kept.`];
}

/** The runs that a waiting run waits for, with their holders. */
function aheadLines({ run, obstacle, standing }: RecordedFacts, time: WriteTime): string[] {
  const ahead = new Set([...(run?.waitsFor ?? []), ...(obstacle?.waitsFor ?? [])]);
  return standing.live.filter(({ id }) => ahead.has(id)).map((each) => liveLine(each, time));
}

function backfillLines({ backfills }: TickFacts, time: WriteTime): string[] {
  return backfills.map(
    ({ by, createdAt, isPast }) =>
      `Backfill: one created ${time(createdAt)}${byWords(by)} covers this tick${isPast ? " and has passed it" : ", and has not reached it yet"}.`,
  );
}

function jobLine({ standing, job }: TickFacts): string[] {
  if (standing.isJobKnown) return [];
  return [
    `Job: no instance has announced ${JSON.stringify(job)}, so the tick cannot become a run.`,
  ];
}

function besideLines({ before, after }: NoTickFacts): string[] {
  return [
    before === null ? "Before: no tick is known." : `Before: ${before}`,
    after === null ? "After: no tick is known." : `After: ${after}`,
  ];
}

function absence({ schedule, at, created, deleted }: NoTickFacts, time: WriteTime): string {
  const name = JSON.stringify(schedule);
  if (deleted) {
    const again = created
      ? `, and it was created again ${time(created.at)}${byWords(created.by)}`
      : "";
    return `${name} did not exist at ${time(at)}: it had been deleted ${time(deleted.at)}${byWords(deleted.by)}${again}.`;
  }
  const since = created ? `: it was created ${time(created.at)}${byWords(created.by)}` : "";
  return `${name} did not exist yet at ${time(at)}${since}.`;
}

function trouble(
  { standing: { paused, broken, allPaused } }: Pick<TickFacts, "standing">,
  time: WriteTime,
): string {
  if (paused)
    return `the schedule has been paused${byWords(paused.by)} since ${time(paused.at)}${noteWords(paused.note)}`;
  if (broken)
    return `the schedule has been broken since ${time(broken.at)}: ${shortText(broken.error ?? "no reason was kept")}`;
  if (allPaused)
    return `everything has been paused${byWords(allPaused.by)} since ${time(allPaused.at)}${noteWords(allPaused.note)}`;
  return "the schedule does not fire";
}

function pausedLine(standing: StandingFacts, time: WriteTime): string[] {
  const own = standing.paused ? [`Now: ${trouble({ standing }, time)}.`] : [];
  const none = { ...standing, paused: null, broken: null };
  return standing.allPaused ? [...own, `Now: ${trouble({ standing: none }, time)}.`] : own;
}

function brokenLine(standing: StandingFacts, time: WriteTime): string[] {
  return standing.broken
    ? [`Now: ${trouble({ standing: { ...standing, paused: null } }, time)}.`]
    : [];
}

function heldWords({ hold }: StandingFacts, time: WriteTime): string {
  if (!hold) return "ticks are held back";
  const who = hold.run === null ? "a run" : `run ${hold.run}`;
  return `${who} failed, and ticks are held back until ${time(hold.until)}`;
}

function stretchWords({ count, firstAt, lastAt }: LedgerFacts, time: WriteTime): string {
  return count === 1 ? "" : `, one of ${count} ticks from ${time(firstAt)} to ${time(lastAt)}`;
}

function tickName({ schedule, at, rule }: TickFacts): string {
  return `The tick of ${JSON.stringify(schedule)} at ${timesOf(rule)(at)}`;
}

function uncapital(text: string): string {
  return `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;
}
