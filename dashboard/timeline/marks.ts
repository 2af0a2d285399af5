// Turns a row of the timeline into marks: the ticks of each cell, the worst on top. Pure.

import type { TimelineRow } from "../api/wire.js";
import { plural } from "../shared/format.js";
import { MARK_ORDER, MARK_WORDS, type Mark, markOf, REASON_WORDS } from "../shared/status.js";

export type Drawn = {
  readonly mark: Mark;
  readonly atMs: number;
  readonly lastMs: number;
  readonly count: number;
  readonly words: string;
  readonly lateMs: number | null;
  readonly runId: string | null;
};

/** In the order in which they are painted. */
export function drawnOf(row: TimelineRow, nowMs: number): readonly Drawn[] {
  const past = row.ticks.map((ticks): Drawn => {
    const mark = markOf(ticks);
    const isPlain = mark === "ok" || mark === "failed" || mark === "running" || mark === "waiting";
    const reason = REASON_WORDS[ticks.reason] ?? ticks.reason;
    return {
      mark,
      atMs: Date.parse(ticks.at),
      lastMs: Date.parse(ticks.lastAt),
      count: ticks.count,
      words:
        isPlain && ticks.reason === "on_time" ? MARK_WORDS[mark] : `${MARK_WORDS[mark]}: ${reason}`,
      lateMs: ticks.lateMs,
      runId: ticks.runId,
    };
  });
  const ahead = row.planned.map(({ at, count }): Drawn => {
    const atMs = Date.parse(at);
    const mark = atMs < nowMs - 2_000 ? "due" : "planned";
    const words = mark === "due" ? "due, not recorded yet" : "planned";
    return { mark, atMs, lastMs: atMs, count, words, lateMs: null, runId: null };
  });
  return [...past, ...ahead].sort(
    (a, b) => MARK_ORDER.indexOf(b.mark) - MARK_ORDER.indexOf(a.mark),
  );
}

/** For readers who cannot see the picture, and for its title. */
export function summaryOf(drawn: readonly Drawn[]): string {
  const counts = new Map<Mark, number>();
  for (const { mark, count } of drawn) counts.set(mark, (counts.get(mark) ?? 0) + count);
  const parts = MARK_ORDER.filter((mark) => counts.has(mark)).map(
    (mark) => `${counts.get(mark)} ${MARK_WORDS[mark]}`,
  );
  return parts.length === 0 ? "no ticks" : parts.join(", ");
}

export function near(drawn: readonly Drawn[], atMs: number, reachMs: number): readonly Drawn[] {
  const hits = drawn.filter(
    ({ atMs: from, lastMs }) => atMs >= from - reachMs && atMs <= lastMs + reachMs,
  );
  const points = hits.filter(({ atMs: from, lastMs }) => lastMs - from < reachMs * 4);
  return points.length > 0 ? points : hits;
}

export function countWords(count: number): string {
  return plural(count, "tick");
}
