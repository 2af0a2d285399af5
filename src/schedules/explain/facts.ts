// Types the facts that schedules/explainer.ts gathers for an explanation, and words what all explanations share: times,
// versions, authors and notes.

import type { RunId } from "../../runs/rules/run.js";
import { instantText, requireZone, UTC, type Zone } from "../cron/zone.js";
import type { ScheduleDefinition } from "../rules/schedule.js";
import type { TickEntry } from "../rules/tick.js";
import type { WhenDefinition } from "../rules/when.js";
import { type RunFacts, shortText, type WriteTime } from "./run.js";

/** The row of the ledger: a tick, or the stretch that has it. */
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
  readonly isCurrent: boolean;
};

/** The run of the tick before, whose end draws the next interval. */
export type DrawnFacts = {
  readonly run: RunId;
  readonly finishedAt: number | null;
  readonly hasFailed: boolean;
};

/** The present state of the schedule. */
export type StandingFacts = {
  readonly paused: {
    readonly at: number;
    readonly by: string | null;
    readonly note: string | null;
  } | null;
  /** A pause of everything that lasts. */
  readonly allPaused: {
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

export type InstantFacts = {
  readonly schedule: string;
  readonly job: string;
  readonly at: number;
  readonly now: number;
};

export type TickFacts = InstantFacts & {
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
  /** The run of the tick; null if there is none, or if it is no longer kept. */
  readonly run: RunFacts | null;
  /** The run that blocked the tick, or whose failure held it back. */
  readonly obstacle: RunFacts | null;
  /** The tick whose run replaced this one's. */
  readonly replacedBy: number | null;
};

export type UnrecordedFacts = TickFacts & {
  /** The newest row of the ledger. */
  readonly newest: (LedgerFacts & { readonly at: number }) | null;
};

export type NoTickFacts = InstantFacts & {
  /** Null: the schedule did not exist then. */
  readonly rule: RuleFacts | null;
  /** Whether the bare pattern has a tick at the instant. */
  readonly isInPattern: boolean;
  /** The bound, date or calendar that covers the instant, in words. */
  readonly excludedBy: string | null;
  /** The outcomes of the neighbouring ticks, each in one sentence. */
  readonly before: string | null;
  readonly after: string | null;
  /** Other definitions that have a tick at this instant, but were not in force. */
  readonly others: readonly VersionFacts[];
  /** The versions that ended and began the time in which the schedule did not exist; null if there is none. */
  readonly created: VersionFacts | null;
  readonly deleted: VersionFacts | null;
  readonly standing: StandingFacts;
};

export function timesOf(
  rule: { readonly definition: { readonly when: WhenDefinition } | null } | null,
): WriteTime {
  const zone = zoneOf(rule);
  return (atMs) => instantText(atMs, zone);
}

export function zoneOf(
  rule: { readonly definition: { readonly when: WhenDefinition } | null } | null,
): Zone {
  return rule?.definition ? requireZone(rule.definition.when.timezone, "timezone") : UTC;
}

export function versionWords({ version, kind, at, by }: VersionFacts, time: WriteTime): string {
  return `version ${version}, ${kind} ${time(at)}${byWords(by)}`;
}

export function byWords(by: string | null | undefined): string {
  return by === null || by === undefined ? "" : ` by ${by}`;
}

export function noteWords(note: string | null | undefined): string {
  return note === null || note === undefined ? "" : ` (${JSON.stringify(shortText(note))})`;
}
