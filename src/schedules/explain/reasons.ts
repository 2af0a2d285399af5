// Each reason of the ledger in words: what happened, and which rule was applied.

import { formatDuration } from "../../shared/duration-text.js";
import type { ScheduleDefinition } from "../rules/schedule.js";
import type { Reason } from "../rules/tick.js";
import { durationWords } from "../rules/when-text.js";
import { byWords, type LedgerFacts, noteWords, type RecordedFacts } from "./facts.js";
import { shortText, type WriteTime } from "./run.js";

type ReasonWords = {
  /** Goes on after "was fired", "was skipped" or "was missed". */
  readonly verdict: (facts: RecordedFacts, time: WriteTime) => string;
  /** The rule that was applied, without a full stop. */
  readonly policy: (
    facts: Pick<RecordedFacts, "rule" | "standing"> & { readonly ledger?: LedgerFacts },
  ) => string;
};

/** Each reason has its words: a new one does not compile without. */
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
      const what = evidence?.isAll === true ? "everything" : "the schedule";
      return `: ${what} was paused${byWords(evidence?.by)}${since}${until}${noteWords(evidence?.note)}`;
    },
    policy: (facts) =>
      isAllPaused(facts)
        ? "while everything is paused no schedule fires, and the ticks of that time are not made up for"
        : "a paused schedule does not fire, and its ticks are not made up for",
  },
  nobody: {
    verdict: ({ ledger }, time) =>
      `: no instance judged it until ${time(ledger.recordedAt)}, and it was not among those that are made up for`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  too_old: {
    verdict: (facts) =>
      `: no instance judged it until it was ${lateness(facts)} old, more than \`within\`${ofMs(facts.ledger.evidence?.withinMs)} allows`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  over_limit: {
    verdict: ({ ledger: { evidence } }) =>
      `: no instance judged it in time, and only the newest${evidence?.limit === undefined ? "" : ` ${evidence.limit}`} are made up for`,
    policy: ({ rule }) => missedWords(rule.definition),
  },
  broken: {
    verdict: ({ ledger: { evidence } }) =>
      `: the schedule could not be evaluated: ${shortText(evidence?.error ?? "no reason was kept")}`,
    policy: () =>
      "a schedule that cannot be evaluated fires nothing until it is resumed or edited; the others go on",
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
          : `; it began at ${time(beganAt)}, and nothing was heard of its end`;
      return `: ${window}${began}`;
    },
    policy: ({ rule }) => monitorWords(rule.definition),
  },
};

/** The rule of what runs elsewhere. */
export function monitorWords(definition: ScheduleDefinition | null): string {
  return `a monitor waits for a check-in until the grace${ofMs(definition?.graceMs)} after the tick is over, or after its start if that was reported; a tick without one is missed`;
}

function checkedIn({ recordedAt }: LedgerFacts, at: number): string {
  const offMs = recordedAt - at;
  return offMs < 0
    ? `: it checked in ${formatDuration(-offMs)} early`
    : `: it checked in ${formatDuration(offMs)} after the tick`;
}

/** Of a tick that was recorded so, or of one that would be as things stand. */
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
