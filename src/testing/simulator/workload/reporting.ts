// What handlers of a simulation tell of themselves, progress and log lines, and the promise about it
// (S3): only who holds a run under the current fence adds anything to it.

import type { ProgressAnswer, ProgressParams } from "../../../store/progress.js";
import type { RunContext } from "../../../worker/handler/context.js";
import type { Note } from "../checkers/row-changes.js";
import type { EventLog } from "../event-log.js";

/** A process, as far as it matters here. */
type Teller = { readonly label: string };

/** One part of the work is done. Whether it was stored is for the database to know. */
export function tellPart(ctx: RunContext, part: number, of: number): void {
  ctx.log.info({ part }, "on my way");
  void ctx.progress({
    stage: part <= of / 2 ? "first half" : "second half",
    done: part,
    total: of,
  });
}

/** A row of progress or of the log came or changed. */
export function judgeTold(
  [kind, run, fence]: Note,
  known: {
    /** Under which the run is held now. */
    readonly fence: number | null | undefined;
    /** Whether it is the holder that tells. */
    readonly isHolder: boolean;
  },
  process: Teller,
  chronicle: EventLog,
): void {
  if (known.fence !== Number(fence) || !known.isHolder)
    chronicle.violate("S3", `${process.label} told of run ${run} under fence ${fence} (${kind}).`);
  chronicle.saw(kind.startsWith("log") ? "log-kept" : "progress-told");
}

/** The answer to what a process told: what it no longer holds was refused. */
export function judgeToldAnswer(params: unknown, answer: unknown, chronicle: EventLog): void {
  const { writes } = params as ProgressParams;
  const { held, unknown } = answer as ProgressAnswer;
  const isRefused = writes.some(
    ({ id, fence }) =>
      !unknown.includes(fence) &&
      !held.some((each) => each.fence === fence && each.ids.includes(id)),
  );
  if (isRefused) chronicle.saw("stale-progress-refused");
}
