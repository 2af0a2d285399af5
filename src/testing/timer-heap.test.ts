// The heap against the simplest thing that could work: a list that is searched from end to end.

import fc from "fast-check";
import { expect, test } from "vitest";
import { TimerHeap } from "./virtual-clock.js";

test("timers come out by time and then by the order in which they were set", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("add" as const), at: fc.nat(20) }),
    fc.record({ kind: fc.constant("cancel" as const), which: fc.nat(50) }),
    fc.record({ kind: fc.constant("take" as const), until: fc.nat(25) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const heap = new TimerHeap();
      const timers: { cancel(): void }[] = [];
      const model: { id: number; at: number; isGone: boolean }[] = [];
      let fired = -1;
      for (const each of steps) {
        if (each.kind === "add") {
          const id = model.length;
          model.push({ id, at: each.at, isGone: false });
          timers.push(
            heap.add(each.at, () => {
              fired = id;
            }),
          );
        } else if (each.kind === "cancel") {
          const found = model[each.which];
          if (found) found.isGone = true;
          timers[each.which]?.cancel();
        } else {
          const [next] = model
            .filter(({ isGone, at }) => !isGone && at <= each.until)
            .sort((a, b) => a.at - b.at || a.id - b.id);
          if (next) next.isGone = true;
          fired = -1;
          heap.take(each.until)?.callback();
          expect(fired).toBe(next?.id ?? -1);
        }
      }
    }),
  );
});

test("timers that are set and cancelled again and again do not pile up", () => {
  const heap = new TimerHeap();
  let fired = 0;
  heap.add(1_000, () => {
    fired += 1;
  });
  for (let round = 0; round < 100_000; round += 1) heap.add(round, () => undefined).cancel();
  heap.take(1_000)?.callback();
  expect(fired).toBe(1);
  expect(heap.take(1_000_000)).toBeNull();
});
