// Proves that awaited calls on SQLite, which are synchronous inside, leave the event loop to timers and I/O.
// The tests count turns and calls: how fast the machine is decides nothing.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { nextTurn, slicesOf } from "../../src/shared/adapters/event-loop.js";
import type { Clock, Timer } from "../../src/shared/ports.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";
import type { Logger } from "../../src/telemetry/log.js";
import { SeededRandom, seededIds } from "../../src/testing/virtual-clock.js";
import type { RunContext } from "../../src/worker/handler/context.js";

const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };
/** Without a turn for timers none of the verbs would end before this many calls. */
const CALLS_MAX = 20_000;
const LEASE_MS = 1_000;
const START_AT = Date.UTC(2026, 0, 15, 12);

/**
 * A clock whose time is counted: a millisecond for each real turn of the event loop, and whatever a test says
 * that its work took. Timers fire in turns, as real ones do.
 */
class CountedClock implements Clock {
  readonly #timers = new Set<{ readonly atMs: number; readonly callback: () => void }>();
  #nowMs = 0;
  #isOver = false;
  turns = 0;
  readonly giveWay = slicesOf({
    monotonicMs: () => this.#nowMs,
    soon: (callback) => this.soon(callback),
  });

  constructor() {
    this.#turn();
  }

  wallMs(): number {
    return START_AT + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  timer(delayMs: number, callback: () => void): Timer {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  soon(callback: () => void): void {
    nextTurn(callback);
  }

  worked(ms: number): void {
    this.#nowMs += ms;
  }

  end(): void {
    this.#isOver = true;
  }

  #turn(): void {
    if (this.#isOver) return;
    this.turns += 1;
    this.#nowMs += 1;
    for (const timer of this.#timers) {
      if (timer.atMs > this.#nowMs) continue;
      this.#timers.delete(timer);
      timer.callback();
    }
    nextTurn(() => this.#turn());
  }
}

/** An instance on a handle of the application, in counted time. */
class Scene {
  readonly clock = new CountedClock();
  readonly handle = new DatabaseSync(":memory:");
  readonly holdfast: Holdfast;
  readonly store: SqliteStore;
  /** How long each statement takes that looks at the database's time. */
  takesMs = 0;

  constructor() {
    const { clock } = this;
    const random = new SeededRandom(1);
    this.store = new SqliteStore({
      source: { handle: this.handle as unknown as SqliteHandle },
      clock,
      random,
      synchronous: "FULL",
      migrate: "auto",
      mayCreate: true,
      now: () => {
        clock.worked(this.takesMs);
        return clock.wallMs();
      },
    });
    this.holdfast = new Holdfast(
      { database: "sqlite::memory:", logger: SILENT },
      { ports: { clock, random, ids: seededIds(clock, random) }, store: () => this.store },
    );
  }

  async end(): Promise<void> {
    await this.holdfast.stop({ grace: 0 });
    this.clock.end();
    this.handle.close();
  }
}

const test = base.extend<{ holdfast: Holdfast; scene: Scene }>({
  holdfast: async ({ task: _ }, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-turns-"));
    const holdfast = new Holdfast({
      database: `sqlite:${path.join(folder, "app.db")}`,
      synchronous: "NORMAL",
      logger: SILENT,
    });
    holdfast.job("study", { run: () => "done" });
    await use(holdfast);
    await holdfast.stop();
    rmSync(folder, { recursive: true, force: true });
  },
  scene: async ({ task: _ }, use) => {
    const scene = new Scene();
    await use(scene);
    await scene.end();
  },
});

const VERBS: readonly (readonly [string, (holdfast: Holdfast, id: string) => Promise<unknown>])[] =
  [
    ["enqueue", (holdfast) => holdfast.enqueue("study", {})],
    ["runs.get", (holdfast, id) => holdfast.runs.get(id)],
    ["runs.list", (holdfast) => holdfast.runs.list({ limit: 5 })],
    [
      "schedules.upsert",
      (holdfast) => holdfast.schedules.upsert("nightly", { job: "study", cron: "0 3 * * *" }),
    ],
    ["schedules.trigger", (holdfast) => holdfast.schedules.trigger("nightly")],
    ["schedules.explain", (holdfast) => holdfast.schedules.explain("nightly", new Date(START_AT))],
    ["lock", (holdfast) => holdfast.lock("door", {}, async () => undefined)],
    // Its figures are read once in five seconds: all other calls wait for no statement.
    ["metrics", (holdfast) => holdfast.metrics()],
  ];

const HANDLER_VERBS: readonly (readonly [string, (ctx: RunContext) => Promise<unknown>])[] = [
  ["ctx.progress", (ctx) => ctx.progress({ done: 1 })],
  ["ctx.heartbeat", (ctx) => ctx.heartbeat()],
];

/** Returns whether a timer fired before the last of these calls. */
async function letsTimersFire(call: () => Promise<unknown>): Promise<boolean> {
  let hasFired = false;
  systemClock.timer(10, () => {
    hasFired = true;
  });
  for (let calls = 0; !hasFired && calls < CALLS_MAX; calls += 1) await call();
  return hasFired;
}

describe("the event loop beside awaited calls on SQLite", () => {
  for (const [verb, call] of VERBS) {
    test(`a timer fires while a process only awaits ${verb}`, async ({ holdfast }) => {
      const { id } = await holdfast.enqueue("study", {});
      await holdfast.schedules.upsert("nightly", { job: "study", cron: "0 3 * * *" });
      expect(await letsTimersFire(() => call(holdfast, id))).toBe(true);
    });
  }

  for (const [verb, call] of HANDLER_VERBS) {
    test(`a timer fires while a handler only awaits ${verb}`, async ({ holdfast }) => {
      const busy = holdfast.job("busy", { run: (_, ctx) => letsTimersFire(() => call(ctx)) });
      const { id } = await busy.enqueue({});
      await holdfast.start();
      expect(await holdfast.runs.wait(id)).toMatchObject({ status: "completed", result: true });
    });
  }

  test("a handler that only awaits runs.list for five leases keeps its run: its lease never runs out", async ({
    scene,
  }) => {
    const { holdfast, clock, handle } = scene;
    const leases = handle.prepare.bind(handle);
    let expired = 0;
    const study = holdfast.job("study", {
      lease: LEASE_MS,
      run: async () => {
        for (let ms = 0; ms < 5 * LEASE_MS; ms += 1) {
          await holdfast.runs.list({ limit: 1 });
          clock.worked(1);
          const { until } = leases("select min(until) as until from holdfast_lease").get() as {
            until: number;
          };
          if (until <= clock.wallMs()) expired += 1;
        }
        return "done";
      },
    });
    const { id } = await study.enqueue({});
    await holdfast.start();
    const run = await holdfast.runs.wait(id);
    expect(run).toMatchObject({ status: "completed", attempt: 1 });
    expect(expired).toBe(0);
  });

  test("a heartbeat waits for none of a thousand calls that were made before it", async ({
    scene,
  }) => {
    const { holdfast, handle, store } = scene;
    const renewedAt = () =>
      (handle.prepare("select max(renewed_at) as at from holdfast_lease").get() as { at: number })
        .at;
    let endedBefore: number | undefined;
    const study = holdfast.job("study", {
      lease: LEASE_MS,
      run: async () => {
        const before = renewedAt();
        let ended = 0;
        scene.takesMs = 1;
        const calls = Array.from({ length: LEASE_MS }, async () => {
          await store.work.promote({ limit: 1 });
          if (endedBefore === undefined && renewedAt() > before) endedBefore = ended;
          ended += 1;
        });
        await Promise.all(calls);
        scene.takesMs = 0;
      },
    });
    const { id } = await study.enqueue({});
    await holdfast.start();
    await holdfast.runs.wait(id);
    // It is due after a third of the lease.
    expect(endedBefore).toBeLessThan(LEASE_MS / 2);
  });

  test("a lone call waits for no turn", async ({ scene }) => {
    const { holdfast, clock } = scene;
    await holdfast.runs.list({});
    for (let calls = 0; calls < 10; calls += 1) {
      await new Promise<void>((resolve) => clock.soon(resolve));
      clock.worked(1_000);
      const { turns } = clock;
      await holdfast.runs.list({});
      expect(clock.turns).toBe(turns);
    }
  });

  test("inside of a transaction of the application no look gives a turn away", async ({
    scene,
  }) => {
    const { holdfast, clock, handle } = scene;
    await holdfast.runs.list({});
    await new Promise<void>((resolve) => clock.soon(resolve));
    handle.exec("begin");
    const { turns } = clock;
    for (let calls = 0; calls < 10; calls += 1) {
      await holdfast.runs.list({});
      clock.worked(1_000);
    }
    expect(clock.turns).toBe(turns);
    handle.exec("commit");
    await holdfast.runs.list({});
    expect(clock.turns).toBeGreaterThan(turns);
  });

  test("calls that wait for their turn are made in their order, and a stop closes the file after them", async ({
    scene,
  }) => {
    const { holdfast, clock } = scene;
    await holdfast.runs.list({});
    await new Promise<void>((resolve) => clock.soon(resolve));
    const order: number[] = [];
    const calls = [0, 1, 2, 3].map(async (number) => {
      if (number > 0) await undefined;
      await holdfast.runs.list({});
      clock.worked(1_000);
      order.push(number);
    });
    await calls[0];
    const stopped = holdfast.stop();
    await Promise.all(calls);
    expect(order).toEqual([0, 1, 2, 3]);
    await stopped;
  });
});
