// Decides for monitors, whose jobs run remotely and check in here: which tick a check-in counts for, when its deadline is,
// and which ticks were missed. Pure; monitors use the same ledger and alerts as other schedules.

import { pauseEvidence, spansOf } from "../../operations/rules/pause.js";
import type { Policy } from "../../runs/rules/run.js";
import type { Evaluation, Situation } from "./evaluate.js";
import type { ScheduleDefinition } from "./schedule.js";
import { stretchOf, type TickEntry } from "./tick.js";
import type { When } from "./when.js";

/** The states that a check-in can report. */
export const PING_STATES = ["start", "ok", "fail"] as const;
export type PingState = (typeof PING_STATES)[number];

/** The job name under which check-ins of a monitor are stored as runs. */
export function monitorJob(name: string): string {
  return `monitor:${name}`;
}

/** The run of a check-in is never claimed, lost or retried; its policy only says one attempt. */
export const MONITOR_POLICY: Policy = {
  leaseMs: 30_000,
  timeoutMs: 7_200_000,
  retry: { attempts: 1, delayMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 },
  onLost: "fail",
};

/** If no instance polled for this long, a check-in may have found no server. */
const ABSENT_MS = 60_000;

/** When to evaluate a tick: at once, for a monitor when its grace is over. */
export function evaluateAt(
  { monitor, graceMs }: Pick<ScheduleDefinition, "monitor" | "graceMs">,
  tick: number | null,
): number | null {
  return tick === null || monitor !== true ? tick : tick + graceMs;
}

/**
 * A start counts for the tick that was nearest when it arrived. The grace then begins at the start; a second start
 * does not prolong it.
 */
export function beganFor(
  beganAt: number | null,
  { cursorAt, tick }: { readonly cursorAt: number; readonly tick: number },
): number | null {
  return beganAt !== null && beganAt - cursorAt >= tick - beganAt ? beganAt : null;
}

function deadlineOf(tick: number, beganAt: number | null, graceMs: number): number {
  return Math.max(tick, beganAt ?? tick) + graceMs;
}

/** The deadline of the next unrecorded tick. */
export function judgedAt(params: {
  readonly definition: ScheduleDefinition;
  readonly when: When;
  readonly cursorAt: number;
  readonly beganAt: number | null;
}): number | null {
  const { definition, when, cursorAt, beganAt } = params;
  const tick = when.next(cursorAt);
  if (tick === null) return null;
  return deadlineOf(tick, beganFor(beganAt, { cursorAt, tick }), definition.graceMs);
}

/**
 * The tick that a check-in counts for: the oldest one that waits; if none waits, the nearest. Null: the nearest is the
 * last recorded one, so that a repeated or late check-in never counts for the next tick.
 */
export function tickFor(params: {
  readonly when: When;
  readonly cursorAt: number;
  readonly now: number;
}): number | null {
  const { when, cursorAt, now } = params;
  const next = when.next(cursorAt);
  if (next === null || next <= now) return next;
  return next - now < now - cursorAt ? next : null;
}

/** Records ticks whose grace is over as missed: a check-in would have recorded them. */
export function judgeMonitor(
  situation: Pick<
    Situation,
    "now" | "definition" | "when" | "cursorAt" | "pauses" | "lastPolledAt" | "live"
  > & { readonly beganAt: number | null },
): Evaluation {
  const { now, definition, when, cursorAt, beganAt, live } = situation;
  const dueAt = judgedAt(situation);
  const ticks = dueAt === null || dueAt > now ? [] : missedTicks(situation);
  const reached = ticks.at(-1)?.lastAt ?? cursorAt;
  const nextAt = judgedAt({
    definition,
    when,
    cursorAt: reached,
    beganAt: reached === cursorAt ? beganAt : null,
  });
  return {
    ticks,
    runs: [],
    cancels: [],
    cursorAt: reached,
    nextAt,
    isEnded: nextAt === null,
    isComplete: true,
    live,
  };
}

function missedTicks(situation: Parameters<typeof judgeMonitor>[0]): readonly TickEntry[] {
  const { now, definition, when, cursorAt, lastPolledAt, pauses = [] } = situation;
  const first = when.next(cursorAt) ?? cursorAt;
  const beganAt = beganFor(situation.beganAt, { cursorAt, tick: first });
  const untilMs = Math.max(first, now - definition.graceMs);
  // No instance could receive a check-in meanwhile; the alert is still raised, with this evidence.
  const wasAway = lastPolledAt !== null && now - lastPolledAt > ABSENT_MS;
  const ticks: TickEntry[] = [];
  for (const { pause, ...span } of spansOf(pauses, { afterMs: cursorAt, untilMs })) {
    const stretch = stretchOf(when, span);
    if (stretch === null) continue;
    const { firstAt, lastAt } = stretch;
    const missed = {
      since: opensAt(cursorAt, firstAt),
      until: deadlineOf(lastAt, lastAt === first ? beganAt : null, definition.graceMs),
      ...(firstAt === first && beganAt !== null ? { beganAt } : {}),
      ...(wasAway ? { lastPolledAt } : {}),
    };
    const reason = pause ? "paused" : "no_ping";
    const evidence = pause ? pauseEvidence(pause) : missed;
    ticks.push({ ...stretch, reason, run: null, evidence });
  }
  return ticks;
}

/** The instant from which on a check-in counts for a tick: nearer to it than to the previous one. */
function opensAt(cursorAt: number, tick: number): number {
  return cursorAt + Math.ceil((tick - cursorAt) / 2);
}
