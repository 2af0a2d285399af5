// Draws the operations and faults of runs that wait durably, in streams of their own: seeds without them stay as they are.

import type { Fault, FaultKind } from "../faults/catalogue.js";
import { Draw } from "../random.js";
import type { Operation, OperationKind } from "./operation.js";

/** Shorter than a simulation, so that signals are removed and their keys are free again. */
export const SIGNALS_KEPT_MS = 20 * 60_000;

const ORDERS = 12;
const SIGNALS_OF_RUNS = 6;
const RETRIES = 3;

/** Ids go on after `last`. */
export function drawWaits(
  seed: number,
  params: { readonly placeCount: number; readonly chaosMs: number; readonly last: Operation },
): readonly Operation[] {
  const { placeCount, chaosMs, last } = params;
  const draw = new Draw(seed, "waits of runs");
  const operations: Operation[] = [];
  const add = (kind: OperationKind, afterMs: number, luck: number) =>
    operations.push({
      ...last,
      id: last.id + 1 + operations.length,
      kind,
      afterMs: Math.max(1_000, Math.min(chaosMs - 1_000, afterMs)),
      job: "waiting",
      place: draw.whole(0, placeCount - 1),
      luck,
    });
  for (let order = 0; order < ORDERS; order += 1) {
    const afterMs = draw.whole(60_000, chaosMs - 300_000);
    const luck = draw.whole(0, 2 ** 31);
    add("order", afterMs, luck);
    // Before the run, while it waits, or never.
    if (draw.isTrue(0.7)) add("signal", afterMs + draw.whole(-120_000, 400_000), luck);
    // Again, and sometimes with another value.
    if (draw.isTrue(0.2)) add("signal", afterMs + draw.whole(0, 900_000), luck);
  }
  for (let count = 0; count < SIGNALS_OF_RUNS; count += 1)
    add("signalRun", draw.whole(90_000, chaosMs), draw.whole(0, 2 ** 31));
  for (let count = 0; count < RETRIES; count += 1)
    add("retryFrom", draw.whole(600_000, chaosMs), draw.whole(0, 2 ** 31));
  return operations;
}

const FAULTS = 8;
const FAULT_KINDS: readonly FaultKind[] = [
  ...(["answer-lost", "answer-lost", "crash-after-commit", "crash-before-send"] as const),
  ...(["sent-twice", "answer-late", "sent-late", "not-sent"] as const),
];
const AIMED: readonly (readonly string[])[] = [
  ["steps.suspend"],
  ["steps.suspend"],
  ["steps.finish"],
  ["steps.wait"],
  ["steps.collect"],
  ["batches.call"],
  ["signals.send"],
  ["signals.wake", "signals.forgetEnded"],
];

/** Faults of the calls that make waits durable. Ids go on after `last`. */
export function drawWaitFaults(
  seed: number,
  params: { readonly placeCount: number; readonly chaosMs: number; readonly last: Fault },
): readonly Fault[] {
  const { placeCount, chaosMs, last } = params;
  const draw = new Draw(seed, "faults of waits");
  return Array.from({ length: FAULTS }, (_, at) => ({
    id: last.id + 1 + at,
    afterMs: draw.whole(60_000, chaosMs - 60_000),
    kind: draw.pick(FAULT_KINDS),
    place: draw.whole(0, placeCount - 1),
    verbs: draw.pick(AIMED),
    ms: draw.logarithmic(5, 60_000),
  }));
}
