// The circuit breaker, state by state.

import { describe, expect, test } from "vitest";
import {
  type Circuit,
  CLOSED,
  failed,
  OPEN_MAX_MS,
  OPEN_MS,
  OPENS_AFTER,
  pauseMs,
  responded,
  roomOf,
  sent,
  withdrawn,
} from "./breaker.js";

/** Fails so many times in a row, all at one moment. */
function failing(count: number, from: Circuit = CLOSED, nowMs = 0): Circuit {
  let circuit = from;
  for (let each = 0; each < count; each++) circuit = failed(sent(circuit), nowMs);
  return circuit;
}

describe("a closed circuit", () => {
  test("lets everything pass, and opens after several failures in a row", () => {
    expect(roomOf(failing(OPENS_AFTER - 1), 0)).toBe(Number.POSITIVE_INFINITY);
    expect(failing(OPENS_AFTER)).toEqual({ state: "open", untilMs: OPEN_MS, openings: 1 });
  });

  test("forgets failures at the first answer", () => {
    const circuit = responded(failing(OPENS_AFTER - 1));
    expect(circuit).toEqual(CLOSED);
    expect(failing(OPENS_AFTER - 1, circuit).state).toBe("closed");
  });

  test("has an undelivered run wait longer with each failure", () => {
    expect([1, 2, 3, 4].map((count) => pauseMs(failing(count), 0))).toEqual([
      1_000, 2_000, 4_000, 8_000,
    ]);
  });
});

describe("an open circuit", () => {
  const open = failing(OPENS_AFTER);

  test("lets nothing pass until its time is over, and then one", () => {
    expect(roomOf(open, OPEN_MS - 1)).toBe(0);
    expect(roomOf(open, OPEN_MS)).toBe(1);
    expect(roomOf(sent(open), OPEN_MS)).toBe(0);
  });

  test("is closed by the probe's answer", () => {
    expect(responded(sent(open))).toEqual(CLOSED);
  });

  test("is open for twice as long after each probe that failed, up to a limit", () => {
    let circuit: Circuit = open;
    const lengths: number[] = [];
    for (let each = 0; each < 10; each++) {
      circuit = failed(sent(circuit), 0);
      lengths.push(circuit.state === "open" ? circuit.untilMs : 0);
    }
    expect(lengths.slice(0, 3)).toEqual([2 * OPEN_MS, 4 * OPEN_MS, 8 * OPEN_MS]);
    expect(lengths.at(-1)).toBe(OPEN_MAX_MS);
  });

  test("ignores responses to requests from before it opened", () => {
    expect(responded(open)).toBe(open);
    expect(failed(open, 3_000)).toBe(open);
  });

  test("may be probed again at once when the probe was withdrawn", () => {
    expect(roomOf(withdrawn(sent(open), OPEN_MS), OPEN_MS)).toBe(1);
    expect(withdrawn(CLOSED, 0)).toBe(CLOSED);
  });

  test("has undelivered runs wait until it may be probed", () => {
    expect(pauseMs(open, 1_000)).toBe(OPEN_MS - 1_000);
    // In whole milliseconds, whatever the clock counts.
    expect(pauseMs(open, 1_000.25)).toBe(OPEN_MS - 1_000);
    expect(pauseMs(open, OPEN_MS + 60_000)).toBeGreaterThan(0);
    expect(pauseMs(sent(open), OPEN_MS)).toBe(OPEN_MS);
  });
});
