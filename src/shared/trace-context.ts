// Reads and writes the W3C trace context of a run, which names the span that enqueued it. Pure. It is stored among the
// tags of the run, with a prefix that no user's tag may have, so that runs without a trace cost nothing.

export type TraceContext = {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
};

/** The prefix of a tag with a trace context. */
export const TRACE_TAG = "traceparent=";

const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;
const ZEROS = /^0+$/;

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** Returns null for an invalid text: the trace then ends here, and nothing else changes. */
export function parseTraceparent(text: string | null | undefined): TraceContext | null {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === "" || ZEROS.test(traceId) || ZEROS.test(spanId) || text?.startsWith("ff-"))
    return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns the tags as they are stored: with the trace, if there is one. */
export function tagsToStore(tags: readonly string[], trace: string | undefined): readonly string[] {
  return trace === undefined ? tags : [...tags, traceTag(trace)];
}

export function traceTag(trace: string): string {
  return `${TRACE_TAG}${trace}`;
}

/** Splits stored tags into the user's tags and the trace. */
export function splitTags(stored: readonly string[]): {
  readonly tags: readonly string[];
  readonly trace?: string;
} {
  const last = stored.at(-1);
  if (last === undefined || !last.startsWith(TRACE_TAG)) return { tags: stored };
  return { tags: stored.slice(0, -1), trace: last.slice(TRACE_TAG.length) };
}
