// The audit trail: who changed what, from where, when and why. One entry for every change that a person
// or a program asks for; what the scheduler and the workers do by themselves has the ledger and history.

import type { ScheduleDefinition } from "../../schedules/rules/schedule.js";
import { describeWhen } from "../../schedules/rules/when-words.js";

export const VIAS = ["code", "cli", "http"] as const;

/** Who asks. */
export type Actor = {
  /** By which way: a call in code, the command line, or HTTP. */
  readonly via: (typeof VIAS)[number];
  /** An instance, `user@host`, or the name that `authorize` answered. */
  readonly who: string;
  /** Over HTTP: the scope that opened the route. */
  readonly scope: string | null;
  /** Over HTTP: where the request came from, and its id. */
  readonly address: string | null;
  readonly requestId: string | null;
};

export const AUDIT_NOUNS = [
  "schedule",
  "run",
  "queue",
  "lock",
  "calendar",
  "instance",
  "alert",
  "session",
  "key",
  "access",
  "everything",
] as const;
export type AuditNoun = (typeof AUDIT_NOUNS)[number];

/** What was changed. */
export type AuditFacts = {
  readonly verb: string;
  readonly noun: AuditNoun;
  /** Of the schedule, run, queue, lock, calendar, instance or alert. */
  readonly name: string | null;
  readonly note?: string | null;
  /** The change in a few words, where there is more to say than the verb. */
  readonly change?: string | null;
};

/** One entry to be, written with the change itself. */
export type AuditEntry = Actor & Required<AuditFacts>;

/** A call in code that says nothing about who asks: the instance itself. */
export function codeActor(who: string): Actor {
  return { via: "code", who, scope: null, address: null, requestId: null };
}

const WORDS_MAX = 500;

export function auditEntry(actor: Actor, facts: AuditFacts, by?: string | null): AuditEntry {
  const { note = null, change = null } = facts;
  const words = change === null || change.length <= WORDS_MAX ? change : cut(change);
  return { ...actor, ...facts, who: by ?? actor.who, note, change: words };
}

function cut(text: string): string {
  return `${text.slice(0, WORDS_MAX - 1)}…`;
}

type Defined = { readonly job: string; readonly input: string; readonly definition: string };

/** How a schedule differs from what it was, in a few words. */
export function scheduleChange(before: Defined | null, after: Defined): string {
  const now = definitionOf(after);
  const when = whenWords(now);
  if (!before) return `job ${after.job}, ${when}`;
  const was = definitionOf(before);
  const parts: string[] = [];
  if (before.job !== after.job) parts.push(`job ${before.job} → ${after.job}`);
  const wasWhen = whenWords(was);
  if (wasWhen !== when) parts.push(`${wasWhen} → ${when}`);
  const members = Object.keys(now ?? {}) as (keyof ScheduleDefinition)[];
  const others = members.filter(
    (member) => JSON.stringify(was?.[member]) !== JSON.stringify(now?.[member]),
  );
  const named = others.filter((member) => member !== "when" || wasWhen === when);
  if (named.length > 0) parts.push(`${named.join(", ")} changed`);
  if (before.input !== after.input) parts.push("input changed");
  return parts.length === 0 ? "brought up to its declaration" : parts.join("; ");
}

/** An edit mends what cannot be evaluated, a zone that is no more for example: it must not fail over it. */
function whenWords(definition: ScheduleDefinition | null): string {
  try {
    if (definition) return describeWhen(definition.when);
  } catch {
    // Said below.
  }
  return "an unreadable definition";
}

function definitionOf({ definition }: Defined): ScheduleDefinition | null {
  try {
    return JSON.parse(definition) as ScheduleDefinition;
  } catch {
    return null;
  }
}
