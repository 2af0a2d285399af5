// Decides which alerts to open, to keep and to resolve. At most one is open for each kind and subject. Very many new alerts
// of a kind become one: ten thousand schedules without a scheduler need one message. Pure.

import { type AlertKind, alertKey, type Finding, type OpenAlert } from "./alert.js";
import * as messages from "./messages.js";
import type { AlertRules } from "./rules.js";

/** More new alerts of a kind at once become one. */
export const APART_MAX = 20;
/** An alert without a rule is resolved after this time: another instance may still have the rule. */
const UNWATCHED_MS = 60 * 60_000;

export type AlertPlan = {
  readonly opens: readonly Finding[];
  /** Open ones whose condition still holds. */
  readonly holds: readonly { readonly id: string; readonly finding: Finding }[];
  readonly resolves: readonly { readonly alert: OpenAlert; readonly message: string }[];
};

export function planAlerts(params: {
  readonly found: readonly Finding[];
  readonly open: readonly OpenAlert[];
  readonly rules: AlertRules;
  /** Kinds for which some schedule has a rule of its own. */
  readonly ownKinds: ReadonlySet<AlertKind>;
  readonly now: number;
}): AlertPlan {
  const { open, rules, ownKinds, now } = params;
  const openByKey = new Map(open.map((alert) => [alertKey(alert), alert]));
  const found = folded(once(params.found), openByKey);
  const foundKeys = new Set(found.map(alertKey));
  const isWatched = ({ kind }: OpenAlert) => rules[kind] !== null || ownKinds.has(kind);
  return {
    opens: found.filter((finding) => !openByKey.has(alertKey(finding))),
    holds: found.flatMap((finding) => {
      const alert = openByKey.get(alertKey(finding));
      return alert ? [{ id: alert.id, finding: remembering(finding, alert) }] : [];
    }),
    resolves: open
      .filter((alert) => !foundKeys.has(alertKey(alert)))
      .filter((alert) => isWatched(alert) || alert.lastAt <= now - UNWATCHED_MS)
      .map((alert) => ({
        alert,
        message: isWatched(alert) ? alert.message : messages.unwatched(),
      })),
  };
}

/** Keeps the pause in the evidence while the alert is open. */
function remembering(finding: Finding, { evidence }: OpenAlert): Finding {
  const { pausedTickAt } = evidence;
  if (pausedTickAt === undefined || finding.evidence.pausedTickAt !== undefined) return finding;
  return {
    ...finding,
    message: messages.paused(finding.message),
    evidence: { ...finding.evidence, pausedTickAt },
  };
}

/** Keeps the first of several findings for one alert. */
function once(found: readonly Finding[]): readonly Finding[] {
  return [
    ...new Map([...found].reverse().map((each) => [alertKey(each), each])).values(),
  ].reverse();
}

/** Folds too many new findings of a kind into one; open alerts stay as they are. */
function folded(
  found: readonly Finding[],
  open: ReadonlyMap<string, OpenAlert>,
): readonly Finding[] {
  const fresh = found.filter((finding) => !open.has(alertKey(finding)));
  const kinds = [...new Set(fresh.map(({ kind }) => kind))];
  const crowded = kinds.filter(
    (kind) => fresh.filter((each) => each.kind === kind).length > APART_MAX,
  );
  if (crowded.length === 0) return found;
  const kept = found.filter((each) => open.has(alertKey(each)) || !crowded.includes(each.kind));
  return [...kept, ...crowded.map((kind) => gathered(fresh.filter((each) => each.kind === kind)))];
}

function gathered(findings: readonly Finding[]): Finding {
  const [first] = findings as [Finding, ...Finding[]];
  const names = findings.map(({ subject }) => subject.name);
  return {
    kind: first.kind,
    subject: { type: "database", name: `many ${first.subject.type}s` },
    message: messages.grouped(first.kind, names, first.message),
    evidence: { count: names.length, names: names.slice(0, 100) },
  };
}
