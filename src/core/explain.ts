// Why there was a run at an instant, or why there was none, in plain words. The facts were gathered
// before (engine/explain.ts); here they become one sentence and the lines that it rests on. Pure, and
// it decides nothing: what became of a tick was decided when it was judged.

import { type CronSchedule, cronSchedule } from "./cron.js";
import { type DstTouch, describeTouch, dstTouches } from "./cron-dst.js";
import { formatDuration } from "./duration-text.js";
import {
  liveLine,
  obstacleLines,
  type RunFacts,
  runLines,
  runOutcome,
  shortText,
  type WriteTime,
} from "./explain-run.js";
import type { Overlap } from "./overlap.js";
import type { RunId } from "./run.js";
import type { ScheduleDefinition } from "./schedule.js";
import { OUTCOME_OF, type Outcome, type Reason, type TickEntry } from "./tick.js";
import type { WhenDefinition } from "./when-definition.js";
import { durationWords, instantText } from "./when-text.js";
import { describeWhen } from "./when-words.js";
import { requireZone, UTC, type Zone } from "./zone.js";

/** What the ledger has: a tick, or the stretch that it belongs to. */
export type LedgerFacts = TickEntry & {
  readonly recordedAt: number;
  readonly recordedBy: string | null;
};

export type VersionFacts = {
  readonly version: number;
  readonly kind: "created" | "edited" | "deleted" | "recreated";
  readonly at: number;
  readonly by: string | null;
};

/** The definition in force at the instant. */
export type RuleFacts = {
  readonly version: VersionFacts;
  /** Null: this version of the library cannot read it. */
  readonly definition: ScheduleDefinition | null;
  /** Where a grid without `from` begins. */
  readonly anchorAt: number;
};

/** The run of the tick before, whose end draws the next interval. */
export type DrawnFacts = {
  readonly run: RunId;
  readonly finishedAt: number | null;
  readonly hasFailed: boolean;
};

/** How the schedule stands now. */
export type StandingFacts = {
  readonly paused: {
    readonly at: number;
    readonly by: string | null;
    readonly note: string | null;
  } | null;
  readonly broken: { readonly at: number; readonly error: string | null } | null;
  readonly hold: { readonly until: number; readonly run: RunId | null } | null;
  readonly isEnded: boolean;
  readonly isJobKnown: boolean;
  readonly live: readonly RunFacts[];
};

export type AskedFacts = {
  readonly schedule: string;
  readonly job: string;
  readonly at: number;
  readonly now: number;
};

export type TickFacts = AskedFacts & {
  readonly rule: RuleFacts;
  /** Set for intervals that are drawn, where the tick before is known. */
  readonly drawn: DrawnFacts | null;
  readonly standing: StandingFacts;
  /** Backfills whose range has this tick. */
  readonly backfills: readonly BackfillFacts[];
};

export type BackfillFacts = {
  readonly by: string | null;
  readonly createdAt: number;
  readonly isPast: boolean;
};

export type RecordedFacts = TickFacts & {
  readonly ledger: LedgerFacts;
  /** The run that it became; null if there is none, or if it is no longer kept. */
  readonly run: RunFacts | null;
  /** The run that stood in the way, or whose failure held the tick back. */
  readonly obstacle: RunFacts | null;
};

export type UnrecordedFacts = TickFacts & {
  /** The newest row of the ledger. */
  readonly newest: (LedgerFacts & { readonly at: number }) | null;
};

export type NoTickFacts = AskedFacts & {
  /** Null: the schedule did not exist then. */
  readonly rule: RuleFacts | null;
  /** Whether the bare pattern has a tick there. */
  readonly isInPattern: boolean;
  /** The bound, date or calendar that covers the instant, in words. */
  readonly excludedBy: string | null;
  /** How the ticks beside it fared, each in one sentence. */
  readonly before: string | null;
  readonly after: string | null;
  /** Other definitions that have a tick at this instant, but were not in force. */
  readonly others: readonly VersionFacts[];
  /** What ended the time in which it did not exist, and what began it; null where nothing did. */
  readonly created: VersionFacts | null;
  readonly deleted: VersionFacts | null;
  readonly standing: StandingFacts;
};

