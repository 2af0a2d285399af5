// Decides whether a tick, a trigger or a retry may make its run while other runs of its schedule are live. Pure.
// Live means not terminal, retry waits included. A gated run exists and waits for those before it.

import type { Mode, RunId } from "../../runs/rules/run.js";

export const OVERLAPS = ["skip", "queue", "allow", "replace"] as const;
export type Overlap = (typeof OVERLAPS)[number];

export type LiveRun = {
  readonly id: RunId;
  readonly mode: Mode;
  readonly nominalAt: number | null;
  readonly isGated: boolean;
};

export type Admission =
  | { readonly isAdmitted: true; readonly isGated: boolean; readonly cancels: readonly RunId[] }
  | {
      readonly isAdmitted: false;
      readonly reason: "overlap" | "queue_full";
      readonly run: RunId;
    };

const FREELY: Admission = { isAdmitted: true, isGated: false, cancels: [] };

/** Whether the run of a tick may be made. Catch-up runs wait for one another under every policy. */
export function admitTick(
  overlap: Overlap,
  live: readonly LiveRun[],
  { isCatchUp, spared }: { readonly isCatchUp: boolean; readonly spared?: ReadonlySet<RunId> },
): Admission {
  if (isCatchUp) return { isAdmitted: true, isGated: live.length > 0, cancels: [] };
  if (overlap === "allow") return FREELY;
  const scheduled = live.filter(({ mode }) => mode === "scheduled");
  const [first] = scheduled;
  if (first && overlap === "skip") return { isAdmitted: false, reason: "overlap", run: first.id };
  const waiting = scheduled.find(({ isGated }) => isGated);
  if (waiting && overlap === "queue")
    return { isAdmitted: false, reason: "queue_full", run: waiting.id };
  const replaced = overlap === "replace" ? scheduled.map(({ id }) => id) : [];
  // Runs caught up in the same pass go before the tick; it does not replace them.
  const cancels = replaced.filter((id) => !spared?.has(id));
  return { isAdmitted: true, isGated: live.length > 0, cancels };
}

/** Whether a trigger may make its run. */
export function admitTrigger(overlap: Overlap, live: readonly LiveRun[]): Admission {
  const [first] = live;
  if (!first || overlap === "allow") return FREELY;
  if (overlap === "skip") {
    const inTheWay = live.find(({ isGated }) => !isGated) ?? first;
    return { isAdmitted: false, reason: "overlap", run: inTheWay.id };
  }
  const isReplaced = ({ mode }: LiveRun) => mode === "scheduled" || mode === "manual";
  const cancels = overlap === "replace" ? live.filter(isReplaced).map(({ id }) => id) : [];
  return { isAdmitted: true, isGated: true, cancels };
}

/** Whether a run that an operator revives has to wait. */
export function isRevivalGated(overlap: Overlap, live: readonly LiveRun[]): boolean {
  return (overlap === "skip" || overlap === "queue") && live.length > 0;
}

/** The gated run that may begin: the first one, once no other run is live, or at once if overlap is allowed. */
export function gateToOpen(overlap: Overlap, live: readonly LiveRun[]): RunId | null {
  const [first] = live;
  if (!first?.isGated) return null;
  const isFree = overlap === "allow" || live.every(({ isGated }) => isGated);
  return isFree ? first.id : null;
}
