// Tests the verdict of the soak on known figures: it must notice every value that grows.

import { describe, expect, test } from "vitest";
import { spreadOf, verdictOf } from "../chaos/soak-verdict.mjs";

const SECONDS = 7_200;
const MEGA = 2 ** 20;

type Params = Parameters<typeof verdictOf>[0];

/** A soak of two hours in which each figure is what the function of the share of time says. */
function soak({
  heap = (_: number): number => 20 * MEGA,
  history = (_: number): number => 30 * MEGA,
  ratio = (_: number): number => 3,
} = {}): Params {
  const shares = Array.from({ length: 240 }, (_, at) => (at + 1) / 240);
  const windows = Array.from({ length: 24 }, (_, at) => (at + 1) / 24);
  const times = spreadOf([1, 2, 3]);
  return {
    seconds: SECONDS,
    samples: shares.map((share) => ({
      atMs: share * SECONDS * 1_000,
      load: 1,
      historyBytes: history(share),
      tickBytes: share * MEGA,
      otherBytes: MEGA,
      indexBytes: 0,
      liveRows: 0,
      deadRows: 0,
      walBytes: 32 * MEGA,
      walWrittenBytes: share * 1_000 * MEGA,
      tables: {},
    })),
    memory: {
      w0b1: shares.map((share) => ({
        atMs: share * SECONDS * 1_000,
        heapUsed: heap(share),
        rss: 0,
        external: 0,
        cpuMs: 0,
      })),
    },
    windows: windows.map((share) => ({
      atMs: share * SECONDS * 1_000,
      run: times,
      all: times,
      bare: times,
      ratio: ratio(share),
    })),
    violations: [],
  };
}

describe("the verdict of a soak", () => {
  test("a soak in which nothing creeps is flat, bounded and steady", () => {
    expect(verdictOf(soak())).toMatchObject({
      isHeapFlat: true,
      isBounded: true,
      isLatencySteady: true,
      violations: 0,
    });
  });

  test("a heap that grows only while it warms up is flat; one that goes on growing is not", () => {
    const warm = soak({ heap: (share) => (share < 0.25 ? 10 * MEGA : 20 * MEGA) });
    expect(verdictOf(warm).isHeapFlat).toBe(true);
    const creeping = soak({ heap: (share) => (20 + 4 * share) * MEGA });
    expect(verdictOf(creeping)).toMatchObject({ isHeapFlat: false, isBounded: true });
  });

  test("history that goes up and down is bounded; history that only grows is not", () => {
    const wave = soak({ history: (share) => (30 + 10 * Math.sin(share * 50)) * MEGA });
    expect(verdictOf(wave).isBounded).toBe(true);
    expect(verdictOf(soak({ history: (share) => share * 30 * MEGA })).isBounded).toBe(false);
  });

  test("runs that take longer beside the same commits are noticed, however busy one window was", () => {
    const oneBusy = soak({ ratio: (share) => (share === 1 ? 30 : 3) });
    expect(verdictOf(oneBusy).isLatencySteady).toBe(true);
    const slower = verdictOf(soak({ ratio: (share) => 3 + share }));
    expect(slower.isLatencySteady).toBe(false);
    expect(slower.latency.growth).toBeGreaterThan(1.2);
  });

  test("violations are counted by their meaning", () => {
    const violations = ["S11", "S4", "L", "T"].map((check) => ({ check }));
    expect(verdictOf({ ...soak(), violations })).toMatchObject({
      lost: 1,
      doubled: 1,
      stuck: 1,
      violations: 4,
    });
  });
});