export type Words = {
  readonly outcome: Outcome | "planned" | "due" | "no_tick" | "unknown";
  readonly reason: Reason | null;
  readonly text: string;
  readonly evidence: readonly string[];
};

/** A tick that the ledger has. */
export function explainRecorded(facts: RecordedFacts): Words {
  const { ledger, run, obstacle } = facts;
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
    ...backfillLines(facts, time),
  ];
  const stretch = stretchWords(ledger, time);
  const text = `${tickName(facts)} was ${outcome}${stretch}${verdict(facts, time)}${end}.`;
  return { outcome, reason, text, evidence: lines };
}

/** A tick of a pause that lasts, or of a schedule that is broken: recorded when that ends. */
export function explainOpen(facts: UnrecordedFacts, reason: "paused" | "broken"): Words {
  const time = timesOf(facts.rule);
  const outcome = OUTCOME_OF[reason];
  return {
    outcome,
    reason,
    text: `${tickName(facts)} is ${outcome}: ${trouble(facts, time)}.`,
    evidence: [
      ...computedLines(facts),
      `Ledger: not written yet; one row follows when the schedule is ${reason === "paused" ? "resumed, edited or deleted" : "resumed or edited"}.`,
      `Policy: ${REASON_WORDS[reason].policy(facts)}.`,
      ...facts.standing.live.map((run) => liveLine(run, time)),
      ...backfillLines(facts, time),
    ],
  };
}

