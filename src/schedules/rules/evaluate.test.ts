// Tests the outcome of due ticks, decided as values: every policy, one instant, no database. Also compares it with a
// slow and obvious reading of the design, over random schedules and outages.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evaluate, type Situation } from "./evaluate.js";
import type { LiveRun } from "./overlap.js";
import { readSchedule, type ScheduleOptions } from "./schedule.js";
import { OUTCOME_OF } from "./tick.js";
import { makeWhen } from "./when.js";

const NOON = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;

function situation(options: object, given: Partial<Situation> = {}): Situation {
  const definition = readSchedule(options as ScheduleOptions, {
    field: "",
    nowMs: null,
    calendar: () => undefined,
    calendarNames: [],
  });
  let made = 0;
  return {
    now: NOON + 5 * MINUTE + 10_000,
    definition,
    when: makeWhen(definition.when, NOON),
    cursorAt: NOON,
    nextAt: NOON + MINUTE,
    hold: null,
    live: [],
    isStuck: false,
    lastPolledAt: NOON,
    newId: () => `run ${++made}`,
    ...given,
  };
}

const lines = (given: Situation) =>
  evaluate(given).ticks.map(({ firstAt, lastAt, count, reason }) => {
    const minutes = [firstAt, lastAt].map((at) => (at - NOON) / MINUTE);
    return count === 1 ? `${minutes[0]} ${reason}` : `${minutes.join("..")} ${reason} ×${count}`;
  });

const MINUTELY = { cron: "* * * * *" };
const scheduled: LiveRun = { id: "live", mode: "scheduled", nominalAt: NOON, isGated: false };

describe("one evaluation", () => {
  test("fires the newest tick, which is on time, and records the older ones as missed", () => {
    expect(lines(situation(MINUTELY))).toEqual(["1..4 nobody ×4", "5 on_time"]);
    const { cursorAt, nextAt, isComplete } = evaluate(situation(MINUTELY));
    expect({ cursorAt, nextAt, isComplete }).toEqual({
      cursorAt: NOON + 5 * MINUTE,
      nextAt: NOON + 6 * MINUTE,
      isComplete: true,
    });
  });

  describe("with pauses of everything", () => {
    const pause = { at: NOON + 2 * MINUTE, until: NOON + 4 * MINUTE, by: "ada", note: null };

    test("ticks that fall into one are skipped, and those around it are judged as ever", () => {
      const given = { pauses: [pause] };
      expect(lines(situation(MINUTELY, given))).toEqual([
        "1 nobody",
        "2..3 paused ×2",
        "4 nobody",
        "5 on_time",
      ]);
      const all = { ...MINUTELY, missed: "all", overlap: "allow" };
      expect(lines(situation(all, given))).toEqual([
        "1 catch_up",
        "2..3 paused ×2",
        "4 catch_up",
        "5 on_time",
      ]);
    });

    test("catch-up counts from the newest tick, on both sides of the pause", () => {
      const missed = { run: "all", limit: 2 };
      const given = { pauses: [pause], now: NOON + 5 * MINUTE + 40_000 };
      const options = { ...MINUTELY, missed, overlap: "allow" };
      expect(lines(situation(options, given))).toEqual([
        "1 over_limit",
        "2..3 paused ×2",
        "4 catch_up",
        "5 catch_up",
      ]);
      const late = { ...given, pauses: [{ ...pause, until: NOON + 5 * MINUTE + 30_000 }] };
      expect(lines(situation(MINUTELY, late))).toEqual(["1 late", "2..5 paused ×4"]);
    });

    test("nothing fires during a pause, not even ticks that were due before it", () => {
      const given = { pauses: [{ ...pause, until: null }] };
      const fired = evaluate(situation({ ...MINUTELY, missed: "all" }, given));
      expect(fired.runs).toEqual([]);
      expect(lines(situation({ ...MINUTELY, missed: "all" }, given))).toEqual([
        "1 paused",
        "2..4 paused ×3",
        "5 paused",
      ]);
    });

    test("the one tick of a drawn interval is skipped, and the next one drawn from now", () => {
      const range = { every: "1m..2m" };
      const given = { pauses: [pause], nextAt: NOON + 3 * MINUTE };
      expect(lines(situation(range, given))).toEqual(["3 paused"]);
      const { nextAt } = evaluate(situation(range, given));
      expect(nextAt).toBe(NOON + 7 * MINUTE + 10_000);
    });
  });

  test("holds ticks back until a failure's delay is over, also those to be caught up", () => {
    const hold = { until: NOON + 4 * MINUTE, run: "failed" };
    const given = situation({ ...MINUTELY, missed: "all", overlap: "allow" }, { hold });
    expect(lines(given)).toEqual([
      "1 after_failure",
      "2 after_failure",
      "3 after_failure",
      "4 catch_up",
      "5 on_time",
    ]);
    expect(evaluate(given).ticks[0]?.evidence).toEqual({ run: "failed", until: hold.until });
  });

  test("judges each tick with the runs that it has just made", () => {
    const grace = { ...MINUTELY, grace: "1h" };
    expect(lines(situation(grace))).toEqual([
      "1 on_time",
      ...[2, 3, 4, 5].map((minute) => `${minute} overlap`),
    ]);
    const queue = evaluate(situation({ ...grace, overlap: "queue" }));
    expect(queue.runs.map(({ isGated }) => isGated)).toEqual([false, true]);
    expect(queue.ticks.slice(2).every(({ reason }) => reason === "queue_full")).toBe(true);
    const replace = evaluate(situation({ ...grace, overlap: "replace" }, { live: [scheduled] }));
    expect(replace.cancels).toEqual(["live", "run 1", "run 2", "run 3", "run 4"]);
  });

  test("makes catch-up runs wait in sequence, behind live runs", () => {
    const given = situation({ ...MINUTELY, missed: "all", overlap: "allow" });
    expect(evaluate(given).runs.map(({ isGated }) => isGated)).toEqual([
      false,
      true,
      true,
      true,
      false,
    ]);
    const busy = evaluate({ ...given, live: [scheduled] });
    expect(busy.runs[0]?.isGated).toBe(true);
  });

  test("of a schedule that was stuck says so, except where it is on time", () => {
    const given = situation({ ...MINUTELY, grace: "5s" }, { isStuck: true, nextAt: null });
    expect(lines(given)).toEqual(["1..4 nobody ×4", "5 stuck_reset"]);
    expect(evaluate(given).ticks[1]?.evidence).toMatchObject({ nextAt: null });
    expect(lines({ ...given, now: NOON + MINUTE + 1_000 })).toEqual(["1 on_time"]);
  });

  test("never goes back: with the cursor ahead nothing is due", () => {
    const ahead = evaluate(situation(MINUTELY, { cursorAt: NOON + 30 * MINUTE }));
    expect(ahead.ticks).toEqual([]);
    expect(ahead.cursorAt).toBe(NOON + 30 * MINUTE);
    expect(ahead.nextAt).toBe(NOON + 31 * MINUTE);
  });

  test("of a thousand on-time ticks and more leaves the rest for the next pass", () => {
    const every = { every: "1s", grace: "1h", overlap: "allow" };
    const first = evaluate(situation(every, { now: NOON + 1_500_000 }));
    expect([first.runs.length, first.isComplete]).toEqual([1_000, false]);
    const second = evaluate(
      situation(every, { now: NOON + 1_500_000, cursorAt: first.cursorAt, nextAt: first.nextAt }),
    );
    expect([second.runs.length, second.isComplete]).toEqual([500, true]);
  });

  test("ends a schedule that has no tick left", () => {
    const given = situation({ ...MINUTELY, until: new Date(NOON + 5 * MINUTE) });
    expect(evaluate(given)).toMatchObject({ nextAt: null, isEnded: true });
    expect(evaluate({ ...given, now: NOON + 4 * MINUTE })).toMatchObject({ isEnded: false });
  });
});

