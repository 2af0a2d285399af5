// Writes where something is inside a value: input.items[2].price, input["odd key"].
// Pure and total: long or strange keys are cut and quoted.

import { quoteShort } from "./suggest.js";

const SEGMENT_COUNT_MAX = 20;

export type PathSegment = string | number | symbol;

export function pathText(root: string, segments: readonly PathSegment[]): string {
  const shown = segments.slice(0, SEGMENT_COUNT_MAX).map(segmentText).join("");
  return segments.length > SEGMENT_COUNT_MAX ? `${root}${shown}…` : `${root}${shown}`;
}

function segmentText(segment: PathSegment): string {
  if (typeof segment === "number") return `[${segment}]`;
  if (typeof segment === "symbol") return `[${String(segment)}]`;
  if (/^[A-Za-z_$][\w$]{0,63}$/.test(segment)) return `.${segment}`;
  const quoted = quoteShort(segment);
  return quoted.startsWith('"') ? `[${quoted}]` : `["${quoted}"]`;
}