/** A tick whose time has come, and that nobody has recorded yet. */
export function explainDue(facts: UnrecordedFacts): Words {
  const { at, now, rule, standing, newest } = facts;
  const time = timesOf(rule);
  const lateMs = now - at;
  const last = newest
    ? `the newest row is for the tick at ${time(newest.at)}, recorded ${time(newest.recordedAt)} by ${recorder(newest)}`
    : "it has no row at all";
  const graceMs = rule.definition?.graceMs ?? 0;
  const isLate = lateMs > graceMs;
  const hint = isLate
    ? "no instance with the scheduler on seems to be running, or none reaches the database"
    : "an instance with the scheduler on records it with its next poll";
  return {
    outcome: "due",
    reason: null,
    text: `${tickName(facts)} is due since ${formatDuration(lateMs)} and not recorded yet: ${hint}.`,
    evidence: [
      ...computedLines(facts),
      `Ledger: nothing about this tick; ${last}.`,
      ...(isLate ? missedLine(rule.definition) : []),
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
  const isTroubled = standing.paused !== null || standing.broken !== null;
  const isHeld = standing.hold !== null && at < standing.hold.until;
  const text = isTroubled
    ? `${tickName(facts)}, in ${formatDuration(at - now)}, will be ${standing.paused ? "skipped" : "missed"} unless that changes: ${trouble(facts, time)}.`
    : isHeld
      ? `${tickName(facts)}, in ${formatDuration(at - now)}, will be skipped: ${heldWords(standing, time)}.`
      : `${tickName(facts)} is planned: it is due in ${formatDuration(at - now)}.`;
  return {
    outcome: "planned",
    reason: null,
    text,
    evidence: [...computedLines(facts), ...overlapLines(facts, time), ...jobLine(facts)],
  };
}

/** A tick that should have a row and has none. */
export function explainForgotten(facts: TickFacts): Words {
  const time = timesOf(facts.rule);
  return {
    outcome: "unknown",
    reason: null,
    text: `What became of ${uncapital(tickName(facts))} is no longer known: the ledger has no row for it.`,
    evidence: [
      ...computedLines(facts),
      `Ledger: rows are kept for \`ledgerRetention\` (7 days unless set otherwise); this tick was ${formatDuration(facts.now - facts.at)} ago.`,
      ...backfillLines(facts, time),
    ],
  };
}

/** An instant of which nobody can say whether it is a tick. */
export function explainUnknowable(facts: NoTickFacts): Words {
  const { rule, standing, schedule, at } = facts;
  const time = timesOf(rule);
  const definition = rule?.definition ?? null;
  const why = definition
    ? "its ticks are drawn one by one, each when the run before it has ended"
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

/** An instant that is no tick: which rule says so, and which ticks are near. */
export function explainNoTick(facts: NoTickFacts): Words {
  const { rule, at, schedule, standing, isInPattern, excludedBy } = facts;
  const time = timesOf(rule ?? { definition: null });
  const name = JSON.stringify(schedule);
  const touch = rule?.definition ? touchNear(rule.definition.when, at) : null;
  const text = !rule
    ? absence(facts, time)
    : isInPattern && excludedBy !== null
      ? `${time(at)} is no tick of ${name}: its pattern has one there, but a rule leaves it out: ${excludedBy}.`
      : touch?.isHere
        ? `${time(at)} is no tick of ${name}: ${describeTouch(touch.touch)}.`
        : `${time(at)} is no tick of ${name}${rule.definition ? `, which runs ${describeWhen(rule.definition.when)}` : ""}.`;
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

type ReasonWords = {
  /** Goes on after "was fired", "was skipped" or "was missed". */
  readonly verdict: (facts: RecordedFacts, time: WriteTime) => string;
  /** The rule that was applied, without a full stop. */
  readonly policy: (
    facts: Pick<RecordedFacts, "rule"> & { readonly ledger?: LedgerFacts },
  ) => string;
};

/** Each reason has its words: a new one does not compile without. */
export const REASON_WORDS: { readonly [R in Reason]: ReasonWords } = {
  on_time: {
    verdict: () => " on time",
    policy: ({ rule }) =>
      `a tick that is fired within the grace${ofMs(rule.definition?.graceMs)} is on time`,
  },
  late: {
    verdict: (facts) =>
      ` ${lateness(facts)} late, as the newest of those that nobody had fired in time`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  catch_up: {
    verdict: (facts) =>
      ` ${lateness(facts)} late, in its turn of those that nobody had fired in time`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  stuck_reset: {
    verdict: (facts, time) => {
      const stored = facts.ledger.evidence?.nextAt;
      const what =
        typeof stored === "number"
          ? `its next tick stood at ${time(stored)}`
          : "it had no next tick stored";
      return ` ${lateness(facts)} late, since the schedule was stuck: ${what}, and nobody judged it`;
    },
    policy: ({ rule }) =>
      `a schedule whose next tick is lost, or five minutes overdue while instances poll, is set right: ${missedWords(rule.definition)}`,
  },
  overlap: {
    verdict: (facts, time) => `: ${obstacleName(facts, time)} was still live`,
    policy: () => 'overlap "skip": a tick that meets a live run of an earlier tick is skipped',
  },
  queue_full: {
    verdict: (facts, time) => `: ${obstacleName(facts, time)} was waiting already`,
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
      return `afterFailure${ofRange(minMs, maxMs)}: so long after a failed run no tick is fired`;
    },
  },
  paused: {
    verdict: ({ ledger: { evidence } }, time) => {
      const since = evidence?.since === undefined ? "" : ` from ${time(evidence.since)}`;
      const until = evidence?.until === undefined ? "" : ` to ${time(evidence.until)}`;
      return `: the schedule was paused${byWords(evidence?.by)}${since}${until}${noteWords(evidence?.note)}`;
    },
    policy: () => "a paused schedule does not fire, and its ticks are not made up for",
  },
  nobody: {
    verdict: ({ ledger }, time) =>
      `: nobody judged it in time, and when it was looked at, at ${time(ledger.recordedAt)}, it was not to be made up for`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  too_old: {
    verdict: (facts) =>
      `: nobody judged it in time, and it was ${lateness(facts)} old when it was looked at, more than \`within\`${ofMs(facts.ledger.evidence?.withinMs)} allows`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  over_limit: {
    verdict: ({ ledger: { evidence } }) =>
      `: nobody judged it in time, and only the newest${evidence?.limit === undefined ? "" : ` ${evidence.limit}`} are made up for`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  broken: {
    verdict: ({ ledger: { evidence } }) =>
      `: the schedule could not be evaluated: ${shortText(evidence?.error ?? "no reason was kept")}`,
    policy: () =>
      "a schedule that cannot be evaluated fires nothing until it is resumed or edited; the others go on",
  },
  no_ping: {
    verdict: () => ": no ping came in time from whoever should have run it",
    policy: () =>
      "a tick that an outside runner has to report is missed when its ping does not come",
  },
};

function missedWords(definition: ScheduleDefinition | null): string {
  if (!definition) return "the definition of that time cannot be read";
  const { run, withinMs, limit } = definition.missed;
  const within = withinMs === null ? "" : `, if not older than ${durationWords(withinMs)}`;
  switch (run) {
    case "skip":
      return 'missed "skip": a tick that nobody fired in time is not fired late';
    case "latest":
      return `missed "latest": of the ticks that nobody fired in time only the newest is fired late${within}, and none if one is on time`;
    case "all":
      return `missed "all": the newest ${limit} of the ticks that nobody fired in time are fired late, one after the other${within}`;
  }
}

function missedLine(definition: ScheduleDefinition | null): string[] {
  return definition ? [`Policy: ${missedWords(definition)}.`] : [];
}

const OVERLAP_WORDS: { readonly [O in Overlap]: string } = {
  skip: "if a run of an earlier tick is still live then, this tick is skipped",
  queue:
    "if a run of an earlier tick is still live then, the run of this one waits for it; if one waits already, this tick is skipped",
  allow: "if other runs are live then, the run of this one goes beside them",
  replace:
    "if a run of an earlier tick is still live then, it is cancelled, and the run of this one begins when it has ended",
};

/** What would happen to a tick whose time has not come, and whom it would meet. */
function overlapLines({ rule, standing }: TickFacts, time: WriteTime): string[] {
  const overlap = rule.definition?.overlap;
  return [
    ...(overlap ? [`Policy: overlap "${overlap}": ${OVERLAP_WORDS[overlap]}.`] : []),
    ...standing.live.map((run) => liveLine(run, time)),
  ];
}

function computedLines(facts: TickFacts): string[] {
  const { at, rule, drawn } = facts;
  const touch = rule.definition ? touchNear(rule.definition.when, at) : null;
  const isTouched = touch !== null && isTickOf(touch.touch, at, zoneOf(rule));
  return [
    ...instantLines(at, zoneOf(rule), "Tick"),
    ruleLine(rule, { at, drawn }),
    ...(isTouched ? [`Clocks: ${describeTouch(touch.touch)}.`] : []),
  ];
}

function instantLines(at: number, zone: Zone, label: string): string[] {
  const local =
    zone === UTC ? "" : `, which is ${instantText(at, zone)}, ${offsetText(zone.offsetAt(at))}`;
  return [`${label}: ${new Date(at).toISOString()}${local}.`];
}

function ruleLine(
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
  { anchorAt, version }: RuleFacts,
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
  const { run, finishedAt } = drawn;
  if (finishedAt === null || finishedAt > at)
    return `: the upper bound after the tick before it was recorded, as run ${run} had not ended by then`;
  return `: drawn ${formatDuration(at - finishedAt)} after the end of run ${run} at ${time(finishedAt)}${drawn.hasFailed ? ", which failed" : ""}`;
}

function ledgerLine({ ledger, at }: RecordedFacts, time: WriteTime): string {
  const { reason, count, firstAt, lastAt, recordedAt } = ledger;
  const row =
    count === 1 ? "" : `, one row for ${count} ticks from ${time(firstAt)} to ${time(lastAt)}`;
  const lag = Math.max(0, recordedAt - at);
  const when = lag === 0 ? "at once" : `${formatDuration(lag)} after the tick`;
  return `Ledger: ${OUTCOME_OF[reason]} (${reason})${row}, recorded ${time(recordedAt)}, ${when}, by ${recorder(ledger)}.`;
}

function recorder({ recordedBy }: LedgerFacts): string {
  return (
    recordedBy ??
    "a call (such as pause, resume, edit or trigger) or an instance that is no longer known"
  );
}

/** When somebody had last looked, where that matters. */
function pollLine({ ledger, at }: RecordedFacts, time: WriteTime): string[] {
  const { lastPolledAt } = ledger.evidence ?? {};
  if (lastPolledAt === undefined) return [];
  if (lastPolledAt === null)
    return ["Last poll: when an instance with the scheduler on had polled before is not known."];
  const isAfter = lastPolledAt >= at;
  const what = isAfter
    ? "after the tick, without judging it"
    : `${formatDuration(at - lastPolledAt)} before the tick`;
  return [
    `Last poll: an instance with the scheduler on had polled last at ${time(lastPolledAt)}, ${what}; the next look was at ${time(ledger.recordedAt)}.`,
  ];
}

function lostObstacle(id: RunId | undefined): string[] {
  return id === undefined ? [] : [`In the way: run ${id}, which is no longer kept.`];
}

function lostRun(id: RunId | null): string[] {
  return id === null ? [] : [`Run ${id}: no longer kept.`];
}

function backfillLines({ backfills }: TickFacts, time: WriteTime): string[] {
  return backfills.map(
    ({ by, createdAt, isPast }) =>
      `Backfill: one of ${time(createdAt)}${byWords(by)} covers this tick${isPast ? " and has come past it" : ", and has not come to it yet"}.`,
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
      ? `, and it was made again ${time(created.at)}${byWords(created.by)}`
      : "";
    return `${name} did not exist at ${time(at)}: it had been deleted ${time(deleted.at)}${byWords(deleted.by)}${again}.`;
  }
  const since = created ? `: it was created ${time(created.at)}${byWords(created.by)}` : "";
  return `${name} did not exist yet at ${time(at)}${since}.`;
}

function trouble(
  { standing: { paused, broken } }: Pick<TickFacts, "standing">,
  time: WriteTime,
): string {
  if (paused)
    return `the schedule has been paused${byWords(paused.by)} since ${time(paused.at)}${noteWords(paused.note)}`;
  if (broken)
    return `the schedule has been broken since ${time(broken.at)}: ${shortText(broken.error ?? "no reason was kept")}`;
  return "the schedule does not fire";
}

function pausedLine(standing: StandingFacts, time: WriteTime): string[] {
  return standing.paused ? [`Now: ${trouble({ standing }, time)}.`] : [];
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

function obstacleName({ obstacle, ledger }: RecordedFacts, time: WriteTime): string {
  const id = ledger.evidence?.run;
  if (id === undefined) return "an earlier run";
  const of = obstacle?.nominalAt == null ? "" : ` of the tick at ${time(obstacle.nominalAt)}`;
  return `run ${id}${of}`;
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

function lateness({ ledger, at }: RecordedFacts): string {
  return formatDuration(Math.max(0, ledger.recordedAt - at));
}

function versionWords({ version, kind, at, by }: VersionFacts, time: WriteTime): string {
  return `version ${version}, ${kind} ${time(at)}${byWords(by)}`;
}

function byWords(by: string | null | undefined): string {
  return by === null || by === undefined ? "" : ` by ${by}`;
}

function noteWords(note: string | null | undefined): string {
  return note === null || note === undefined ? "" : ` (${JSON.stringify(shortText(note))})`;
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

/** UTC+01:00 for an hour ahead of it. */
function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `UTC${offsetMs < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function timesOf(
  rule: { readonly definition: { readonly when: WhenDefinition } | null } | null,
): WriteTime {
  const zone = zoneOf(rule);
  return (atMs) => instantText(atMs, zone);
}

function zoneOf(
  rule: { readonly definition: { readonly when: WhenDefinition } | null } | null,
): Zone {
  return rule?.definition ? requireZone(rule.definition.when.timezone, "timezone") : UTC;
}

const DAY_MS = 86_400_000;

/** A change of the clocks that touches the schedule on that day, and whether it does so right there. */
function touchNear(
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
