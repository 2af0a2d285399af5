// Defines the audit trail: who changed what, from where, when and why. Every change that a person or a program requests has
// an entry; the scheduler's and the workers' own actions are in the ledger and the history.

import { describeWhen } from "../../schedules/rules/describe-when.js";
import type { ScheduleDefinition } from "../../schedules/rules/schedule.js";

export const VIAS = ["code", "cli", "http"] as const;

/** The author of a change. */
export type Actor = {
  /** The interface: a call in code, the command line, or HTTP. */
  readonly via: (typeof VIAS)[number];
  /** An instance, `user@host`, or the name that `authorize` returned. */
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

/** The changed thing and the verb. */
export type AuditFacts = {
  readonly verb: string;
  readonly noun: AuditNoun;
  /** The name of the schedule, run, queue, lock, calendar, instance or alert. */
  readonly name: string | null;
  readonly note?: string | null;
  /** The change in a few words, if the verb does not say it all. */
  readonly change?: string | null;
};

/** A new entry, written together with the change. */
export type AuditEntry = Actor & Required<AuditFacts>;

/** The author of a call in code without a name: the instance itself. */
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

/** The difference between two definitions of a schedule, in a few words. */
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

/** An edit may repair a definition that cannot be evaluated, for example with a removed zone: it must not fail on it. */
function whenWords(definition: ScheduleDefinition | null): string {
  try {
    if (definition) return describeWhen(definition.when);
  } catch {
    // Reported below.
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
