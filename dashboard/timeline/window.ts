// Computes the time range of a timeline, and the position of an instant in it. Pure.

import { clockOf } from "../shared/zone.js";

export const RANGES = {
  "1h": { words: "1 hour", pastMs: 3_600_000, aheadMs: 20 * 60_000 },
  "6h": { words: "6 hours", pastMs: 6 * 3_600_000, aheadMs: 2 * 3_600_000 },
  "24h": { words: "24 hours", pastMs: 24 * 3_600_000, aheadMs: 8 * 3_600_000 },
  "7d": { words: "7 days", pastMs: 7 * 86_400_000, aheadMs: 2 * 86_400_000 },
} as const;
export type Range = keyof typeof RANGES;

export type Window = { readonly fromMs: number; readonly toMs: number };

export const CELLS = 240;

export function windowAt(range: Range, nowMs: number): Window {
  const { pastMs, aheadMs } = RANGES[range];
  const cellMs = (pastMs + aheadMs) / CELLS;
  // By whole cells, so that a mark stays in its cell as time passes.
  const edgeMs = Math.ceil(nowMs / cellMs) * cellMs;
  return { fromMs: edgeMs - pastMs, toMs: edgeMs + aheadMs };
}

/**
 * The range for a reader who has not chosen one, by the ages of the ticks of the last six hours: an hour while the history
 * is younger than that, and a day where there are none.
 */
export function fittingRange(agesMs: readonly number[]): Range {
  if (agesMs.length === 0) return "24h";
  return Math.max(...agesMs) < RANGES["1h"].pastMs ? "1h" : "6h";
}

/** 0 at the left edge, 1 at the right one. */
export function placeOf(atMs: number, { fromMs, toMs }: Window): number {
  return (atMs - fromMs) / (toMs - fromMs);
}

export function percent(place: number): string {
  return `${(Math.min(1, Math.max(0, place)) * 100).toFixed(3)}%`;
}

const STEPS_MIN = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1_440];

/** Round times on the clock of the zone, a handful of them. */
export function axisTicks(
  window: Window,
  zone: string,
): readonly { atMs: number; isDay: boolean }[] {
  const wholeMin = (window.toMs - window.fromMs) / 60_000;
  const step = STEPS_MIN.find((minutes) => wholeMin / minutes <= 9) ?? 1_440;
  const found: { atMs: number; isDay: boolean }[] = [];
  const quarter = Math.min(step, 15) * 60_000;
  for (
    let atMs = Math.ceil(window.fromMs / quarter) * quarter;
    atMs < window.toMs;
    atMs += quarter
  ) {
    const { hour = 0, minute = 0 } = clockOf(atMs, zone);
    if ((hour * 60 + minute) % step === 0) found.push({ atMs, isDay: hour === 0 && minute === 0 });
  }
  return found;
}

/** The screens that show a label of the axis at this distance from "now": a label must not touch that word. */
export function labelScreens(distance: number, isDay: boolean): "all" | "wide" | "none" {
  if (distance < (isDay ? 0.065 : 0.045)) return "none";
  return distance < (isDay ? 0.16 : 0.11) ? "wide" : "all";
}
