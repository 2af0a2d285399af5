// When workers elsewhere claim, and when an outside cron calls. A stream of choices of its own: what else
// a seed does stays.

import { Draw } from "../random.js";
import type { Operation, OperationKind } from "./operation.js";

const CLAIMS = 10;
const PASSES = 3;
/** What they are to find is enqueued shortly before. */
const BEFORE_MS = 15_000;

/** Ids go on after `last`. */
export function drawRemotePlan(
  seed: number,
  params: {
    readonly placeCount: number;
    readonly chaosMs: number;
    readonly last: Operation;
    readonly hasTarget: boolean;
  },
): readonly Operation[] {
  const { placeCount, chaosMs, last, hasTarget } = params;
  const draw = new Draw(seed, "elsewhere");
  const operations: Operation[] = [];
  const add = (kind: OperationKind, afterMs: number, job: Operation["job"]) =>
    operations.push({
      ...last,
      id: last.id + 1 + operations.length,
      kind,
      afterMs,
      job,
      place: draw.whole(0, placeCount - 1),
      luck: draw.whole(0, 2 ** 31),
    });
  for (let claim = 0; claim < CLAIMS; claim += 1) {
    const afterMs = draw.whole(60_000, chaosMs - 30_000);
    add("enqueue", afterMs - draw.whole(0, BEFORE_MS), "remote");
    add("remote", afterMs, "remote");
  }
  for (let order = 0; order < CLAIMS; order += 1)
    add("enqueue", draw.whole(60_000, chaosMs - 30_000), hasTarget ? "dispatched" : "flaky");
  for (let pass = 0; pass < PASSES; pass += 1)
    add("pass", draw.whole(60_000, chaosMs - 30_000), "quick");
  return operations;
}