describe("a drawn interval", () => {
  test("has the stored tick alone, and the upper bound from now as its fallback", () => {
    const drawn = situation({ every: "1m..2m" });
    expect(lines(drawn)).toEqual(["1 late"]);
    expect(evaluate(drawn).nextAt).toBe(drawn.now + 2 * MINUTE);
    expect(evaluate({ ...drawn, nextAt: drawn.now + 1 })).toMatchObject({
      ticks: [],
      isEnded: false,
    });
    expect(lines(situation({ every: "1m..2m", missed: "skip" }))).toEqual(["1 nobody"]);
    expect(lines(situation({ every: "1m..2m", missed: "all" }))).toEqual(["1 catch_up"]);
  });

  test("is over once its tick is past the end, not while a draw may come before it", () => {
    const until = new Date(NOON + 6 * MINUTE);
    const drawn = situation({ every: "1m..2m", until });
    expect(evaluate(drawn).isEnded).toBe(false);
    const past = { now: NOON + 10 * MINUTE, nextAt: NOON + 7 * MINUTE };
    expect(evaluate({ ...drawn, ...past })).toMatchObject({ ticks: [], isEnded: true });
  });
});

test("every due tick has one outcome under every policy, by a slow and obvious oracle", () => {
  const options = fc.record({
    when: fc.constantFrom({ cron: "* * * * *" }, { cron: "*/5 * * * *" }, { every: "45s" }),
    run: fc.constantFrom("skip", "latest", "all"),
    limit: fc.integer({ min: 1, max: 8 }),
    within: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined }),
    graceS: fc.integer({ min: 1, max: 200 }),
    awayS: fc.integer({ min: 0, max: 4_000 }),
  });
  fc.assert(
    fc.property(options, ({ when, run, limit, within, graceS, awayS }) => {
      const missed = { run, limit, ...(within === undefined ? {} : { within: within * 1_000 }) };
      const now = NOON + awayS * 1_000;
      const rules = { ...when, missed, grace: graceS * 1_000, overlap: "allow" };
      const given = situation(rules, { now });
      const due: number[] = [];
      for (let at = given.when.next(NOON); at !== null && at <= now; at = given.when.next(at))
        due.push(at);
      const onTime = due.filter((at) => now - at <= graceS * 1_000);
      const older = due.filter((at) => !onTime.includes(at));
      const wanted = run === "skip" ? 0 : run === "latest" ? (onTime.length > 0 ? 0 : 1) : limit;
      const fired = older
        .slice(wanted === 0 ? older.length : -wanted)
        .filter((at) => within === undefined || now - at <= within * 1_000);
      const { ticks, runs } = evaluate(given);
      expect(runs.map(({ nominalAt }) => nominalAt)).toEqual([...fired, ...onTime]);
      expect(ticks.reduce((sum, { count }) => sum + count, 0)).toBe(due.length);
      let reached = 0;
      for (const { firstAt, lastAt, count, reason, run: id } of ticks) {
        expect([firstAt, lastAt]).toEqual([due[reached], due[reached + count - 1]]);
        expect(id !== null).toBe(OUTCOME_OF[reason] === "fired");
        reached += count;
      }
    }),
    { seed: 3, numRuns: 500 },
  );
});
