// Tests the words of `schedules.explain` about situations that the engine itself brought about: every reason of the
// ledger, and every kind of instant that is no tick.

import { expect } from "vitest";
import type { ScheduleOptions } from "../../src/index.js";
import { ScheduleNotFoundError } from "../../src/shared/errors.js";
import type { ScheduleChange, ScheduleEdit } from "../../src/store/schedules/changes.js";
import { type Member, obedient, type World, type WorldTest } from "./world.js";

const PARIS = "Europe/Paris";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export function explainSuite(test: WorldTest): void {
  test("on_time: fired, and its run completed", async ({ world }) => {
    const { holdfast } = await nightly(world, { cron: "0 14 * * *", timezone: PARIS });
    await world.clock.advance(61 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 14:00 Europe/Paris was fired on time; its run completed.
      - Tick: 2026-01-15T13:00:00.000Z, which is 2026-01-15 14:00 Europe/Paris, UTC+01:00.
      - Definition: "0 14 * * *", at 14:00 every day, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 14:00 Europe/Paris, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 14:00 Europe/Paris after 0 ms, held by instance-1."
    `);
  });

  test("on_time: fired, and its run failed at every attempt", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { every: "1h", from: "2026-01-15T11:00:00Z" },
      { run: refused, retry: STEADY },
    );
    await world.clock.advance(65 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 13:00 UTC was fired on time; its run failed at attempt 3 of 3: connect ECONNREFUSED 10.0.0.7:5432.
      - Tick: 2026-01-15T13:00:00.000Z.
      - Definition: every hour, from 2026-01-15 11:00 UTC: 2 intervals after \`from\` at 2026-01-15 11:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 13:00 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: failed at attempt 3 of 3 at 2026-01-15 13:00:03 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432.
      - Attempt 1 of run run-1: failed at 2026-01-15 13:00 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432.
      - Attempt 2 of run run-1: failed at 2026-01-15 13:00:01 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432.
      - Attempt 3 of run run-1: failed at 2026-01-15 13:00:03 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432."
    `);
  });

  test("on_time: fired, and its run is running or waits to be tried again", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { every: "1h" },
      {
        run: async (member, attempt) =>
          attempt === 1 ? refused() : member.clock.sleep(10 * MINUTE),
        retry: STEADY,
      },
    );
    await world.clock.advance(60 * MINUTE + 500);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 13:00 UTC was fired on time; its run waits for a retry after attempt 1 of 3: connect ECONNREFUSED 10.0.0.7:5432.
      - Tick: 2026-01-15T13:00:00.000Z.
      - Definition: every hour: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 13:00 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: waits for attempt 2 of 3, due 2026-01-15 13:00:01 UTC.
      - Attempt 1 of run run-1: failed at 2026-01-15 13:00 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432."
    `);
    await world.clock.advance(2 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 13:00 UTC was fired on time; its run is running at attempt 2 of 3.
      - Tick: 2026-01-15T13:00:00.000Z.
      - Definition: every hour: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 13:00 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: running at attempt 2 of 3, held since 2026-01-15 13:00:01 UTC by instance-1, whose lease lasts until 2026-01-15 13:02:30 UTC.
      - Attempt 1 of run run-1: failed at 2026-01-15 13:00 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432."
    `);
  });

  test("on_time: fired, and its run is no longer kept", async ({ world }) => {
    const { holdfast } = await nightly(world, { every: "1h" });
    await world.clock.advance(65 * MINUTE);
    const { runId } = await holdfast.schedules.explain("nightly", at("2026-01-15T13:00:00Z"));
    await (await world.store()).runs.remove({ id: runId as string });
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 13:00 UTC was fired on time; its run is no longer kept.
      - Tick: 2026-01-15T13:00:00.000Z.
      - Definition: every hour: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 13:00 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: no longer kept."
    `);
  });

  test("late, and nobody: an outage, after which the newest tick is executed", async ({
    world,
  }) => {
    const first = await nightly(world, { every: "10m", timezone: PARIS });
    await world.clock.advance(30_000);
    await world.clock.until(first.holdfast.stop());
    await arrived(world, "2026-01-15T15:05:00Z");
    const { holdfast } = await joined(world);
    await world.clock.advance(MINUTE);
    expect(await explained(holdfast, "2026-01-15T15:00:00Z")).toMatchInlineSnapshot(`
      "fired late
      The tick of "nightly" at 2026-01-15 16:00 Europe/Paris was fired 5 min late, as the most recent missed tick; its run completed.
      - Tick: 2026-01-15T15:00:00.000Z, which is 2026-01-15 16:00 Europe/Paris, UTC+01:00.
      - Definition: every 10 minutes: 18 intervals after its beginning at 2026-01-15 13:00 Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Ledger: fired (late), recorded 2026-01-15 16:05 Europe/Paris, 5 min after the tick, by instance-1.
      - Policy: missed "latest": after downtime, only the most recent missed tick is run, and none if a tick is on time.
      - Last poll: an instance with the scheduler on polled at 2026-01-15 13:00 Europe/Paris, 3 h before the tick; the next poll was at 2026-01-15 16:05 Europe/Paris.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 16:05 Europe/Paris after 0 ms, held by instance-1."
    `);
    expect(await explained(holdfast, "2026-01-15T13:20:00Z")).toMatchInlineSnapshot(`
      "missed nobody
      The tick of "nightly" at 2026-01-15 14:20 Europe/Paris was missed, one of 17 ticks from 2026-01-15 13:10 Europe/Paris to 2026-01-15 15:50 Europe/Paris: no instance evaluated it until 2026-01-15 16:05 Europe/Paris, and the missed policy does not run it late.
      - Tick: 2026-01-15T13:20:00.000Z, which is 2026-01-15 14:20 Europe/Paris, UTC+01:00.
      - Definition: every 10 minutes: 8 intervals after its beginning at 2026-01-15 13:00 Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Ledger: missed (nobody), one row for 17 ticks from 2026-01-15 13:10 Europe/Paris to 2026-01-15 15:50 Europe/Paris, recorded 2026-01-15 16:05 Europe/Paris, 1 h 45 min after the tick, by instance-1.
      - Policy: missed "latest": after downtime, only the most recent missed tick is run, and none if a tick is on time.
      - Last poll: an instance with the scheduler on polled at 2026-01-15 13:00 Europe/Paris, 1 h 20 min before the tick; the next poll was at 2026-01-15 16:05 Europe/Paris."
    `);
    expect(await explained(holdfast, "2026-01-15T13:25:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-01-15 14:25 Europe/Paris is not a tick of "nightly", which runs every 10 minutes.
      - Instant: 2026-01-15T13:25:00.000Z, which is 2026-01-15 14:25 Europe/Paris, UTC+01:00.
      - Definition: every 10 minutes; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Before: The tick of "nightly" at 2026-01-15 14:20 Europe/Paris was missed, one of 17 ticks from 2026-01-15 13:10 Europe/Paris to 2026-01-15 15:50 Europe/Paris: no instance evaluated it until 2026-01-15 16:05 Europe/Paris, and the missed policy does not run it late.
      - After: The tick of "nightly" at 2026-01-15 14:30 Europe/Paris was missed, one of 17 ticks from 2026-01-15 13:10 Europe/Paris to 2026-01-15 15:50 Europe/Paris: no instance evaluated it until 2026-01-15 16:05 Europe/Paris, and the missed policy does not run it late."
    `);
  });

  test("catch_up and over_limit: an outage, after which the newest two ticks are executed", async ({
    world,
  }) => {
    const missed = { run: "all", limit: 2 } as const;
    const first = await nightly(world, { every: "10m", missed });
    await world.clock.until(first.holdfast.stop());
    await arrived(world, "2026-01-15T13:05:00Z");
    const { holdfast } = await joined(world);
    await world.clock.advance(MINUTE);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "fired catch_up
      The tick of "nightly" at 2026-01-15 13:00 UTC was fired 5 min late, as one of the missed ticks that are run in order; its run completed.
      - Tick: 2026-01-15T13:00:00.000Z.
      - Definition: every 10 minutes: 6 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (catch_up), recorded 2026-01-15 13:05 UTC, 5 min after the tick, by instance-1.
      - Policy: missed "all": after downtime, the newest 2 missed ticks are run, one after the other.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 13:05 UTC after 0 ms, held by instance-1."
    `);
    expect(await explained(holdfast, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "missed over_limit
      The tick of "nightly" at 2026-01-15 12:10 UTC was missed, one of 4 ticks from 2026-01-15 12:10 UTC to 2026-01-15 12:40 UTC: no instance evaluated it in time, and only the newest 2 missed ticks are run late.
      - Tick: 2026-01-15T12:10:00.000Z.
      - Definition: every 10 minutes: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: missed (over_limit), one row for 4 ticks from 2026-01-15 12:10 UTC to 2026-01-15 12:40 UTC, recorded 2026-01-15 13:05 UTC, 55 min after the tick, by instance-1.
      - Policy: missed "all": after downtime, the newest 2 missed ticks are run, one after the other."
    `);
  });

  test("too_old: the newest of an outage is older than `within`", async ({ world }) => {
    const first = await nightly(world, { every: "1h", missed: { within: "20m" } });
    await world.clock.until(first.holdfast.stop());
    await arrived(world, "2026-01-15T13:50:00Z");
    const { holdfast } = await joined(world);
    await world.clock.advance(MINUTE);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "missed too_old
      The tick of "nightly" at 2026-01-15 13:00 UTC was missed: no instance evaluated it until it was 50 min old, which exceeds \`within\` of 20 minutes.
      - Tick: 2026-01-15T13:00:00.000Z.
      - Definition: every hour: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: missed (too_old), recorded 2026-01-15 13:50 UTC, 50 min after the tick, by instance-1.
      - Policy: missed "latest": after downtime, only the most recent missed tick is run, if at most 20 minutes old, and none if a tick is on time."
    `);
  });

  test("overlap: the run of an earlier tick is in the way, live or ended since", async ({
    world,
  }) => {
    const { holdfast } = await nightly(
      world,
      { every: "1h" },
      { run: (member) => member.clock.sleep(90 * MINUTE) },
    );
    await world.clock.advance(121 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T14:00:00Z")).toMatchInlineSnapshot(`
      "skipped overlap
      The tick of "nightly" at 2026-01-15 14:00 UTC was skipped: run run-1 of the tick at 2026-01-15 13:00 UTC was still live.
      - Tick: 2026-01-15T14:00:00.000Z.
      - Definition: every hour: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: skipped (overlap), recorded 2026-01-15 14:00 UTC, at once, by instance-1.
      - Policy: overlap "skip": a tick that meets a live run of an earlier tick is skipped.
      - Blocked by: run run-1 (scheduled, of the tick at 2026-01-15 13:00 UTC), live since 2026-01-15 13:00 UTC.
      - At the time: running at attempt 1 of 3, held since 2026-01-15 13:00 UTC by instance-1, whose lease lasts until 2026-01-15 14:01:20 UTC."
    `);
    await world.clock.advance(40 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T14:00:00Z")).toMatchInlineSnapshot(`
      "skipped overlap
      The tick of "nightly" at 2026-01-15 14:00 UTC was skipped: run run-1 of the tick at 2026-01-15 13:00 UTC was still live.
      - Tick: 2026-01-15T14:00:00.000Z.
      - Definition: every hour: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: skipped (overlap), recorded 2026-01-15 14:00 UTC, at once, by instance-1.
      - Policy: overlap "skip": a tick that meets a live run of an earlier tick is skipped.
      - Blocked by: run run-1 (scheduled, of the tick at 2026-01-15 13:00 UTC), live from 2026-01-15 13:00 UTC to 2026-01-15 14:30 UTC, when it completed.
      - At the time: attempt 1 held by instance-1 from 2026-01-15 13:00 UTC to 2026-01-15 14:30 UTC."
    `);
  });

  test("overlap: the run in the way waits to be tried again", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { every: "10m" },
      { run: refused, retry: { attempts: 2, delay: "15m", jitter: 0, max: "1h" } },
    );
    await world.clock.advance(21 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "skipped overlap
      The tick of "nightly" at 2026-01-15 12:20 UTC was skipped: run run-1 of the tick at 2026-01-15 12:10 UTC was still live.
      - Tick: 2026-01-15T12:20:00.000Z.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: skipped (overlap), recorded 2026-01-15 12:20 UTC, at once, by instance-1.
      - Policy: overlap "skip": a tick that meets a live run of an earlier tick is skipped.
      - Blocked by: run run-1 (scheduled, of the tick at 2026-01-15 12:10 UTC), live since 2026-01-15 12:10 UTC.
      - At the time: between two attempts: attempt 1 failed at 2026-01-15 12:10 UTC, and it waited for a retry.
      - Attempt 1 of run run-1: failed at 2026-01-15 12:10 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432."
    `);
  });

  test("queue_full: one run waits already", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { every: "1h", overlap: "queue" },
      { run: (member) => member.clock.sleep(5 * HOUR), timeout: "6h" },
    );
    await world.clock.advance(181 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T15:00:00Z")).toMatchInlineSnapshot(`
      "skipped queue_full
      The tick of "nightly" at 2026-01-15 15:00 UTC was skipped: run run-1 of the tick at 2026-01-15 14:00 UTC was already waiting.
      - Tick: 2026-01-15T15:00:00.000Z.
      - Definition: every hour: 3 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: skipped (queue_full), recorded 2026-01-15 15:00 UTC, at once, by instance-1.
      - Policy: overlap "queue": one run waits for the live one, and further ticks are skipped.
      - Blocked by: run run-1 (scheduled, of the tick at 2026-01-15 14:00 UTC), live since 2026-01-15 14:00 UTC.
      - At the time: it had not begun yet.
      - Live now: run run-2 (scheduled, of the tick at 2026-01-15 13:00 UTC), running at attempt 1 of 3, held since 2026-01-15 13:00 UTC by instance-1, whose lease lasts until 2026-01-15 15:01:20 UTC."
    `);
    expect(await explained(holdfast, "2026-01-15T14:00:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 14:00 UTC was fired on time; its run has not begun yet.
      - Tick: 2026-01-15T14:00:00.000Z.
      - Definition: every hour: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 14:00 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: waits for the end of run run-2.
      - Live now: run run-2 (scheduled, of the tick at 2026-01-15 13:00 UTC), running at attempt 1 of 3, held since 2026-01-15 13:00 UTC by instance-1, whose lease lasts until 2026-01-15 15:01:20 UTC."
    `);
  });

  test("a tick that replaced the run of the one before", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { every: "10m", overlap: "replace" },
      { run: (_, __, signal) => obedient(signal), poll: "1s" },
    );
    await world.clock.advance(21 * MINUTE);
    const roughly = async (instant: string) =>
      (await explained(holdfast, instant)).replace(/(\d\d:\d\d):\d\d(\.\d{3})?/g, "$1:ss");
    expect(await roughly("2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 12:20 UTC was fired on time; its run is running at attempt 1 of 3.
      - Tick: 2026-01-15T12:20:ssZ.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 12:20 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Replaced: run run-1 was cancelled for this tick.
      - Run run-2: running at attempt 1 of 3, held since 2026-01-15 12:20:ss UTC by instance-1, whose lease lasts until 2026-01-15 12:21:ss UTC."
    `);
    expect(await roughly("2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 12:10 UTC was fired on time; its run was cancelled.
      - Tick: 2026-01-15T12:10:ssZ.
      - Definition: every 10 minutes: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 12:10 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: cancelled at attempt 1 of 3 at 2026-01-15 12:20:ss UTC after 10 min 1 s, held by instance-1.
      - Replaced: by the tick at 2026-01-15 12:20 UTC."
    `);
  });

  test("after_failure: held back, and to be held back", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { cron: "0 * * * *", afterFailure: "150m" },
      { run: refused, retry: { attempts: 1 } },
    );
    await world.clock.advance(121 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T14:00:00Z")).toMatchInlineSnapshot(`
      "skipped after_failure
      The tick of "nightly" at 2026-01-15 14:00 UTC was skipped: run run-1 of the tick at 2026-01-15 13:00 UTC had failed, and ticks were held back until 2026-01-15 15:30 UTC.
      - Tick: 2026-01-15T14:00:00.000Z.
      - Definition: "0 * * * *", at minute 0 of every hour, UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: skipped (after_failure), recorded 2026-01-15 14:00 UTC, at once, by instance-1.
      - Policy: afterFailure 2 hours 30 minutes: no tick is fired for that long after a failed run.
      - Held back by: run run-1 (scheduled, of the tick at 2026-01-15 13:00 UTC), failed at attempt 1 of 1 at 2026-01-15 13:00 UTC after 0 ms, held by instance-1: connect ECONNREFUSED 10.0.0.7:5432."
    `);
    expect(await explained(holdfast, "2026-01-15T15:00:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-01-15 15:00 UTC, in 59 min, will be skipped: run run-1 failed, and ticks are held back until 2026-01-15 15:30 UTC.
      - Tick: 2026-01-15T15:00:00.000Z.
      - Definition: "0 * * * *", at minute 0 of every hour, UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Policy: afterFailure 2 hours 30 minutes: no tick is fired for that long after a failed run.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
  });

  test("paused: while it lasts, and when it is over", async ({ world }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    await holdfast.schedules.pause("nightly", "The disk is full.", { by: "ann" });
    await world.clock.advance(35 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "skipped paused
      The tick of "nightly" at 2026-01-15 12:20 UTC is skipped: the schedule has been paused by ann since 2026-01-15 12:00 UTC ("The disk is full").
      - Tick: 2026-01-15T12:20:00.000Z.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: not written yet; one row is written when the schedule is resumed, edited or deleted.
      - Policy: a paused schedule does not fire, and its ticks are not run later."
    `);
    expect(await explained(holdfast, "2026-01-15T12:40:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-01-15 12:40 UTC, in 5 min, will be skipped unless that changes: the schedule has been paused by ann since 2026-01-15 12:00 UTC ("The disk is full").
      - Tick: 2026-01-15T12:40:00.000Z.
      - Definition: every 10 minutes: 4 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Policy: a paused schedule does not fire, and its ticks are not run later.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
    await holdfast.schedules.resume("nightly");
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "skipped paused
      The tick of "nightly" at 2026-01-15 12:20 UTC was skipped, one of 3 ticks from 2026-01-15 12:10 UTC to 2026-01-15 12:30 UTC: the schedule was paused by ann from 2026-01-15 12:00 UTC to 2026-01-15 12:35 UTC ("The disk is full").
      - Tick: 2026-01-15T12:20:00.000Z.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: skipped (paused), one row for 3 ticks from 2026-01-15 12:10 UTC to 2026-01-15 12:30 UTC, recorded 2026-01-15 12:35 UTC, 15 min after the tick, by a call (such as pause, resume, edit or trigger) or an instance that is no longer known.
      - Policy: a paused schedule does not fire, and its ticks are not run later."
    `);
  });

  test("broken: by a job that no instance announced", async ({ world }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    await rewritten(world, { edit: { job: "removed" } });
    await world.clock.advance(25 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "missed broken
      The tick of "nightly" at 2026-01-15 12:10 UTC was missed: the schedule could not be evaluated: no instance has announced the job "removed".
      - Tick: 2026-01-15T12:10:00.000Z.
      - Definition: every 10 minutes: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 2, edited 2026-01-15 12:00 UTC.
      - Ledger: missed (broken), recorded 2026-01-15 12:10 UTC, at once, by instance-1.
      - Policy: a schedule that cannot be evaluated fires nothing until it is resumed or edited; other schedules are not affected."
    `);
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "missed broken
      The tick of "nightly" at 2026-01-15 12:20 UTC is missed: the schedule has been broken since 2026-01-15 12:10 UTC: no instance has announced the job "removed".
      - Tick: 2026-01-15T12:20:00.000Z.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 2, edited 2026-01-15 12:00 UTC.
      - Ledger: not written yet; one row is written when the schedule is resumed or edited.
      - Policy: a schedule that cannot be evaluated fires nothing until it is resumed or edited; other schedules are not affected."
    `);
    expect(await explained(holdfast, "2026-01-15T12:30:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-01-15 12:30 UTC, in 5 min, will be missed unless that changes: the schedule has been broken since 2026-01-15 12:10 UTC: no instance has announced the job "removed".
      - Tick: 2026-01-15T12:30:00.000Z.
      - Definition: every 10 minutes: 3 intervals after its beginning at 2026-01-15 12:00 UTC; version 2, edited 2026-01-15 12:00 UTC.
      - Policy: a schedule that cannot be evaluated fires nothing until it is resumed or edited; other schedules are not affected.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped.
      - Job: no instance has announced "removed", so the tick cannot become a run."
    `);
  });

  test("broken: by a definition that cannot be read", async ({ world }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    await world.clock.advance(MINUTE);
    await rewritten(world, { edit: { definition: '{"when":{"kind":"moon"}}' } });
    await world.clock.advance(25 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "missed broken
      The tick of "nightly" at 2026-01-15 12:10 UTC was missed: the schedule could not be evaluated: dates is not iterable.
      - Tick: 2026-01-15T12:10:00.000Z.
      - Definition: version 2, edited 2026-01-15 12:01 UTC, which cannot be read.
      - Ledger: missed (broken), recorded 2026-01-15 12:10 UTC, at once, by instance-1.
      - Policy: a schedule that cannot be evaluated fires nothing until it is resumed or edited; other schedules are not affected."
    `);
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "unknown
      Whether "nightly" has a tick at 2026-01-15 12:20 UTC cannot be known: its definition cannot be read: dates is not iterable.
      - Instant: 2026-01-15T12:20:00.000Z.
      - Definition: version 2, edited 2026-01-15 12:01 UTC, which cannot be read.
      - Now: the schedule has been broken since 2026-01-15 12:10 UTC: dates is not iterable.
      - Before: The tick of "nightly" at 2026-01-15 12:10 UTC was missed: the schedule could not be evaluated: dates is not iterable.
      - After: no tick is known."
    `);
  });

  test("stuck_reset: the next tick was lost", async ({ world }) => {
    const first = await nightly(world, { every: "10m" });
    await world.clock.until(first.holdfast.stop());
    await rewritten(world, { nextAt: null });
    await arrived(world, "2026-01-15T12:15:00Z");
    const { holdfast } = await joined(world);
    await world.clock.advance(MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "fired stuck_reset
      The tick of "nightly" at 2026-01-15 12:10 UTC was fired 5 min late, since the schedule was stuck: no next tick was stored, and no instance evaluated it; its run completed.
      - Tick: 2026-01-15T12:10:00.000Z.
      - Definition: every 10 minutes: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (stuck_reset), recorded 2026-01-15 12:15 UTC, 5 min after the tick, by instance-1.
      - Policy: a schedule whose next tick is lost, or is five minutes overdue while instances poll, is reset: missed "latest": after downtime, only the most recent missed tick is run, and none if a tick is on time.
      - Last poll: an instance with the scheduler on polled at 2026-01-15 12:00 UTC, 10 min before the tick; the next poll was at 2026-01-15 12:15 UTC.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 12:15 UTC after 0 ms, held by instance-1."
    `);
  });

  test("planned: what would happen if a run is live", async ({ world }) => {
    const { holdfast } = await nightly(
      world,
      { cron: "0 * * * *", timezone: PARIS },
      { run: (member) => member.clock.sleep(90 * MINUTE) },
    );
    await world.clock.advance(65 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T14:00:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-01-15 15:00 Europe/Paris is planned: it is due in 55 min.
      - Tick: 2026-01-15T14:00:00.000Z, which is 2026-01-15 15:00 Europe/Paris, UTC+01:00.
      - Definition: "0 * * * *", at minute 0 of every hour, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped.
      - Live now: run run-1 (scheduled, of the tick at 2026-01-15 14:00 Europe/Paris), running at attempt 1 of 3, held since 2026-01-15 14:00 Europe/Paris by instance-1, whose lease lasts until 2026-01-15 14:05:20 Europe/Paris."
    `);
  });

  test("due: not recorded yet", async ({ world }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    await world.clock.advance(15 * MINUTE);
    await world.clock.until(holdfast.stop());
    const looker = world.member().holdfast;
    await arrived(world, "2026-01-15T12:20:02Z");
    expect(await explained(looker, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "due
      The tick of "nightly" at 2026-01-15 12:20 UTC has been due for 2 s and is not recorded yet: an instance with the scheduler on records it at its next poll.
      - Tick: 2026-01-15T12:20:00.000Z.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: no row for this tick; the newest row is for the tick at 2026-01-15 12:10 UTC, recorded 2026-01-15 12:10 UTC by instance-1.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
    await world.clock.advance(HOUR);
    expect(await explained(looker, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "due
      The tick of "nightly" at 2026-01-15 12:20 UTC has been due for 1 h and is not recorded yet: no instance with the scheduler on seems to be running, or none reaches the database.
      - Tick: 2026-01-15T12:20:00.000Z.
      - Definition: every 10 minutes: 2 intervals after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: no row for this tick; the newest row is for the tick at 2026-01-15 12:10 UTC, recorded 2026-01-15 12:10 UTC by instance-1.
      - Policy: missed "latest": after downtime, only the most recent missed tick is run, and none if a tick is on time.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
  });

  test("a tick that the ledger no longer has", async ({ world }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    await world.clock.advance(25 * MINUTE);
    await world.clock.until(holdfast.stop());
    await world.clock.advance(10 * 24 * HOUR);
    const keeping = { keepMs: HOUR, keepTicksMs: 7 * 24 * HOUR };
    await (await world.store()).retention.prune({ ...keeping, limit: 1_000 });
    const looker = world.member().holdfast;
    expect(await explained(looker, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "unknown
      The outcome of the tick of "nightly" at 2026-01-15 12:10 UTC is no longer known: the ledger has no row for it.
      - Tick: 2026-01-15T12:10:00.000Z.
      - Definition: every 10 minutes: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired ticks are kept for \`ledgerRetention\` (7 days by default), the newest 200 of a schedule and ticks that did not fire as long as runs; this tick was 10 d ago."
    `);
  });

  test("a tick that did not fire is explained for as long as runs are kept, and the ticks beside it are named", async ({
    world,
  }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    await holdfast.schedules.pause("nightly", "the quota is used up");
    await world.clock.advance(15 * MINUTE);
    await holdfast.schedules.resume("nightly");
    await world.clock.advance(210 * 10 * MINUTE);
    await world.clock.until(holdfast.stop());
    await world.clock.advance(20 * 24 * HOUR);
    await world.member().holdfast.prune();
    const looker = world.member().holdfast;
    expect(await explained(looker, "2026-01-15T12:10:00Z")).toMatch(
      /^skipped paused\n.*the quota is used up/s,
    );
    expect(await explained(looker, "2026-01-15T12:30:00Z")).toMatch(/^unknown\n/);
    const between = await looker.schedules.explain("nightly", at("2026-01-15T12:35:00Z"));
    expect(between.before).toEqual(at("2026-01-15T12:30:00Z"));
  });

  test("an instant of a whole second stands for the tick within that second", async ({ world }) => {
    await world.clock.advance(712);
    const member = await nightly(world, { every: "1m..5m" }, { poll: "1s" });
    await world.clock.advance(30 * MINUTE);
    const { ticks } = await member.holdfast.schedules.ticks("nightly");
    const tick = ticks.find(({ at: each }) => each.getTime() % 1_000 !== 0);
    if (!tick) throw new Error("No tick has milliseconds.");
    const second = `${tick.at.toISOString().slice(0, 19)}Z`;
    expect(await member.holdfast.schedules.explain("nightly", second)).toMatchObject({
      ...{ at: at(second), tick: tick.at, outcome: "fired", runId: tick.runId },
    });
    const planned = (await member.holdfast.schedules.get("nightly"))?.nextAt ?? new Date(0);
    const next = new Date(Math.floor(planned.getTime() / 1_000) * 1_000);
    expect(await member.holdfast.schedules.explain("nightly", next)).toMatchObject({
      ...{ tick: planned, outcome: "planned" },
    });
    const beside = new Date(tick.at.getTime() + 1);
    expect(await member.holdfast.schedules.explain("nightly", beside)).toMatchObject({
      ...{ tick: null, outcome: "no_tick", before: tick.at },
    });
  });

  test("without an instant the last tick is explained, recorded or not", async ({ world }) => {
    const { holdfast } = await nightly(world, { cron: "0 * * * *" });
    expect(await holdfast.schedules.explain("nightly")).toMatchObject({
      ...{ tick: null, outcome: "no_tick", after: at("2026-01-15T13:00:00Z") },
    });
    await world.clock.advance(65 * MINUTE);
    expect(await holdfast.schedules.explain("nightly")).toMatchObject({
      ...{ at: at("2026-01-15T13:00:00Z"), tick: at("2026-01-15T13:00:00Z"), outcome: "fired" },
    });
    await world.clock.until(holdfast.stop());
    await arrived(world, "2026-01-15T14:05:00Z");
    expect(await world.member().holdfast.schedules.explain("nightly")).toMatchObject({
      ...{ tick: at("2026-01-15T14:00:00Z"), outcome: "due" },
    });
  });

  test("a grid that begins between two seconds has its ticks on whole seconds", async ({
    world,
  }) => {
    await world.clock.advance(712);
    const { holdfast } = await nightly(world, { every: "10s" });
    const preview = await holdfast.schedules.preview("nightly", 2);
    expect(preview.ticks).toEqual([at("2026-01-15T12:00:10Z"), at("2026-01-15T12:00:20Z")]);
    await world.clock.advance(15_500);
    const shown = await holdfast.schedules.previewDefinition({ every: "20s" }, 1);
    expect(shown.ticks).toEqual([at("2026-01-15T12:00:36Z")]);
    await upserted(holdfast, { every: "20s" });
    expect((await holdfast.schedules.preview("nightly", 1)).ticks).toEqual(shown.ticks);
  });

  test("an instant between two ticks", async ({ world }) => {
    const { holdfast } = await nightly(world, { cron: "0 14,15 * * *", timezone: PARIS });
    await world.clock.advance(65 * MINUTE);
    const explanation = await holdfast.schedules.explain("nightly", at("2026-01-15T13:00:30Z"));
    expect(explanation).toMatchObject({
      tick: null,
      outcome: "no_tick",
      before: at("2026-01-15T13:00:00Z"),
      after: at("2026-01-15T14:00:00Z"),
    });
    expect(words(explanation)).toMatchInlineSnapshot(`
      "no_tick
      2026-01-15 14:00:30 Europe/Paris is not a tick of "nightly", which runs at 14:00 and 15:00 every day, Europe/Paris.
      - Instant: 2026-01-15T13:00:30.000Z, which is 2026-01-15 14:00:30 Europe/Paris, UTC+01:00.
      - Definition: "0 14,15 * * *", at 14:00 and 15:00 every day, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Before: The tick of "nightly" at 2026-01-15 14:00 Europe/Paris was fired on time; its run completed.
      - After: The tick of "nightly" at 2026-01-15 15:00 Europe/Paris is planned: it is due in 55 min."
    `);
  });

  test("an instant that a rule leaves out: a date, a calendar, a bound", async ({ world }) => {
    const { holdfast } = world.member();
    await holdfast.calendars.upsert("freeze", {
      windows: [{ from: "2026-12-20T18:00", to: "2027-01-02T06:00" }],
    });
    await nightly(world, {
      cron: "0 2 * * *",
      timezone: PARIS,
      from: "2026-02-01T00:00:00Z",
      until: "2027-03-31T00:00:00Z",
      exclude: ["2026-07-14"],
      calendars: ["freeze"],
    });
    expect(await explained(holdfast, "2026-07-14T00:00:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-07-14 02:00 Europe/Paris is not a tick of "nightly": its pattern includes this time, but a rule excludes it: excluded date 2026-07-14.
      - Instant: 2026-07-14T00:00:00.000Z, which is 2026-07-14 02:00 Europe/Paris, UTC+02:00.
      - Definition: "0 2 * * *", at 02:00 every day, Europe/Paris, from 2026-02-01 01:00 Europe/Paris until 2027-03-31 02:00 Europe/Paris, except on 2026-07-14 and in the calendar "freeze"; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Rule: excluded date 2026-07-14.
      - Before: The tick of "nightly" at 2026-07-13 02:00 Europe/Paris is planned: it is due in 178 d 12 h.
      - After: The tick of "nightly" at 2026-07-15 02:00 Europe/Paris is planned: it is due in 180 d 12 h."
    `);
    expect(
      (await holdfast.schedules.explain("nightly", "2026-12-25T01:00:00Z")).text,
    ).toMatchInlineSnapshot(
      `"2026-12-25 02:00 Europe/Paris is not a tick of "nightly": its pattern includes this time, but a rule excludes it: the calendar "freeze": blackout 2026-12-20 18:00 to 2027-01-02 06:00."`,
    );
    expect(
      (await holdfast.schedules.explain("nightly", "2026-01-20T01:00:00Z")).text,
    ).toMatchInlineSnapshot(
      `"2026-01-20 02:00 Europe/Paris is not a tick of "nightly": its pattern includes this time, but a rule excludes it: before \`from\` 2026-02-01 01:00 Europe/Paris."`,
    );
    expect(await explained(holdfast, "2027-04-01T00:00:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2027-04-01 02:00 Europe/Paris is not a tick of "nightly": its pattern includes this time, but a rule excludes it: after \`until\` 2027-03-31 02:00 Europe/Paris.
      - Instant: 2027-04-01T00:00:00.000Z, which is 2027-04-01 02:00 Europe/Paris, UTC+02:00.
      - Definition: "0 2 * * *", at 02:00 every day, Europe/Paris, from 2026-02-01 01:00 Europe/Paris until 2027-03-31 02:00 Europe/Paris, except on 2026-07-14 and in the calendar "freeze"; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Rule: after \`until\` 2027-03-31 02:00 Europe/Paris.
      - Before: The tick of "nightly" at 2027-03-31 02:00 Europe/Paris is planned: it is due in 439 d 12 h.
      - After: no tick is known."
    `);
  });

  test("a change of the clocks moves a tick, skips one, or shows a time twice", async ({
    world,
  }) => {
    const { holdfast } = await nightly(world, { cron: "30 2 * * *", timezone: PARIS });
    expect(await explained(holdfast, "2026-03-29T01:00:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-03-29 03:00 Europe/Paris is planned: it is due in 72 d 13 h.
      - Tick: 2026-03-29T01:00:00.000Z, which is 2026-03-29 03:00 Europe/Paris, UTC+02:00.
      - Definition: "30 2 * * *", at 02:30 every day, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Clocks: 02:30 does not exist on 2026-03-29, when the clocks go forward from 02:00 to 03:00: one tick at 03:00.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
    expect(await explained(holdfast, "2026-03-29T01:30:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-03-29 03:30 Europe/Paris is not a tick of "nightly": 02:30 does not exist on 2026-03-29, when the clocks go forward from 02:00 to 03:00: one tick at 03:00.
      - Instant: 2026-03-29T01:30:00.000Z, which is 2026-03-29 03:30 Europe/Paris, UTC+02:00.
      - Definition: "30 2 * * *", at 02:30 every day, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Clocks: 02:30 does not exist on 2026-03-29, when the clocks go forward from 02:00 to 03:00: one tick at 03:00.
      - Before: The tick of "nightly" at 2026-03-29 03:00 Europe/Paris is planned: it is due in 72 d 13 h.
      - After: The tick of "nightly" at 2026-03-30 02:30 Europe/Paris is planned: it is due in 73 d 13 h."
    `);
    expect(await explained(holdfast, "2026-10-25T01:30:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-10-25 02:30 Europe/Paris is not a tick of "nightly": 02:30 comes twice on 2026-10-25, when the clocks go back from 03:00 to 02:00: one tick, at the first pass.
      - Instant: 2026-10-25T01:30:00.000Z, which is 2026-10-25 02:30 Europe/Paris, UTC+01:00.
      - Definition: "30 2 * * *", at 02:30 every day, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Clocks: 02:30 comes twice on 2026-10-25, when the clocks go back from 03:00 to 02:00: one tick, at the first pass.
      - Before: The tick of "nightly" at 2026-10-25 02:30 Europe/Paris is planned: it is due in 282 d 13 h.
      - After: The tick of "nightly" at 2026-10-26 02:30 Europe/Paris is planned: it is due in 283 d 14 h."
    `);
    expect(await explained(holdfast, "2026-10-25T00:30:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-10-25 02:30 Europe/Paris is planned: it is due in 282 d 13 h.
      - Tick: 2026-10-25T00:30:00.000Z, which is 2026-10-25 02:30 Europe/Paris, UTC+02:00.
      - Definition: "30 2 * * *", at 02:30 every day, Europe/Paris; version 1, created 2026-01-15 13:00 Europe/Paris by deploy.
      - Clocks: 02:30 comes twice on 2026-10-25, when the clocks go back from 03:00 to 02:00: one tick, at the first pass.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
    await upserted(holdfast, { cron: "30 2 * * *", timezone: PARIS, dst: { gap: "skip" } });
    expect(await explained(holdfast, "2026-03-29T01:30:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-03-29 03:30 Europe/Paris is not a tick of "nightly": 02:30 does not exist on 2026-03-29, when the clocks go forward from 02:00 to 03:00: no tick.
      - Instant: 2026-03-29T01:30:00.000Z, which is 2026-03-29 03:30 Europe/Paris, UTC+02:00.
      - Definition: "30 2 * * *", at 02:30 every day, Europe/Paris; version 2, edited 2026-01-15 13:00 Europe/Paris by deploy.
      - Clocks: 02:30 does not exist on 2026-03-29, when the clocks go forward from 02:00 to 03:00: no tick.
      - Before: The tick of "nightly" at 2026-03-28 02:30 Europe/Paris is planned: it is due in 71 d 14 h.
      - After: The tick of "nightly" at 2026-03-30 02:30 Europe/Paris is planned: it is due in 73 d 13 h."
    `);
  });

  test("before it was created, after it was deleted, and when it was made again", async ({
    world,
  }) => {
    const { holdfast } = await nightly(world, { every: "10m" });
    expect(await explained(holdfast, "2026-01-15T11:50:00Z")).toMatchInlineSnapshot(`
      "no_tick
      "nightly" did not exist yet at 2026-01-15 11:50 UTC: it was created 2026-01-15 12:00 UTC by deploy.
      - Instant: 2026-01-15T11:50:00.000Z.
      - Before: no tick is known.
      - After: The tick of "nightly" at 2026-01-15 12:10 UTC is planned: it is due in 10 min."
    `);
    await world.clock.advance(15 * MINUTE);
    await holdfast.schedules.delete("nightly", { by: "bob" });
    await world.clock.advance(15 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "no_tick
      "nightly" did not exist at 2026-01-15 12:20 UTC: it had been deleted 2026-01-15 12:15 UTC by bob.
      - Instant: 2026-01-15T12:20:00.000Z.
      - Other definition: version 1, created 2026-01-15 12:00 UTC by deploy, has a tick at this instant, but was not in force then.
      - Before: The tick of "nightly" at 2026-01-15 12:10 UTC was fired on time; its run completed.
      - After: no tick is known."
    `);
    await upserted(holdfast, { every: "10m" });
    expect(await explained(holdfast, "2026-01-15T12:20:00Z")).toMatchInlineSnapshot(`
      "no_tick
      "nightly" did not exist at 2026-01-15 12:20 UTC: it had been deleted 2026-01-15 12:15 UTC by bob, and it was created again 2026-01-15 12:30 UTC by deploy.
      - Instant: 2026-01-15T12:20:00.000Z.
      - Other definition: version 1, created 2026-01-15 12:00 UTC by deploy, has a tick at this instant, but was not in force then.
      - Before: The tick of "nightly" at 2026-01-15 12:10 UTC was fired on time; its run completed.
      - After: The tick of "nightly" at 2026-01-15 12:40 UTC is planned: it is due in 10 min."
    `);
    await expect(holdfast.schedules.explain("never", at("2026-01-15T12:20:00Z"))).rejects.toThrow(
      ScheduleNotFoundError,
    );
  });

  test("an edit: the definition that was in force counts, and the other one is named", async ({
    world,
  }) => {
    const { holdfast } = await nightly(world, { cron: "30 * * * *" });
    await world.clock.advance(65 * MINUTE);
    await upserted(holdfast, { cron: "0 * * * *" });
    await world.clock.advance(30 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T13:00:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-01-15 13:00 UTC is not a tick of "nightly", which then ran at minute 30 of every hour, UTC.
      - Instant: 2026-01-15T13:00:00.000Z.
      - Definition: "30 * * * *", at minute 30 of every hour, UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Other definition: version 2, edited 2026-01-15 13:05 UTC by deploy, has a tick at this instant, but was not in force then.
      - Before: The tick of "nightly" at 2026-01-15 12:30 UTC was fired on time; its run completed.
      - After: The tick of "nightly" at 2026-01-15 14:00 UTC is planned: it is due in 25 min."
    `);
    expect(await explained(holdfast, "2026-01-15T12:30:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 12:30 UTC was fired on time; its run completed.
      - Tick: 2026-01-15T12:30:00.000Z.
      - Definition: "30 * * * *", at minute 30 of every hour, UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 12:30 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 12:30 UTC after 0 ms, held by instance-1."
    `);
    expect(await explained(holdfast, "2026-01-15T13:30:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-01-15 13:30 UTC is not a tick of "nightly", which runs at minute 0 of every hour, UTC.
      - Instant: 2026-01-15T13:30:00.000Z.
      - Definition: "0 * * * *", at minute 0 of every hour, UTC; version 2, edited 2026-01-15 13:05 UTC by deploy.
      - Other definition: version 1, created 2026-01-15 12:00 UTC by deploy, has a tick at this instant, but was not in force then.
      - Before: The tick of "nightly" at 2026-01-15 12:30 UTC was fired on time; its run completed.
      - After: The tick of "nightly" at 2026-01-15 14:00 UTC is planned: it is due in 25 min."
    `);
  });

  test("a schedule that has ended", async ({ world }) => {
    const { holdfast } = await nightly(world, { at: "2026-01-15T12:30:00Z" });
    await world.clock.advance(45 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:30:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 12:30 UTC was fired on time; its run completed.
      - Tick: 2026-01-15T12:30:00.000Z.
      - Definition: once, at 2026-01-15 12:30 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 12:30 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 12:30 UTC after 0 ms, held by instance-1."
    `);
    expect(await explained(holdfast, "2026-01-15T12:40:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-01-15 12:40 UTC is not a tick of "nightly", which runs once, at 2026-01-15 12:30 UTC.
      - Instant: 2026-01-15T12:40:00.000Z.
      - Definition: once, at 2026-01-15 12:30 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Before: The tick of "nightly" at 2026-01-15 12:30 UTC was fired on time; its run completed.
      - After: no tick is known.
      - Ended: the schedule has no ticks left."
    `);
  });

  test("a random interval: from which run's end it was drawn, and the limits of this knowledge", async ({
    world,
  }) => {
    const { holdfast } = await nightly(
      world,
      { every: "10m..10m", from: "2026-01-15T12:05:00Z" },
      { run: (member) => member.clock.sleep(3 * MINUTE) },
    );
    await world.clock.advance(25 * MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:05:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 12:05 UTC was fired on time; its run completed.
      - Tick: 2026-01-15T12:05:00.000Z.
      - Definition: 10 minutes after the last run ended, from 2026-01-15 12:05 UTC: the first tick, which depends on no earlier run; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 12:05 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-1: completed at attempt 1 of 3 at 2026-01-15 12:08 UTC after 3 min, held by instance-1."
    `);
    expect(await explained(holdfast, "2026-01-15T12:18:00Z")).toMatchInlineSnapshot(`
      "fired on_time
      The tick of "nightly" at 2026-01-15 12:18 UTC was fired on time; its run completed.
      - Tick: 2026-01-15T12:18:00.000Z.
      - Definition: 10 minutes after the last run ended, from 2026-01-15 12:05 UTC: drawn 10 min after the end of run run-1 at 2026-01-15 12:08 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: fired (on_time), recorded 2026-01-15 12:18 UTC, at once, by instance-1.
      - Policy: a tick that is fired within the grace of 30 seconds is on time.
      - Run run-2: completed at attempt 1 of 3 at 2026-01-15 12:21 UTC after 3 min, held by instance-1."
    `);
    expect(await explained(holdfast, "2026-01-15T12:31:00Z")).toMatchInlineSnapshot(`
      "planned
      The tick of "nightly" at 2026-01-15 12:31 UTC is planned: it is due in 6 min.
      - Tick: 2026-01-15T12:31:00.000Z.
      - Definition: 10 minutes after the last run ended, from 2026-01-15 12:05 UTC: drawn 10 min after the end of run run-1 at 2026-01-15 12:21 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Policy: overlap "skip": if a run of an earlier tick is still live then, this tick is skipped."
    `);
    expect(await explained(holdfast, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "no_tick
      2026-01-15 12:10 UTC is not a tick of "nightly", which runs 10 minutes after the last run ended, from 2026-01-15 12:05 UTC.
      - Instant: 2026-01-15T12:10:00.000Z.
      - Definition: 10 minutes after the last run ended, from 2026-01-15 12:05 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Before: The tick of "nightly" at 2026-01-15 12:05 UTC was fired on time; its run completed.
      - After: The tick of "nightly" at 2026-01-15 12:18 UTC was fired on time; its run completed."
    `);
    expect(await explained(holdfast, "2026-01-15T18:00:00Z")).toMatchInlineSnapshot(`
      "unknown
      Whether "nightly" has a tick at 2026-01-15 18:00 UTC cannot be known: each of its ticks is drawn when the previous run has ended.
      - Instant: 2026-01-15T18:00:00.000Z.
      - Definition: 10 minutes after the last run ended, from 2026-01-15 12:05 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Before: The tick of "nightly" at 2026-01-15 12:31 UTC is planned: it is due in 6 min.
      - After: no tick is known."
    `);
  });

  test("a backfill that covers a tick", async ({ world }) => {
    const first = await nightly(world, { every: "10m", missed: "skip" });
    await world.clock.until(first.holdfast.stop());
    await arrived(world, "2026-01-15T12:25:00Z");
    const { holdfast } = await joined(world);
    await world.clock.advance(MINUTE);
    const range = { from: at("2026-01-15T12:10:00Z"), to: at("2026-01-15T12:20:00Z") };
    await holdfast.schedules.backfill("nightly", { ...range, by: "ann" });
    await world.clock.advance(MINUTE);
    expect(await explained(holdfast, "2026-01-15T12:10:00Z")).toMatchInlineSnapshot(`
      "missed nobody
      The tick of "nightly" at 2026-01-15 12:10 UTC was missed, one of 2 ticks from 2026-01-15 12:10 UTC to 2026-01-15 12:20 UTC: no instance evaluated it until 2026-01-15 12:25 UTC, and the missed policy does not run it late.
      - Tick: 2026-01-15T12:10:00.000Z.
      - Definition: every 10 minutes: 1 interval after its beginning at 2026-01-15 12:00 UTC; version 1, created 2026-01-15 12:00 UTC by deploy.
      - Ledger: missed (nobody), one row for 2 ticks from 2026-01-15 12:10 UTC to 2026-01-15 12:20 UTC, recorded 2026-01-15 12:25 UTC, 15 min after the tick, by instance-1.
      - Policy: missed "skip": missed ticks are not run late.
      - Last poll: an instance with the scheduler on polled at 2026-01-15 12:00 UTC, 10 min before the tick; the next poll was at 2026-01-15 12:25 UTC.
      - Backfill: one created 2026-01-15 12:26 UTC by ann covers this tick and has passed it."
    `);
  });
}

type Handling = {
  readonly run?: (member: Member, attempt: number, signal: AbortSignal) => unknown;
  readonly poll?: string;
  readonly retry?: object;
  readonly timeout?: string;
};

/** Retries whose times are the same on every database. */
const STEADY = { attempts: 3, delay: "1s", factor: 2, jitter: 0 };

/** An instance with the schedule "nightly" of the job "backup". */
async function nightly(
  world: World,
  options: ScheduleOptions,
  handling: Handling = {},
): Promise<Member> {
  const member = await joined(world, handling);
  await upserted(member.holdfast, options);
  return member;
}

async function joined(world: World, handling: Handling = {}): Promise<Member> {
  const { run, poll = "1m", retry = STEADY, ...options } = handling;
  const member = world.member({ poll });
  member.holdfast.job("backup", {
    ...options,
    retry,
    run: (_, { attempt, signal }) => run?.(member, attempt, signal),
  });
  await member.holdfast.start();
  return member;
}

async function upserted(holdfast: Member["holdfast"], options: ScheduleOptions) {
  await holdfast.schedules.upsert("nightly", { ...options, job: "backup" }, { by: "deploy" });
}

async function refused(): Promise<never> {
  throw new Error("connect ECONNREFUSED 10.0.0.7:5432");
}

/** Changes what is stored behind the engine's back. */
async function rewritten(
  world: World,
  change: { readonly nextAt?: null; readonly edit?: Partial<ScheduleEdit> },
): Promise<void> {
  const store = await world.store();
  const { schedules } = await store.schedules.states({ names: ["nightly"] });
  const [state] = schedules;
  if (!state) throw new Error("There is no schedule.");
  const { live, ...progress } = state;
  const edit: ScheduleEdit = {
    ...state,
    kind: "edited",
    by: null,
    range: null,
    afterFailure: null,
    priority: null,
    queue: null,
    tags: [],
    isForced: false,
    isDeleted: false,
    ...change.edit,
  };
  const written: ScheduleChange = {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: [],
    progress: {
      ...progress,
      live: live.map(({ id }) => id),
      ...(change.nextAt === null ? { nextAt: null } : {}),
    },
    ...(change.edit ? { edit } : {}),
  };
  const applied = await store.schedules.write({ holder: null, changes: [written] });
  expect(applied).toEqual([state.id]);
}

/** Moves time to this instant: how long a stop takes differs between databases. */
async function arrived(world: World, text: string): Promise<void> {
  await world.clock.advance(at(text).getTime() - world.clock.wallMs());
}

function at(text: string): Date {
  return new Date(text);
}

async function explained(holdfast: Member["holdfast"], instant: string): Promise<string> {
  return words(await holdfast.schedules.explain("nightly", instant));
}

/** The whole answer as it would be printed, without what differs from run to run. */
function words({
  outcome,
  reason,
  text,
  evidence,
}: {
  readonly outcome: string;
  readonly reason: string | null;
  readonly text: string;
  readonly evidence: readonly string[];
}): string {
  const names = new Map<string, string>();
  const name = (kind: string) => (found: string) => {
    const count = [...names.values()].filter((each) => each.startsWith(kind)).length;
    if (!names.has(found)) names.set(found, `${kind}-${count + 1}`);
    return names.get(found) ?? found;
  };
  return (
    [`${outcome} ${reason ?? ""}`.trim(), text, ...evidence.map((line) => `- ${line}`)]
      .join("\n")
      .replace(/[\w.-]+:\d+:[0-9a-f-]{36}/g, name("instance"))
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, name("run"))
      // Whether the first poll meets the first millisecond or the second is the database's affair.
      .replace(/(\d\d:\d\d):00\.00\d (?=[A-Z])/g, "$1 ")
  );
}
