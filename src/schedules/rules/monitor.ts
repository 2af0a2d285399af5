// Monitors: schedules of what runs elsewhere and checks in here. Which tick a check-in counts for, until
// when one is waited for, and which ticks were missed. Pure; the ledger and the alerts are those of every
// other schedule.

import { pauseEvidence, spansOf } from "../../operations/rules/pause.js";
import type { Policy } from "../../runs/rules/run.js";
import type { Evaluation, Situation } from "./evaluate.js";
import type { ScheduleDefinition } from "./schedule.js";
import { stretchOf, type TickEntry } from "./tick.js";
import type { When } from "./when.js";

/** What a check-in says. */
export const PING_STATES = ["start", "ok", "fail"] as const;
export type PingState = (typeof PING_STATES)[number];

/** What the check-ins of a monitor are kept under, as runs have a job. */
export function monitorJob(name: string): string {
  return `monitor:${name}`;
}

/** A run that ended elsewhere is never claimed, lost or tried again here: its policy only says one try. */
export const MONITOR_POLICY: Policy = {
  leaseMs: 30_000,
  timeoutMs: 7_200_000,
  retry: { attempts: 1, delayMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 },
  onLost: "fail",
};

/** Nobody may have been there to hear a check-in if no instance looked for so long. */
const ABSENT_MS = 60_000;

/** When a schedule has to be looked at for the sake of a tick: a monitor's only when its grace is over. */
export function lookAt(
  { monitor, graceMs }: Pick<ScheduleDefinition, "monitor" | "graceMs">,
  tick: number | null,
): number | null {
  return tick === null || monitor !== true ? tick : tick + graceMs;
}

/**
 * A start counts for a tick if it came when that was the nearest one. What has begun has its grace from
 * there on; a second start does not prolong it.
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

/** When the next unrecorded tick is judged. */
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
 * The tick that a check-in counts for: the oldest that waits for one; if none does, the nearest. Null: that
 * is the last recorded one, so that a repeated or late check-in never stands for the next tick.
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

/** Records the ticks of a monitor whose grace is over: nobody checked in for them, or they would be in the ledger. */
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
  // Whether it ran in the meantime nobody knows then; that is worth an alert, and worth saying.
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

/** From when on a check-in counts for a tick: nearer to it than to the one before. */
function opensAt(cursorAt: number, tick: number): number {
  return cursorAt + Math.ceil((tick - cursorAt) / 2);
}
