// The W3C trace context of a run: who asked for it, in one text. Pure. It is stored among the run's
// tags, under a name that no user's tag may have, so that runs without one cost nothing more.

export type TraceContext = {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
};

/** What a tag with a trace context begins with. */
export const TRACE_TAG = "traceparent=";

const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;
const ZEROS = /^0+$/;

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** Null for what is none: whoever sent it is traced no further, and nothing else changes. */
export function parseTraceparent(text: string | null | undefined): TraceContext | null {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === "" || ZEROS.test(traceId) || ZEROS.test(spanId) || text?.startsWith("ff-"))
    return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The tags as they are stored. */
export function tagsToStore(tags: readonly string[], trace: string | undefined): readonly string[] {
  return trace === undefined ? tags : [...tags, traceTag(trace)];
}

export function traceTag(trace: string): string {
  return `${TRACE_TAG}${trace}`;
}

/** What was stored, apart again. */
export function splitTags(stored: readonly string[]): {
  readonly tags: readonly string[];
  readonly trace?: string;
} {
  const last = stored.at(-1);
  if (last === undefined || !last.startsWith(TRACE_TAG)) return { tags: stored };
  return { tags: stored.slice(0, -1), trace: last.slice(TRACE_TAG.length) };
}
