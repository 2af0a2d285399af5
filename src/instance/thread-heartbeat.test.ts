// Tests when, how often and for how long the standby heartbeat renews leases for a silent main thread.

import { expect, test } from "vitest";
import type { RenewParams } from "../store/leases.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { SILENT_LEASES_MAX, StandbyHeartbeat } from "./thread-heartbeat.js";

function world() {
  const clock = new VirtualClock();
  const startedMs = clock.monotonicMs();
  const beats: { readonly atMs: number; readonly fences: readonly number[] }[] = [];
  let failures = 0;
  const leases = {
    renew: async ({ fences }: RenewParams) => {
      beats.push({ atMs: clock.monotonicMs() - startedMs, fences });
      if (failures-- > 0) throw new Error("away");
      return { held: [], unknown: [] };
    },
  };
  const standby = new StandbyHeartbeat({
    store: { leases },
    clock,
    holder: 1,
  });
  const fail = (times: number) => {
    failures = times;
  };
  return { clock, beats, standby, fail };
}

test("while the main thread shows life nothing is renewed for it", async () => {
  const { clock, beats, standby } = world();
  for (let beat = 0; beat < 30; beat += 1) {
    expect(standby.held([{ fence: 1, leaseMs: 3_000 }])).toBeNull();
    await clock.advance(1_000);
  }
  expect(beats).toEqual([]);
});

test("a silent main thread keeps its leases for ten lengths of each, and no longer", async () => {
  const { clock, beats, standby } = world();
  standby.held([
    { fence: 1, leaseMs: 3_000 },
    { fence: 2, leaseMs: 6_000 },
  ]);
  await clock.advance(200_000);
  const lastOf = (fence: number) =>
    Math.max(...beats.filter(({ fences }) => fences.includes(fence)).map(({ atMs }) => atMs));
  // In time for the first renewal to be late by half a lease, and then at a third of the shortest.
  expect(beats[0]).toEqual({ atMs: 1_500, fences: [1, 2] });
  expect(beats[1]?.atMs).toBe(2_500);
  expect(lastOf(1)).toBeLessThan(3_000 * SILENT_LEASES_MAX);
  expect(lastOf(1)).toBeGreaterThanOrEqual(3_000 * (SILENT_LEASES_MAX - 1));
  expect(lastOf(2)).toBeLessThan(6_000 * SILENT_LEASES_MAX);
  expect(lastOf(2)).toBeGreaterThanOrEqual(6_000 * (SILENT_LEASES_MAX - 1));
});

test("a main thread that is back learns for how long it was silent, and renews by itself again", async () => {
  const { clock, beats, standby } = world();
  standby.held([{ fence: 1, leaseMs: 3_000 }]);
  await clock.advance(9_000);
  expect(beats.length).toBeGreaterThan(5);
  expect(standby.held([])).toBe(9_000);
  const count = beats.length;
  await clock.advance(60_000);
  expect(beats).toHaveLength(count);
});

test("a renewal that failed is tried again soon", async () => {
  const { clock, beats, standby, fail } = world();
  fail(2);
  standby.held([{ fence: 1, leaseMs: 3_000 }]);
  await clock.advance(3_000);
  expect(beats.map(({ atMs }) => atMs)).toEqual([1_500, 1_750, 2_000, 3_000]);
  standby.close();
  await clock.advance(30_000);
  expect(beats).toHaveLength(4);
});
