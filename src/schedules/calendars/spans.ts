// Excluded time as spans that can be looked up and jumped over. A source of spans need not list
// them: it answers where the first one of a range is, so that rules that go on for ever cost nothing.
// Pure arithmetic. Whether times are UTC or those of the clock on the wall is the caller's affair,
// and `onClockOf` leads from the one to the other.

import type { Zone } from "../cron/zone.js";

export type Span = {
  readonly startMs: number;
  /** The first instant that no longer belongs to the span. */
  readonly endMs: number;
  /** The rule that excludes it, in words. */
  readonly words: string;
};

export type Reach = { readonly fromMs: number; readonly untilMs: number };

export interface SpanSource {
  /**
   * A span that holds `fromMs`; else the first one that begins before `untilMs`; else null. What
   * belongs together may come in pieces, one after the other.
   */
  firstSpan(reach: Reach): Span | null;
}

/** Spans that are all known. Where they overlap, the earlier one keeps the time. */
export class SpanList implements SpanSource {
  readonly #spans: readonly Span[];

  constructor(spans: readonly Span[]) {
    const sorted = spans.toSorted((a, b) => a.startMs - b.startMs || b.endMs - a.endMs);
    const disjoint: Span[] = [];
    let endMs = Number.NEGATIVE_INFINITY;
    for (const span of sorted) {
      if (span.endMs <= endMs) continue;
      disjoint.push(span.startMs < endMs ? { ...span, startMs: endMs } : span);
      endMs = span.endMs;
    }
    this.#spans = disjoint;
  }

  firstSpan({ fromMs, untilMs }: Reach): Span | null {
    // By halving: the first one that ends after `fromMs`.
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#spans[middle]?.endMs ?? 0) > fromMs) high = middle;
      else low = middle + 1;
    }
    const span = this.#spans[low];
    return span !== undefined && span.startMs < untilMs ? span : null;
  }
}

/**
 * Spans of the clock on the wall as spans of time: an instant is excluded if the clock of the zone
 * then shows an excluded time. So an hour that comes twice is excluded twice, and an excluded date
 * ends when the date does, wherever the clocks change.
 */
export function onClockOf(zone: Zone, wall: SpanSource): SpanSource {
  return {
    firstSpan({ fromMs, untilMs }) {
      let stretch = zone.stretchAt(fromMs);
      let lowMs = fromMs;
      while (lowMs < untilMs) {
        const { offsetMs } = stretch;
        const highMs = Math.min(untilMs, stretch.endMs);
        const found = wall.firstSpan({ fromMs: lowMs + offsetMs, untilMs: highMs + offsetMs });
        if (found !== null) {
          const startMs = Math.max(found.startMs - offsetMs, stretch.startMs);
          const endMs = Math.min(found.endMs - offsetMs, stretch.endMs);
          return { startMs, endMs, words: found.words };
        }
        lowMs = highMs;
        if (lowMs >= untilMs) return null;
        // At the edge of the table the stretch may go on, or another may follow.
        if (stretch.next === null) zone.cover(stretch.endMs + 1);
        if (lowMs >= stretch.endMs && stretch.next !== null) stretch = stretch.next;
      }
      return null;
    },
  };
}

/**
 * The same spans, with the last answer remembered: who walks through time past many sources asks
 * most of them for the same span again and again. A source's spans must come in order of their ends.
 */
export function remembered(source: SpanSource): SpanSource {
  let askedMs = Number.POSITIVE_INFINITY;
  let last: Span | null = null;
  return {
    firstSpan(reach) {
      const { fromMs, untilMs } = reach;
      if (last !== null && askedMs <= fromMs && fromMs < last.endMs) {
        return last.startMs < untilMs ? last : null;
      }
      const span = source.firstSpan(reach);
      if (span !== null) [last, askedMs] = [span, fromMs];
      return span;
    },
  };
}

/** The span of any source that holds `fromMs` and reaches farthest, else the one that begins first. */
export function firstOfAll(sources: readonly SpanSource[], reach: Reach): Span | null {
  const { fromMs } = reach;
  let best: Span | null = null;
  for (const source of sources) {
    const span = source.firstSpan(reach);
    if (span === null) continue;
    const isBetter =
      best === null ||
      (span.startMs <= fromMs
        ? best.startMs > fromMs || span.endMs > best.endMs
        : span.startMs < best.startMs);
    if (isBetter) best = span;
  }
  return best;
}
