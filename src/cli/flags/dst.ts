// The options for what a fixed-time cron schedule does where the clocks change.

import type { Command } from "commander";
import type { DstOptions } from "../../schedules/cron/cron.js";
import { oneOf } from "./usage.js";

type Gap = NonNullable<DstOptions["gap"]>;
type Overlap = NonNullable<DstOptions["overlap"]>;
export type DstFlags = { readonly dstGap?: Gap; readonly dstOverlap?: Overlap };

const GAPS: readonly Gap[] = ["after", "skip"];
const OVERLAPS: readonly Overlap[] = ["first", "second", "both"];

export function withDstOptions(command: Command): Command {
  return command
    .option(
      "--dst-gap <what>",
      "a time that the clocks jump over: after (default) or skip",
      oneOf(GAPS),
    )
    .option(
      "--dst-overlap <what>",
      "a time that comes twice: first (default), second or both",
      oneOf(OVERLAPS),
    );
}

/** Undefined where nothing was given. */
export function dstOptions({ dstGap, dstOverlap }: DstFlags): DstOptions | undefined {
  if (dstGap === undefined && dstOverlap === undefined) return undefined;
  return {
    ...(dstGap === undefined ? {} : { gap: dstGap }),
    ...(dstOverlap === undefined ? {} : { overlap: dstOverlap }),
  };
}
